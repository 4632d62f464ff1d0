package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/store"
)

// post is a mail server.
type post struct {
	addr string
	cert []byte // PEM

	mu      sync.Mutex
	refuse  []error // of the letters to come, by recipient command
	letters []letter
	users   []string // who has signed in
}

type letter struct {
	from string
	to   []string
	text string
}

const mailPassword = "mail-password-secret"

// newPost starts a mail server that requires a password where signIn is set.
func newPost(t *testing.T, signIn, implicit bool) *post {
	t.Helper()
	p := &post{}
	https := httptest.NewUnstartedServer(http.NotFoundHandler()) // lends its certificate
	https.StartTLS()
	p.cert = pemOf(https)
	secure := &tls.Config{Certificates: https.TLS.Certificates}
	https.Close()
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		s := &session{p: p}
		if signIn {
			return &secureSession{s}, nil
		}
		return s, nil
	}))
	server.Domain, server.TLSConfig, server.ErrorLog = "localhost", secure, log.New(io.Discard, "", 0)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	p.addr = listener.Addr().String()
	if implicit {
		listener = tls.NewListener(listener, secure)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return p
}

func (p *post) take() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.letters
	p.letters = nil
	return list
}

func (p *post) refuses(errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = errs
}

// session is one conversation of the mail server.
type session struct {
	p  *post
	at letter
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.at = letter{from: from}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if len(s.p.refuse) > 0 {
		err := s.p.refuse[0]
		if s.p.refuse = s.p.refuse[1:]; err != nil {
			return err
		}
	}
	s.at.to = append(s.at.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.at.text = string(text)
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.letters = append(s.p.letters, s.at)
	return err
}

func (s *session) Reset()        { s.at = letter{} }
func (s *session) Logout() error { return nil }

// secureSession requires a password, and repeats a wrong one as bad servers do.
type secureSession struct{ *session }

func (s *secureSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *secureSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if password != mailPassword {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "no: " + password}
		}
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		s.p.users = append(s.p.users, username)
		return nil
	}), nil
}

// mailed is a world that sends its e-mails to a mail server.
func mailed(t *testing.T, p *post, change func(*lifecycle.SMTP)) *world {
	return frozen(t, func(c *Config) {
		c.SMTP = lifecycle.SMTP{Addr: p.addr, From: "alerts@example.com", TLS: lifecycle.SMTPPlain}
		c.Trusted = p.cert
		if change != nil {
			change(&c.SMTP)
		}
	})
}

// mail has an e-mail sent.
func (w *world) mail(to, subject, text string) {
	w.t.Helper()
	w.change(func(tx *store.Tx) error {
		return w.s.mail.Keep(tx, &store.Mail{OrganizationID: 1, Kind: "alert", To: []string{to}, Subject: subject, Text: text})
	})
	w.settle()
}

func (w *world) mailbox() *answer { return w.control("GET", "/mailbox", nil).want(200) }

// TestMailIsSent: over each way of TLS, and with a password over TLS.
func TestMailIsSent(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	for name, tc := range map[string]struct {
		way              string
		signIn, implicit bool
	}{
		"plain":                   {lifecycle.SMTPPlain, false, false},
		"STARTTLS by default":     {"", false, false},
		"STARTTLS":                {lifecycle.SMTPStartTLS, true, false},
		"TLS from the first byte": {lifecycle.SMTPImplicit, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t, tc.signIn, tc.implicit)
			w := mailed(t, p, func(c *lifecycle.SMTP) {
				if c.TLS = tc.way; tc.signIn {
					c.Username, c.Password = "destkit", mailPassword
				}
			})
			w.mail("ada@example.com", "Zürich\r\nBcc: eve@example.com", "Line 1\n.\nä line\n")
			list := p.take()
			require.Len(t, list, 1)
			require.Equal(t, "alerts@example.com", list[0].from)
			require.Equal(t, []string{"ada@example.com"}, list[0].to)
			read := must(mail.ReadMessage(strings.NewReader(list[0].text)))(t)
			require.Empty(t, read.Header.Get("Bcc"))
			require.Contains(t, read.Header.Get("Subject"), "Z=C3=BCrich")
			date := must(read.Header.Date())(t)
			require.Equal(t, w.s.Clock().Now().Unix(), date.Unix())
			require.Equal(t, "delivered", w.mailbox().at("mails.0.delivery"))
			if tc.signIn {
				require.Equal(t, []string{"destkit"}, p.users)
			}
		})
	}
}

