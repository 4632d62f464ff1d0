package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// The ways of Config.SMTP to be encrypted.
const (
	SMTPStartTLS = "starttls" // the default: STARTTLS or nothing is sent
	SMTPImplicit = "tls"      // TLS from the first byte, as on port 465
	SMTPPlain    = "none"     // for servers of tests; a password is then never sent in clear
)

// SMTP names the mail server that gets a copy of every e-mail. The zero value
// has none: e-mails are kept in the mailbox only.
type SMTP struct {
	// Addr is host:port.
	Addr string
	// Username and Password; "" sends without authentication. The password is a
	// secret.
	Username, Password string
	// From is the sender of every e-mail; needed with Addr.
	From string
	// TLS is SMTPStartTLS (default), SMTPImplicit or SMTPPlain.
	TLS string
	// Timeout bounds one conversation, in real time; DefaultSMTPTimeout when zero.
	Timeout time.Duration
}

// DefaultSender is used where no mail server is named; the domain exists
// nowhere (RFC 2606).
const DefaultSender = "no-reply@service.invalid"

// mailDelays are the waits before each further attempt: mail servers that say
// "later" (greylisting) mean minutes.
var mailDelays = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}

// Mailer keeps e-mails in the mailbox and sends a copy to the mail server, where
// there is one.
type Mailer struct {
	Sending
	gate       *destination.Gate // its authorities are those that mail servers are checked against
	keeps      func(*store.Mail) bool
	smtp       SMTP
	host, port string
	secrets    journal.Masks
	outbox     *outbox
}

// NewMailer checks the configuration; the error holds no password. keeps selects
// the mails to keep; nil: all.
func NewMailer(parts Sending, gate *destination.Gate, smtp SMTP, keeps func(*store.Mail) bool) (*Mailer, error) {
	if err := smtp.Check(); err != nil {
		return nil, err
	}
	m := &Mailer{Sending: parts, gate: gate, keeps: keeps, smtp: smtp}
	m.outbox = &outbox{Sending: parts, name: "mail", open: openMails, send: m.deliver}
	if smtp.Addr != "" {
		m.host, m.port, _ = net.SplitHostPort(smtp.Addr)
		m.secrets = passwordMasks(smtp)
	}
	return m, nil
}

