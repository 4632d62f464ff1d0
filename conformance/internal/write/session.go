// Package write is the only way in which the judge sends records: it makes them, sends them in
// batches within permission, journal and budget, and knows what the results report and what must
// exist then. Package judge decides whether that breaks a rule.
package write

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/values"
)

// Session is a run that may write: what it has found, sent and learned.
type Session struct {
	line.Session
	Catalog *Catalog // what discovery found
	Journal *journal.Journal
	Ledger  model.Ledger
	Keys    *values.Keys
	Made    values.Maker
	// Late is how long after its acknowledgement a write arrives, by the trial; 0: at once.
	Late      time.Duration
	neverLate sync.Map // objects and operations of which nothing came later
	syncRuns  atomic.Int64
	// HookShown holds the objects of which the read-back hook has shown a record.
	HookShown sync.Map
	hookHides sync.Map // by object and field: the hook cannot show it as it was sent
}

// OpenJournal makes the write-ahead journal, in a file where a killed run must be cleaned up.
func (s *Session) OpenJournal() error {
	header := journal.Header{Run: s.Opts.RunID, Target: s.Redactor.String(s.Target.URL), Started: time.Now().UTC()}
	if s.Opts.Journal == "" || !s.Opts.Write {
		s.Journal = journal.Memory(header)
		return nil
	}
	j, err := journal.Create(s.Opts.Journal, header)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return err
	case err != nil:
		return conformance.Usage("%v", err)
	}
	s.Journal = j
	for _, k := range j.Pending() { // of an earlier part of the run
		s.Ledger.Doubt(model.Place{Object: k.Object, Field: k.Field, Key: exchange.KeyText(k.Identifier)})
	}
	return nil
}

// DropJournal removes the journal of a run that sent nothing: the corrected command uses the file.
func (s *Session) DropJournal() {
	if len(s.Journal.Pending()) == 0 && s.Journal.Path() != "" {
		s.Journal.Close()
		os.Remove(s.Journal.Path())
		s.Opts.Journal = "" // there is none to report
	}
}

// CloseJournal ends the journal, if the run has come to one.
func (s *Session) CloseJournal() {
	if s.Journal != nil {
		_ = s.Journal.Close() // every line is on disk already
	}
}

// BeginWrites makes what names the records of a run.
func (s *Session) BeginWrites() (err error) {
	s.Keys, err = NewKeys(s.Opts)
	s.Made = values.NewMaker(s.Opts.RunID)
	s.syncRuns.Store(600)
	return err
}

// NewKeys makes the keys of a run that carry its options.
func NewKeys(o conformance.Options) (*values.Keys, error) {
	if !utf8.ValidString(o.KeyTemplate + o.RunID) {
		return nil, conformance.Usage("key template %q with run id %q is not UTF-8", o.KeyTemplate, o.RunID)
	}
	return values.NewKeys(o.RunID, o.KeyTemplate, o.KeyFrom, o.KeyTo), nil
}

// TLSJudged reports whether the TLS checks run (spec 5.2.1): not in development.
func (s *Session) TLSJudged() bool { return !s.Dev }

// Handshake looks at the certificate once per attempt of a run.
func (s *Session) Handshake(ctx context.Context) *rules.Handshake {
	f := &rules.Handshake{Name: s.URL.Hostname(), Roots: s.Opts.Roots, Now: time.Now()}
	cfg := &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	if net.ParseIP(f.Name) == nil {
		cfg.ServerName = f.Name
	}
	state, err := s.Client.Handshake(ctx, cfg)
	if f.Err = err; err == nil {
		f.Version, f.Chain = state.Version, state.PeerCertificates
	}
	return f
}

// Trusted reports whether a token may travel over this line.
func (s *Session) Trusted(ctx context.Context) bool {
	f := s.Handshake(ctx)
	return f.Err != nil || f.Verify(f.Name, f.Now) == nil // discovery reports that nothing answers
}