// TestMailOfAlertsAndInvitations: all that the mailbox gets is sent.
func TestMailOfAlertsAndInvitations(t *testing.T) {
	p := newPost(t, false, false)
	w := mailed(t, p, nil)
	w.run(w.newSync(), "broken")
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "bob@example.com", "role": "member"}).want(200)
	w.settle()
	list := p.take()
	require.Len(t, list, 2)
	require.Contains(t, list[0].text, "Subject: Customers: Sync Failed")
	require.Equal(t, []string{"bob@example.com"}, list[1].to)
	require.Equal(t, "alerts@example.com", w.mailbox().at("mails.0.from"))
}

// TestMailRetries: "later" means later, "never" means never, and five retries
// are enough.
func TestMailRetries(t *testing.T) {
	later := &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "greylisted, try\r\nlater"}
	never := &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	p := newPost(t, false, false)
	w := mailed(t, p, nil)
	start := w.s.Clock().Now()
	p.refuses(later, nil, never)
	w.mail("ada@example.com", "one", "")
	require.Empty(t, p.take())
	shown := w.mailbox()
	require.Equal(t, "open", shown.at("mails.0.delivery"))
	require.Contains(t, shown.at("mails.0.error"), "greylisted")
	require.Equal(t, start.Add(time.Minute).Format("2006-01-02T15:04:05.000Z"), shown.at("mails.0.next_attempt_at"))
	w.advance(time.Minute)
	first := p.take()
	require.Len(t, first, 1)

	w.mail("gone@example.com", "two", "")
	shown = w.mailbox()
	shown.is("mails.0.delivery", "failed", "mails.0.next_attempt_at", nil)

	p.refuses(later, later, later, later, later, later)
	w.mail("ada@example.com", "three", "")
	w.advance(24 * time.Hour)
	shown = w.mailbox()
	shown.is("mails.0.delivery", "failed", "mails.0.attempts", 6)
	require.Empty(t, p.take())
}

// TestMailServerIsAway: attempts go on until it is back, in the next process
// too, and each letter comes once.
func TestMailServerIsAway(t *testing.T) {
	p := newPost(t, false, false)
	w := newWorld(t, inDir(t), func(c *Config) {
		c.SystemClock = func() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }
		c.SMTP = lifecycle.SMTP{Addr: "127.0.0.1:1", From: "alerts@example.com", TLS: lifecycle.SMTPPlain}
	})
	w.mail("ada@example.com", "one", "")
	w.mail("bob@example.com", "two", "")
	require.Contains(t, w.mailbox().at("mails.0.error"), "connect")
	w.s.config.SMTP.Addr = p.addr
	w.again(nil)
	w.settle()
	require.Empty(t, p.take())
	w.advance(time.Minute)
	list := p.take()
	require.Len(t, list, 2)
	require.Equal(t, []string{"ada@example.com"}, list[0].to)
	w.advance(24 * time.Hour)
	require.Empty(t, p.take())
}

// TestMailServerThatSaysNothing: an attempt ends with its deadline, and the run
// that it reports has ended before.
func TestMailServerThatSaysNothing(t *testing.T) {
	silent := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	w := frozen(t, func(c *Config) {
		c.SMTP = lifecycle.SMTP{Addr: silent.Addr().String(), From: "alerts@example.com", TLS: lifecycle.SMTPPlain, Timeout: 50 * time.Millisecond}
	})
	id := w.do("POST", "/syncs", w.key, syncBody(w.newSource(), w.newDestination())).want(200).id("data.sync_id")
	w.changeSource("DROP TABLE customers")
	run := w.trigger(id)
	w.settle()
	require.Equal(t, "failed", w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).at("data.status"))
	mails := w.mailbox()
	require.Equal(t, "open", mails.at("mails.0.delivery"))
	require.Contains(t, mails.at("mails.0.error"), "timeout")
	require.EqualValues(t, 1, mails.id("mails.0.attempts"))
}

