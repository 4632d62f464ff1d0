// Package sources owns the sources of the service: how one is opened with its
// credentials, the known types, its tables and the columns of a query, a segment or a
// topic, what a sync must know of its source object, which columns its mappings
// follow, and the reaction of a run to changes of them.
package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/background"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// Parts are what sources need of the service.
type Parts struct {
	Shared *call.Shared
	Log    *slog.Logger
	Clock  *clock.Clock
	Work   *background.Work
	// Files and Network say what sources may reach.
	Files   *reach.Files
	Network reach.Network
	Limits  source.Limits
	Folder  string // of emulated warehouses; "": in memory
}

// Sources opens the sources of the service, and knows their types and their tables.
type Sources struct {
	Parts
	catalogue atomic.Pointer[source.Catalogue]
	plans     background.Flights
}

// New knows the types of the program.
func New(p Parts) *Sources {
	k := &Sources{Parts: p}
	k.catalogue.Store(source.BuiltIn())
	return k
}

// Declare puts other types in the place of those that there are.
func (k *Sources) Declare(types *source.Catalogue) { k.catalogue.Store(types) }

// Execute runs statements on an emulated warehouse, all of them or none.
func (k *Sources) Execute(ctx context.Context, access Access, sql string) error {
	// A real source has an owner, and is only ever read.
	if !k.Described(access.Type).Emulated {
		return problem.Refuse(http.StatusBadRequest, "source %d is of type %s; statements run on emulated warehouses only", access.ID, access.Type)
	}
	// A statement that never ends must not hold the call, nor a restore that waits
	// for it.
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	// The credentials of the documented failing test fail here as well.
	src, err := access.Open(ctx)
	if err != nil {
		return problem.Refuse(http.StatusBadRequest, "the source cannot be opened: %s", access.Clean(err.Error()))
	}
	defer src.Close()
	if err := source.Execute(ctx, src, strings.TrimSpace(sql)); err != nil {
		return problem.InvalidField("sql", "%s", access.Clean(err.Error()))
	}
	return nil
}

// Rediscover brings the stored tables up to date with the source. Calls at the
// same time share one attempt, which no single client can end. The error holds
// no secret.
func (k *Sources) Rediscover(ctx context.Context, a Access) error {
	discover := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, Timeout)
		defer cancel()
		tables, err := a.tables(ctx)
		if err != nil {
			return errors.New(a.Clean(err.Error()))
		}
		return k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
			if changed, err := a.Changed(tx); changed || err != nil {
				return err
			}
			return tx.PutSourceTables(a.ID, tables)
		})
	}
	return k.plans.Once(ctx, k.Work.Later, fmt.Sprintf("tables of source %d", a.ID), discover)
}

// Changed reports whether the connection changed after the call: its update
// has discovered the tables of the new one.
func (a Access) Changed(tx *store.Tx) (bool, error) {
	src, err := store.Sources.Read(tx, a.workspaceID, a.ID)
	if err != nil {
		return false, err
	}
	return src.Version != a.version, nil
}

// sourceTypes are the types that there are at this moment: those of the program,
// and those that were declared.
func (k *Sources) Types() *source.Catalogue { return k.catalogue.Load() }

// sourceType describes one type; the zero value is an unknown one.
func (k *Sources) Described(name string) source.Description {
	described, _ := k.Types().Type(name)
	return described
}

// sourceTypeNames are the words of "type" in a connection to a source.
func (k *Sources) TypeNames() []string {
	var names []string
	for _, t := range k.Types().Types() {
		names = append(names, t.ServiceName)
	}
	return names
}

// TypeName is the name of a type by which it is kept; others stay as they are.
func (k *Sources) TypeName(typ string) string { return k.Types().Name(typ) }
