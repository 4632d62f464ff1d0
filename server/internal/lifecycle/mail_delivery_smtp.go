package lifecycle

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/store"
)

// DefaultSMTPTimeout is SMTP.Timeout where it is zero.
const DefaultSMTPTimeout = 30 * time.Second

// transmit hands one e-mail to the mail server. permanent: the server has
// refused this e-mail for good (a code of 500 or more, RFC 5321 4.2.1).
func (m *Mailer) transmit(ctx context.Context, message *store.Mail) (permanent bool, err error) {
	letter, err := m.letter(message)
	if err != nil {
		return true, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := m.client(ctx)
	if err != nil {
		return true, err
	}
	err = client.DialAndSendWithContext(ctx, letter)
	if letter.IsDelivered() { // a farewell that goes wrong undoes nothing
		return false, nil
	}
	var refused *mail.SendError
	return errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500, err
}

// letter writes an e-mail. Its id follows from that of the row, so a server that
// got it in an attempt without an answer can recognize it.
func (m *Mailer) letter(message *store.Mail) (*mail.Msg, error) {
	letter := mail.NewMsg()
	if err := letter.From(m.smtp.From); err != nil {
		return nil, fmt.Errorf("write sender: %w", err)
	}
	if err := letter.To(message.To...); err != nil {
		return nil, fmt.Errorf("write recipient: %w", err)
	}
	domain := m.smtp.From[strings.LastIndex(m.smtp.From, "@")+1:]
	letter.SetMessageIDWithValue(fmt.Sprintf("%d.%d@%s", message.ID, message.At.UnixMilli(), domain))
	letter.SetDateWithValue(message.At)
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office replies
	letter.Subject(oneLine(message.Subject))
	letter.SetBodyString(mail.TypeTextPlain, message.Text)
	return letter, nil
}

// client prepares a conversation, which the end of ctx cuts off: the library
// heeds a context while it connects only.
func (m *Mailer) client(whole context.Context) (*mail.Client, error) {
	port, err := strconv.Atoi(m.port)
	if err != nil {
		return nil, err
	}
	secure := m.gate.ClientTLS(m.host)
	policy := mail.TLSMandatory
	switch m.smtp.TLS {
	case SMTPPlain:
		policy = mail.NoTLS
	case SMTPImplicit: // the connection is encrypted already, and no server offers it twice
		policy = mail.TLSOpportunistic
	}
	options := []mail.Option{
		mail.WithPort(port), mail.WithTimeout(cmp.Or(m.smtp.Timeout, DefaultSMTPTimeout)), mail.WithTLSPolicy(policy), mail.WithTLSConfig(secure),
		mail.WithDialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			context.AfterFunc(whole, func() { _ = raw.Close() })
			if m.smtp.TLS != SMTPImplicit {
				return raw, nil
			}
			encrypted := tls.Client(raw, secure)
			if err := encrypted.HandshakeContext(ctx); err != nil {
				_ = raw.Close()
				return nil, fmt.Errorf("tls handshake: %w", err)
			}
			return encrypted, nil
		}),
	}
	if m.smtp.Username != "" {
		// Of what the server offers the strongest; PLAIN and LOGIN over TLS only.
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover),
			mail.WithUsername(m.smtp.Username), mail.WithPassword(m.smtp.Password))
	}
	client, err := mail.NewClient(m.host, options...)
	if err != nil {
		return nil, fmt.Errorf("prepare mail client: %w", err)
	}
	return client, nil
}

// passwordMasks hide the password as it is and as PLAIN and LOGIN write it, for
// servers that repeat their input.
func passwordMasks(smtp SMTP) (hide journal.Masks) {
	if smtp.Password == "" {
		return hide
	}
	hide.Know(smtp.Password)
	for _, spoken := range []string{
		smtp.Password, "\x00" + smtp.Username + "\x00" + smtp.Password, smtp.Username + "\x00" + smtp.Username + "\x00" + smtp.Password,
	} {
		hide.Know(base64.StdEncoding.EncodeToString([]byte(spoken)))
	}
	return hide
}

// clean is an error as it may be kept: one line of bounded length without the
// password.
func (m *Mailer) clean(err error) string {
	const longest = 500
	said := []rune(m.secrets.Text(oneLine(strings.ToValidUTF8(err.Error(), "\uFFFD"))))
	if len(said) > longest {
		return string(said[:longest]) + "…"
	}
	return string(said)
}
