package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// A ledger in a folder says nothing without the database that its syncs are in: with
// another one it would take rows for sent that no destination has. So both hold the
// same id, made anew with every restore, and count the starts together. A start whose
// two do not fit is refused before anything is changed.

// ErrLedger refuses to start on a ledger that is not that of the database.
var ErrLedger = errors.New("the ledger is not that of the database")

// bindingSetting is the binding as the database has it.
const bindingSetting = "ledger"

// bound is a binding in the database. Moving: the ledger has it, or the one before.
type bound struct {
	ledger.Binding
	Moving bool `json:"moving,omitempty"`
}

func boundOf(tx *store.Tx) (b bound, err error) {
	text, err := tx.Setting(bindingSetting)
	if errors.Is(err, store.ErrNotFound) {
		return bound{}, nil
	}
	if err == nil {
		if err = json.Unmarshal([]byte(text), &b); err != nil {
			err = fmt.Errorf("read setting %s: %w", bindingSetting, err)
		}
	}
	return b, err
}

func (b bound) keep(tx *store.Tx) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return tx.SetSetting(bindingSetting, string(text))
}

// inFolder reports whether the ledger is in a folder of this process.
func (s *Server) inFolder() bool { return s.config.Dir != "" && !s.store.Shared() }

// mismatch is why a start is refused, with the way out.
func (s *Server) mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+"; or move %s away: then the next run of each sync sends everything again, and deletes nothing that left its source before",
		append(append([]any{ErrLedger}, args...), s.below(ledgerFolder))...)
}

// unoccupied refuses to make a database beside the ledger of another one, restored or
// new. Nothing is opened yet, so that nothing of it has to go again.
func (s *Server) unoccupied() error {
	if s.config.Dir == "" || s.config.Store != "" || s.config.Restore == nil && store.HoldsData(s.config.Dir) {
		return nil
	}
	found, err := ledger.Look(s.below(ledgerFolder))
	switch {
	case err != nil && !errors.Is(err, ledger.ErrDamaged):
		return err
	case err == nil && !found.Used:
		return nil
	case s.config.Restore != nil:
		return fmt.Errorf("%w: %s holds the one of another database, which would be taken for that of the restored one: name a new directory, or move that folder away",
			ErrLedger, s.below(ledgerFolder))
	}
	return s.mismatch("its database is gone: put destkit.db back")
}

// fits compares the ledger with the database, before either is changed; next is what
// binds them from this start on.
func (s *Server) fits(ctx context.Context) (next bound, err error) {
	var now bound
	var copied string
	var newest int64
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if copied, err = tx.Copied(); err != nil || !s.inFolder() {
			return err
		}
		if now, err = boundOf(tx); err == nil {
			newest, err = tx.NewestRunID()
		}
		return err
	})
	if err != nil {
		return now, err
	}
	if copied == store.CopiedRestored {
		return now, fmt.Errorf("%w: a restore was interrupted here, and what it left is of two states: restore the snapshot or backup again, into a new directory or an empty schema", ErrLedger)
	}
	if !s.inFolder() {
		return now, nil
	}
	found, err := ledger.Look(s.below(ledgerFolder))
	if errors.Is(err, ledger.ErrDamaged) {
		return now, s.mismatch("its file binding is damaged: put it back from a copy")
	}
	if err != nil {
		return now, err
	}
	if found.Used {
		err = s.compare(now, copied, newest, found)
	}
	if err == nil && (now.ID == "" || copied != "" || !found.Bound || found.Binding.ID != now.ID) {
		now = bound{Binding: ledger.Binding{ID: rand.Text()}}
	}
	if err == nil && !found.Used && newest > 0 {
		s.log.Warn("the ledger holds nothing: the next run of each sync that has run before sends everything again", "folder", s.below(ledgerFolder))
	}
	return now.next(), err
}

// next is the binding of one more start.
func (b bound) next() bound {
	return bound{Binding: ledger.Binding{ID: b.ID, Generation: b.Generation + 1}, Moving: true}
}

// compare reports whether a ledger with runs in it belongs to the database.
func (s *Server) compare(now bound, copied string, newest int64, found ledger.Found) error {
	was := found.Binding
	switch {
	case found.Run > newest:
		return s.mismatch("it has run %d of sync %d, which the database does not know: the database is gone, of another installation or of an earlier day; put back the destkit.db that goes with it", found.Run, found.Sync)
	case copied != "":
		return s.mismatch("the database is a backup that was put beside it: restore a backup into a new directory with --restore, or put back the destkit.db that goes with it")
	// Data of a program that bound nothing yet: its runs are all known.
	case !found.Bound && (now.ID == "" || now.Moving && now.Generation == 1):
	case !found.Bound:
		return s.mismatch("it has no file binding, which the database expects: put back the ledger that goes with it")
	case was.ID != now.ID:
		return s.mismatch("it belongs to another database: put back the destkit.db that goes with it")
	case was.Generation > now.Generation:
		return s.mismatch("it has seen %d starts and the database %d, which is of an earlier day: put back the destkit.db that goes with it", was.Generation, now.Generation)
	// Each run finds by itself whether the state of its sync is older than the
	// database knows it.
	case was.Generation < now.Generation && (!now.Moving || was.Generation != now.Generation-1):
		s.log.Warn("the ledger is of an earlier day than the database: syncs that have run since send everything again",
			"folder", s.below(ledgerFolder), "starts", was.Generation, "starts of the database", now.Generation)
	}
	return nil
}

// bind writes a binding to both. Killed in between, the next start takes either.
func (s *Server) bind(ctx context.Context, next bound) error {
	if !s.inFolder() {
		return nil
	}
	if err := s.store.Update(ctx, next.keep); err != nil {
		return fmt.Errorf("bind the ledger of data directory %s: %w", s.config.Dir, err)
	}
	return s.settleCopy(ctx, next)
}

// settleCopy binds the ledger, and notes in the database that it is done: what lies
// beside the store belongs to it.
func (s *Server) settleCopy(ctx context.Context, next bound) error {
	if s.inFolder() {
		if err := s.ledger.Bind(next.Binding); err != nil {
			return err
		}
	}
	next.Moving = false
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Settled(); err != nil || !s.inFolder() {
			return err
		}
		return next.keep(tx)
	})
	if err != nil {
		return fmt.Errorf("bind the ledger of data directory %s: %w", s.config.Dir, err)
	}
	return nil
}

// bindRestored binds what a restore has put in place, under an id of its own.
func (s *Server) bindRestored(ctx context.Context) error {
	return s.settleCopy(ctx, bound{Binding: ledger.Binding{ID: rand.Text()}}.next())
}