// Check returns what is wrong with the configuration, without the password;
// nil for the zero value. It sends nothing.
func (c SMTP) Check() error {
	if c.Addr == "" {
		if c != (SMTP{}) {
			return errors.New("mail server: an address is needed: host:port")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil || host == "" {
		return fmt.Errorf("mail server: the address %q is not host:port", foreign.Clip(c.Addr, 64))
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("mail server: the port of %q is not 1 to 65535", foreign.Clip(c.Addr, 64))
	}
	if from, err := mail.ParseAddress(c.From); err != nil || from.Address != c.From {
		return fmt.Errorf("mail server: the sender %q is not an address such as alerts@example.com", foreign.Clip(c.From, 64))
	}
	switch c.TLS {
	case "", SMTPStartTLS, SMTPImplicit, SMTPPlain:
	default:
		return fmt.Errorf("mail server: unknown way of TLS %q: must be one of %s, %s, %s", foreign.Clip(c.TLS, 64), SMTPStartTLS, SMTPImplicit, SMTPPlain)
	}
	if c.Timeout < 0 {
		return fmt.Errorf("mail server: the deadline must be longer than nothing, not %s", c.Timeout)
	}
	if (c.Username == "") != (c.Password == "") {
		return errors.New("mail server: user name and password go together")
	}
	return nil
}

// sender is the address that e-mails come from.
func (m *Mailer) sender() string {
	if m.smtp.From != "" {
		return m.smtp.From
	}
	return DefaultSender
}

// Keep puts an e-mail into the mailbox within a change, and has it sent when
// that is done.
func (m *Mailer) Keep(tx *store.Tx, message *store.Mail) error {
	if m.keeps != nil && !m.keeps(message) {
		return nil
	}
	message.From = m.sender()
	if m.smtp.Addr == "" {
		return store.Mails.Create(tx, message)
	}
	message.Delivery = store.DeliveryOpen
	if err := store.Mails.Create(tx, message); err != nil {
		return err
	}
	m.outbox.wake()
	return nil
}

// Resume goes on with what a stopped process, or the world of a snapshot, has
// left open.
func (m *Mailer) Resume(ctx context.Context) {
	if m.smtp.Addr != "" {
		m.outbox.look(ctx)
	}
}

// Forget drops what waits, before another world takes the place of this one.
func (m *Mailer) Forget() { m.outbox.forget() }

// openMails is what the outbox of mails looks for. There is one receiver: the
// mail server.
func openMails(tx *store.Tx, after int64) ([]outgoing, error) {
	rows, err := tx.OpenMails(after)
	list := make([]outgoing, len(rows))
	for i, m := range rows {
		list[i] = outgoing{id: m.ID, at: m.NextAttempt}
	}
	return list, err
}

// deliver makes one attempt.
func (m *Mailer) deliver(ctx context.Context, id int64, keep func(func(*store.Tx) error) error) (time.Time, error) {
	message, err := store.Read(ctx, m.Shared.Store, func(tx *store.Tx) (*store.Mail, error) { return store.Mails.Any(tx, id) })
	if err != nil || message.Delivery != store.DeliveryOpen {
		return time.Time{}, err
	}
	permanent, err := m.transmit(ctx, message)
	if err != nil && ctx.Err() != nil { // not the server's fault: it does not count
		return time.Time{}, ctx.Err()
	}
	message.Attempts++
	message.NextAttempt, message.Error = time.Time{}, ""
	switch {
	case err == nil:
		message.Delivery = store.DeliveryDelivered
	case permanent || message.Attempts > int64(len(mailDelays)):
		message.Delivery, message.Error = store.DeliveryFailed, m.clean(err)
	default:
		message.NextAttempt, message.Error = m.Clock.Now().Add(mailDelays[message.Attempts-1]), m.clean(err)
	}
	if err != nil {
		m.Log.Warn("e-mail not sent", "mail", message.ID, "server", m.smtp.Addr, "attempt", message.Attempts, "error", message.Error)
	}
	return message.NextAttempt, keep(func(tx *store.Tx) error { return store.Mails.Save(tx, message) })
}

// recipients are those who get alerts: the users of a workspace with
// notifications, and its further addresses, each once (spec 2.6, 2.14).
func recipients(tx *store.Tx, w *store.Workspace) ([]string, error) {
	members, _, err := tx.Members(w.ID, store.Page{Ascending: true})
	if err != nil {
		return nil, err
	}
	var list []string
	seen := map[string]bool{}
	add := func(address string) {
		address = strings.TrimSpace(address)
		if key := strings.ToLower(address); address != "" && !seen[key] {
			seen[key] = true
			list = append(list, address)
		}
	}
	for _, member := range members {
		if member.User.Notifications {
			add(member.User.Email)
		}
	}
	for _, address := range w.NotificationEmails {
		add(address)
	}
	return list, nil
}

// mailNotice writes a separate e-mail to each recipient of alerts: no one sees
// the addresses of others, and one refused address does not affect the others.
func (l *Lifecycle) mailNotice(tx *store.Tx, y *store.Sync, body lifecycleBody) error {
	w, err := store.Workspaces.Any(tx, y.WorkspaceID)
	if err != nil {
		return err
	}
	to, err := recipients(tx, w)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("Sync %d", y.ID)
	if label := oneLine(api.Value(y.Config.Label)); label != "" {
		name = label
	}
	kind := "alert"
	if body.Event == EventResolved {
		kind = "recovery"
	}
	text := fmt.Sprintf("%s\n\nSync: %s (%d)\nRun: %d\nWorkspace: %s\n\n%s.\n\n%s\n",
		body.Message, name, y.ID, body.SyncRunID, oneLine(w.Name), strings.TrimRight(body.Details, "."), body.FollowupURL)
	for _, address := range to {
		err := l.Mail.Keep(tx, &store.Mail{
			OrganizationID: w.OrganizationID, WorkspaceID: &w.ID, Kind: kind, To: []string{address},
			Subject: name + ": " + body.Message, Text: text,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// oneLine makes a name safe for a header.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}

// followupURL is where a notice sends people: the run in the API. Without a
// BaseURL only its path is known.
func followupURL(baseURL string, runID int64) string {
	path := fmt.Sprintf("%s/sync_runs/%d", api.BasePath, runID)
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" {
		return path
	}
	return base.JoinPath(fmt.Sprintf("sync_runs/%d", runID)).String()
}
