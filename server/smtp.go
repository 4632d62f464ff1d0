package server

import "github.com/destkit/destkit/server/internal/lifecycle"

// SMTP names the mail server that gets a copy of every e-mail. The zero value
// has none: e-mails are kept in the mailbox only.
type SMTP = lifecycle.SMTP

// The ways of SMTP.TLS to be encrypted, and the default of SMTP.Timeout.
const (
	SMTPStartTLS       = lifecycle.SMTPStartTLS // the default: STARTTLS or nothing is sent
	SMTPImplicit       = lifecycle.SMTPImplicit // TLS from the first byte, as on port 465
	SMTPPlain          = lifecycle.SMTPPlain    // for servers of tests; a password is then never sent in clear
	DefaultSMTPTimeout = lifecycle.DefaultSMTPTimeout
)
