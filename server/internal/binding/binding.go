// Package binding checks that a ledger in a folder belongs to the database next to it. A
// ledger without the database of its syncs proves nothing: with another one it would take
// rows for sent that no destination has. So both hold the same id, created again with every
// restore, and count the starts together. A start whose two do not fit is refused before
// anything is changed. The ledger's content is left to sync/ledger.
package binding

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Folder holds the ledger in a data directory.
const Folder = "ledger"

// Binding binds the ledger of a service and its database.
type Binding struct {
	Shared *call.Shared // its store may be opened later
	Log    *slog.Logger
	Dir    string // the data directory with the ledger; "" in memory
	Ledger func() *ledger.Ledger
}

// ErrLedger refuses to start on a ledger that is not that of the database.
var ErrLedger = errors.New("the ledger is not that of the database")

// Setting is the binding as the database has it.
const Setting = "ledger"

// Bound is a binding in the database. Moving: the ledger has it, or the one before.
type Bound struct {
	ledger.Binding
	Moving bool `json:"moving,omitempty"`
}

func boundOf(tx *store.Tx) (b Bound, err error) {
	text, err := tx.Setting(Setting)
	if errors.Is(err, store.ErrNotFound) {
		return Bound{}, nil
	}
	if err == nil {
		if err = json.Unmarshal([]byte(text), &b); err != nil {
			err = fmt.Errorf("read setting %s: %w", Setting, err)
		}
	}
	return b, err
}

func (b Bound) keep(tx *store.Tx) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return tx.SetSetting(Setting, string(text))
}

// inFolder reports whether the ledger is in a folder of this process.
func (k *Binding) inFolder() bool { return k.Dir != "" }

func (k *Binding) folder() string { return filepath.Join(k.Dir, Folder) }

// mismatch is why a start is refused, with the way out.
func (k *Binding) mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+"; or move %s away: then the next run of each sync sends everything again, and deletes nothing that left its source before",
		append(append([]any{ErrLedger}, args...), k.folder())...)
}

// Unoccupied refuses to create a database, restored or new, next to the ledger of
// another one. Nothing is opened yet, so nothing has to be undone.
func (k *Binding) Unoccupied(restored bool) error {
	if !k.inFolder() || !restored && store.HoldsData(k.Dir) {
		return nil
	}
	found, err := ledger.Look(k.folder())
	switch {
	case err != nil && !errors.Is(err, ledger.ErrDamaged):
		return err
	case err == nil && !found.Used:
		return nil
	case restored:
		return fmt.Errorf("%w: %s holds the one of another database, which would be taken for that of the restored one: name a new directory, or move that folder away",
			ErrLedger, k.folder())
	}
	return k.mismatch("its database is gone: put destkit.db back")
}

// Fits compares the ledger with the database, before either is changed; next is what
// binds them from this start on.
func (k *Binding) Fits(ctx context.Context) (next Bound, err error) {
	var now Bound
	var copied string
	var newest int64
	err = k.Shared.Store.View(ctx, func(tx *store.Tx) error {
		if copied, err = tx.Copied(); err != nil || !k.inFolder() {
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
		return now, fmt.Errorf("%w: a restore was interrupted here, and what it left is of two states: restore the snapshot or backup again, into a new directory", ErrLedger)
	}
	if !k.inFolder() {
		return now, nil
	}
	found, err := ledger.Look(k.folder())
	if errors.Is(err, ledger.ErrDamaged) {
		return now, k.mismatch("its file binding is damaged: put it back from a copy")
	}
	if err != nil {
		return now, err
	}
	if found.Used {
		err = k.compare(now, copied, newest, found)
	}
	if err == nil && (now.ID == "" || copied != "" || !found.Bound || found.Binding.ID != now.ID) {
		now = Bound{Binding: ledger.Binding{ID: rand.Text()}}
	}
	if err == nil && !found.Used && newest > 0 {
		k.Log.Warn("the ledger holds nothing: the next run of each sync that has run before sends everything again", "folder", k.folder())
	}
	return now.next(), err
}

// next is the binding of one more start.
func (b Bound) next() Bound {
	return Bound{Binding: ledger.Binding{ID: b.ID, Generation: b.Generation + 1}, Moving: true}
}

// compare reports whether a ledger with runs in it belongs to the database.
func (k *Binding) compare(now Bound, copied string, newest int64, found ledger.Found) error {
	was := found.Binding
	switch {
	case found.Run > newest:
		return k.mismatch("it has run %d of sync %d, which the database does not know: the database is gone, of another installation or of an earlier day; put back the destkit.db that goes with it", found.Run, found.Sync)
	case copied != "":
		return k.mismatch("the database is a backup that was put beside it: restore a backup into a new directory with --restore, or put back the destkit.db that goes with it")
	// Data of a program that bound nothing yet: its runs are all known.
	case !found.Bound && (now.ID == "" || now.Moving && now.Generation == 1):
	case !found.Bound:
		return k.mismatch("it has no file binding, which the database expects: put back the ledger that goes with it")
	case was.ID != now.ID:
		return k.mismatch("it belongs to another database: put back the destkit.db that goes with it")
	case was.Generation > now.Generation:
		return k.mismatch("it has seen %d starts and the database %d, which is of an earlier day: put back the destkit.db that goes with it", was.Generation, now.Generation)
	// Each run finds by itself whether the state of its sync is older than the
	// database knows it.
	case was.Generation < now.Generation && (!now.Moving || was.Generation != now.Generation-1):
		k.Log.Warn("the ledger is of an earlier day than the database: syncs that have run since send everything again",
			"folder", k.folder(), "starts", was.Generation, "starts of the database", now.Generation)
	}
	return nil
}

// Bind writes a binding to both. Killed in between, the next start takes either.
func (k *Binding) Bind(ctx context.Context, next Bound) error {
	if !k.inFolder() {
		return nil
	}
	if err := k.Shared.Store.Update(ctx, next.keep); err != nil {
		return fmt.Errorf("bind the ledger of data directory %s: %w", k.Dir, err)
	}
	return k.settle(ctx, next)
}

// settle binds the ledger, and notes in the database that it is done: the files
// next to the store belong to it.
func (k *Binding) settle(ctx context.Context, next Bound) error {
	if k.inFolder() {
		if err := k.Ledger().Bind(next.Binding); err != nil {
			return err
		}
	}
	next.Moving = false
	err := k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Settled(); err != nil || !k.inFolder() {
			return err
		}
		return next.keep(tx)
	})
	if err != nil {
		return fmt.Errorf("bind the ledger of data directory %s: %w", k.Dir, err)
	}
	return nil
}

// BindRestored binds what a restore has put in place, under a new id.
func (k *Binding) BindRestored(ctx context.Context) error {
	return k.settle(ctx, Bound{Binding: ledger.Binding{ID: rand.Text()}}.next())
}
