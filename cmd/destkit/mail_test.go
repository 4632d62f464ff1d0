package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/destkit/destkit/destsim"
)

// mailPassword is the password of the mail server of the transcripts.
const mailPassword = "mail-password-of-the-test"

// mailServers are all that run, by their address.
var mailServers sync.Map

// mailSession is one conversation of the mail server; letters are handed over
// as they come.
type mailSession struct {
	letters  chan string
	from, to string
	signedIn bool
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if s.signedIn = username == "destkit" && password == mailPassword; !s.signedIn {
			return errors.New("wrong name or password")
		}
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.signedIn {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err == nil {
		s.letters <- fmt.Sprintf("from %s to %s\n%s", s.from, s.to, text)
	}
	return err
}

func (s *mailSession) Reset()        {}
func (s *mailSession) Logout() error { return nil }

// cmdMailserver is `mailserver NAME CAFILE`: it runs a mail server with STARTTLS
// and a login until the script ends, sets $NAME to HOST:PORT, and writes the
// authority of its certificate.
func cmdMailserver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mailserver NAME CAFILE")
	}
	certificates, err := destsim.NewCertificates(nil)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), certificates.CAPEM(), 0o600))
	letters := make(chan string, 10)
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &mailSession{letters: letters}, nil
	}))
	server.Domain, server.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	server.TLSConfig, err = certificates.TLSConfig("")
	ts.Check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	ts.Defer(func() { _ = server.Close(); <-ended })
	mailServers.Store(listener.Addr().String(), letters)
	ts.Setenv(args[0], listener.Addr().String())
}

// cmdMail is `mail NAME`: it waits for the next letter and prints it.
func cmdMail(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mail NAME")
	}
	letters, ok := mailServers.Load(ts.Getenv(args[0]))
	if !ok {
		ts.Fatalf("no mail server is called %s", args[0])
	}
	fmt.Fprintln(ts.Stdout(), <-letters.(chan string))
}