// TestMailPasswordStaysSecret: also where a server repeats it, and it is not
// sent over a connection that anybody can read.
func TestMailPasswordStaysSecret(t *testing.T) {
	var said sayings
	p := newPost(t, true, false)
	for name, way := range map[string]string{"wrong password": lifecycle.SMTPStartTLS, "in clear": lifecycle.SMTPPlain} {
		t.Run(name, func(t *testing.T) {
			const wrong = "wrong-password-secret"
			w := frozen(t, func(c *Config) {
				c.Log = slog.New(slog.NewTextHandler(&said, nil))
				c.Trusted = p.cert
				c.SMTP = lifecycle.SMTP{Addr: p.addr, From: "alerts@example.com", TLS: way, Username: "destkit", Password: wrong}
			})
			w.mail("ada@example.com", "one", "")
			require.Equal(t, "open", w.mailbox().at("mails.0.delivery"))
			require.NotEmpty(t, w.mailbox().at("mails.0.error"))
			require.NotContains(t, said.String()+string(w.mailbox().text), wrong)
			require.Empty(t, p.users)
		})
	}
	require.Contains(t, said.String(), "e-mail not sent")
}

// TestMailServerIsChecked: a mail server without trust gets nothing.
func TestMailServerIsChecked(t *testing.T) {
	p := newPost(t, false, false)
	p.cert = nil
	w := mailed(t, p, func(c *lifecycle.SMTP) { c.TLS = lifecycle.SMTPStartTLS })
	w.mail("ada@example.com", "one", "")
	require.Contains(t, w.mailbox().at("mails.0.error"), "certificate")
	require.Empty(t, p.take())
}

func TestMailSettings(t *testing.T) {
	good := lifecycle.SMTP{Addr: "mail.example.com:587", From: "alerts@example.com"}
	for name, tc := range map[string]struct {
		change  func(*lifecycle.SMTP)
		message string
	}{
		"good":              {func(*lifecycle.SMTP) {}, ""},
		"none":              {func(c *lifecycle.SMTP) { *c = lifecycle.SMTP{} }, ""},
		"no address":        {func(c *lifecycle.SMTP) { c.Addr = "" }, "an address is needed"},
		"no port":           {func(c *lifecycle.SMTP) { c.Addr = "mail.example.com" }, "is not host:port"},
		"no host":           {func(c *lifecycle.SMTP) { c.Addr = ":25" }, "is not host:port"},
		"port too high":     {func(c *lifecycle.SMTP) { c.Addr = "m:70000" }, "is not 1 to 65535"},
		"no sender":         {func(c *lifecycle.SMTP) { c.From = "" }, "is not an address"},
		"sender with name":  {func(c *lifecycle.SMTP) { c.From = "A <a@example.com>" }, "is not an address"},
		"unknown TLS":       {func(c *lifecycle.SMTP) { c.TLS = "ssl" }, "must be one of starttls, tls, none"},
		"user alone":        {func(c *lifecycle.SMTP) { c.Username = "u" }, "go together"},
		"password alone":    {func(c *lifecycle.SMTP) { c.Password = mailPassword }, "go together"},
		"password, no port": {func(c *lifecycle.SMTP) { c.Addr, c.Username, c.Password = "m", "u", mailPassword }, "is not host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			smtp := good
			tc.change(&smtp)
			s, err := New(t.Context(), Config{SMTP: smtp})
			if tc.message == "" {
				require.NoError(t, err)
				require.NoError(t, s.Close())
				return
			}
			require.ErrorContains(t, err, tc.message)
			require.NotContains(t, err.Error(), mailPassword)
		})
	}
}

// TestMailboxWithoutServer: without a mail server nothing waits to be sent.
func TestMailboxWithoutServer(t *testing.T) {
	w := frozen(t)
	w.run(w.newSync(), "broken")
	shown := w.mailbox()
	shown.is("mails.0.delivery", "", "mails.0.from", lifecycle.DefaultSender)
	require.Empty(t, w.advance(24*time.Hour))
}
