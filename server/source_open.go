package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// sourceTimeout bounds a connection test, a discovery and the check of a query,
// in real time: a database that hangs must not hold a call for ever.
const sourceTimeout = 30 * time.Second

// sourceAccess is all that it takes to open a source outside a transaction.
type sourceAccess struct {
	types       *source.Catalogue
	workspaceID int64
	id          int64 // 0 for one that is not stored yet
	version     int64 // of the row that the credentials belong to
	typ         string
	engine      string // basic, advanced
	credentials map[string]json.RawMessage
	options     source.Options
	refused     error // why it cannot be opened here
}

// sourceAccess reads the credentials of a stored source.
func (s *Server) sourceAccess(tx *store.Tx, src *store.Source) (sourceAccess, error) {
	credentials, err := tx.SourceCredentials(src.ID)
	if err != nil {
		return sourceAccess{}, fmt.Errorf("read credentials of source %d: %w", src.ID, err)
	}
	a := sourceAccess{
		s.sourceTypes(), src.WorkspaceID, src.ID, src.Version, src.Type, src.Engine, credentials, s.sourceOptions(src.ID), s.homeless(src.Type),
	}
	a.options.Advanced, a.options.Since = a.keepsState(), src.CreatedAt
	return a, nil
}

// sourceOptions says where an emulated warehouse keeps its tables: in a file of
// its own below the data directory, or in memory.
func (s *Server) sourceOptions(id int64) source.Options {
	options := source.Options{Files: s.reached.files, Network: &s.reached.network, Topics: storedTopics{s, id}, Now: s.clock.Now,
		Limits: source.Limits{Row: s.config.MaxRow, Query: s.config.QueryTimeout}}
	if options.Warehouse = s.warehouseFile(id); options.Warehouse == "" {
		options.Key = s.warehouseKey(fmt.Sprintf("source-%d", id))
	}
	return options
}

// warehousesInMemory are the keys in use, of all services of this process.
var warehousesInMemory sync.Map

// warehouseKey names a warehouse in memory, which lives until this service
// ends, and which no other service shares.
func (s *Server) warehouseKey(name string) string {
	key := fmt.Sprintf("%p/%s", s, name)
	if _, known := warehousesInMemory.LoadOrStore(key, true); !known {
		context.AfterFunc(s.background.Ctx, func() { forgetWarehouse(key) })
	}
	return key
}

// forgetWarehouse drops a warehouse in memory.
func forgetWarehouse(key string) {
	source.Forget(key)
	warehousesInMemory.Delete(key)
}

// warehouseFile is the database of an emulated warehouse; "" in memory.
func (s *Server) warehouseFile(id int64) string {
	folder := s.below("warehouses")
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, fmt.Sprintf("source-%d.db", id))
}

// open connects to the source. Close it.
func (a sourceAccess) open(ctx context.Context) (source.Source, error) {
	if a.refused != nil {
		return nil, a.refused
	}
	return a.types.Open(ctx, a.typ, a.credentials, a.options)
}

// inferred reports whether the types of its columns are guessed from rows.
func (a sourceAccess) inferred() bool {
	described, _ := a.types.Type(a.typ)
	return described.Inferred
}

// openAt is open with the columns of an object; see Catalogue.OpenAt.
func (a sourceAccess) openAt(ctx context.Context, o source.Object) (src source.Source, columns []api.Column, missing, err error) {
	if a.refused != nil {
		return nil, nil, nil, a.refused
	}
	return a.types.OpenAt(ctx, a.typ, a.credentials, a.options, o)
}

// forget drops what an emulated warehouse keeps, when its source is no more.
func (a sourceAccess) forget() error {
	if a.options.Warehouse == "" {
		forgetWarehouse(a.options.Key)
		return nil
	}
	var failures []error
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(a.options.Warehouse + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// tables discovers the tables and their columns.
func (a sourceAccess) tables(ctx context.Context) ([]api.Table, error) {
	src, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return src.Tables(ctx)
}

// probe tests the connection and, where that works, discovers the tables. why
// is empty for success; otherwise it says which step failed and holds no secret.
func (a sourceAccess) probe(ctx context.Context) (tables []api.Table, why string) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	if a.refused != nil {
		return nil, "open: " + a.refused.Error()
	}
	for _, step := range a.types.Test(ctx, a.typ, a.credentials, a.options).Steps {
		if step.Status == api.StepFailed {
			return nil, fmt.Sprintf("%s: %s", step.Step, step.Error.Message)
		}
	}
	tables, err := a.tables(ctx)
	if err != nil {
		return nil, "read: " + a.clean(err.Error())
	}
	return tables, ""
}

// probe lets go of the world while a source is tried.
func (s *Server) probe(ctx context.Context, a sourceAccess) (tables []api.Table, why string, err error) {
	err = s.latch.Aside(ctx, func(ctx context.Context) error {
		tables, why = a.probe(ctx)
		return nil
	})
	return tables, why, err
}

// clean takes the secrets of the connection out of a text. Very short ones are
// left: no driver prints them, and a message without any "e" helps nobody.
func (a sourceAccess) clean(text string) string {
	if a.types == nil { // of a source that was gone before anything was read of it
		return text
	}
	for _, secret := range a.types.Secrets(a.typ, a.credentials) {
		if len(secret) > 3 {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return text
}
