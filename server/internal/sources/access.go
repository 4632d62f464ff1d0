package sources

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
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// Timeout bounds a connection test, a discovery and the check of a query,
// in real time: a database that hangs must not hold a call for ever.
const Timeout = 30 * time.Second

// Access is all that it takes to open a source outside a transaction.
type Access struct {
	Types       *source.Catalogue
	workspaceID int64
	ID          int64 // 0 for one that is not stored yet
	version     int64 // of the row that the credentials belong to
	Type        string
	Credentials map[string]json.RawMessage
	Options     source.Options
}

// sourceAccess reads the credentials of a stored source.
func (k *Sources) Access(tx *store.Tx, src *store.Source) (Access, error) {
	credentials, err := tx.SourceCredentials(src.ID)
	if err != nil {
		return Access{}, fmt.Errorf("read credentials of source %d: %w", src.ID, err)
	}
	a := Access{
		k.Types(), src.WorkspaceID, src.ID, src.Version, src.Type, credentials, k.Options(src.ID),
	}
	a.Options.Since = src.CreatedAt
	return a, nil
}

// sourceOptions locates the tables of an emulated warehouse: in its own file
// below the data directory, or in memory.
func (k *Sources) Options(id int64) source.Options {
	options := source.Options{Files: k.Files, Network: &k.Network, Topics: storedTopics{k, id}, Now: k.Clock.Now,
		Limits: k.Limits}
	if options.Warehouse = k.WarehouseFile(id); options.Warehouse == "" {
		options.Key = k.WarehouseKey(fmt.Sprintf("source-%d", id))
	}
	return options
}

// trials numbers the sources that are tried before they are stored.
var trials atomic.Int64

// Trial is how to open a source that is not stored yet: an emulated warehouse in
// memory, since its file comes with its id. Call forget when it was tried.
func (k *Sources) Trial() (a Access, forget func()) {
	key := k.WarehouseKey(fmt.Sprintf("new-%d", trials.Add(1)))
	a = Access{Types: k.Types(), Options: source.Options{Key: key, Files: k.Files, Network: &k.Network}}
	return a, func() { ForgetWarehouse(key) }
}

// warehousesInMemory are the keys in use, of all services of this process.
var warehousesInMemory sync.Map

// WarehouseKey names a warehouse in memory, which lives until this service
// ends, and which no other service shares.
func (k *Sources) WarehouseKey(name string) string {
	key := fmt.Sprintf("%p/%s", k, name)
	if _, known := warehousesInMemory.LoadOrStore(key, true); !known {
		context.AfterFunc(k.Work.Ctx, func() { ForgetWarehouse(key) })
	}
	return key
}

// ForgetWarehouse drops a warehouse in memory.
func ForgetWarehouse(key string) {
	source.Forget(key)
	warehousesInMemory.Delete(key)
}

// WarehouseFile is the database of an emulated warehouse; "" in memory.
func (k *Sources) WarehouseFile(id int64) string {
	folder := k.Folder
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, fmt.Sprintf("source-%d.db", id))
}

// Open connects to the source. Close it.
func (a Access) Open(ctx context.Context) (source.Source, error) {
	return a.Types.Open(ctx, a.Type, a.Credentials, a.Options)
}

// Inferred reports whether the types of its columns are guessed from rows.
func (a Access) Inferred() bool {
	described, _ := a.Types.Type(a.Type)
	return described.Inferred
}

// OpenAt is open with the columns of an object; see Catalogue.OpenAt.
func (a Access) OpenAt(ctx context.Context, o source.Object) (src source.Source, columns []api.Column, missing, err error) {
	return a.Types.OpenAt(ctx, a.Type, a.Credentials, a.Options, o)
}

// Forget drops what an emulated warehouse keeps, when its source is no more.
func (a Access) Forget() error {
	if a.Options.Warehouse == "" {
		ForgetWarehouse(a.Options.Key)
		return nil
	}
	var failures []error
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(a.Options.Warehouse + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// tables discovers the tables and their columns.
func (a Access) tables(ctx context.Context) ([]api.Table, error) {
	src, err := a.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return src.Tables(ctx)
}

// Probe tests the connection and, where that works, discovers the tables. why is empty for
// success; otherwise it names the step that failed and holds no secret.
func (a Access) Probe(ctx context.Context) (tables []api.Table, why string) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	for _, step := range a.Types.Test(ctx, a.Type, a.Credentials, a.Options).Steps {
		if step.Status == api.StepFailed {
			return nil, fmt.Sprintf("%s: %s", step.Step, step.Error.Message)
		}
	}
	tables, err := a.tables(ctx)
	if err != nil {
		return nil, "read: " + a.Clean(err.Error())
	}
	return tables, ""
}

// Clean takes the secrets of the connection out of a text. Very short ones are
// left: no driver prints them, and a message without any "e" is of no help.
func (a Access) Clean(text string) string {
	if a.Types == nil { // of a source that was gone before anything was read of it
		return text
	}
	for _, secret := range a.Types.Secrets(a.Type, a.Credentials) {
		if len(secret) > 3 {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return text
}
