package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/api"
)

// With the engine "advanced" a source keeps the state of its syncs itself, in a
// schema of its own, so that comparing is one statement there. This
// package owns the statements; which entry means what, and when one may change,
// is its caller's business.

// StateSchema is the schema in which a source keeps the state of its syncs.
const StateSchema = "destkit"

// Errors of states, to be found with errors.Is.
var (
	// ErrStateReadOnly: the user of the connection may not write the state.
	ErrStateReadOnly = errors.New("the state of syncs cannot be written")
	// ErrStateElsewhere: the state is not the one that the caller left.
	ErrStateElsewhere = errors.New("the state was changed by another process")
	// ErrNotInSQL: the source cannot compute the keys of these rows; read rows
	// and state, and compare them outside.
	ErrNotInSQL = errors.New("the keys cannot be computed in SQL")
)

// StateEntry is what a state knows of one key.
type StateEntry struct {
	Key []byte // canonical JSON text of the identifier
	// Record and Row are fingerprints of what the destination has acknowledged:
	// of the record, and of the columns that it was made of. Without Known they
	// mean nothing.
	Record, Row int64
	Sent        []byte // the record itself, JSON text, where it was to be kept; else nil
	Known       bool   // the destination has acknowledged a record and no delete since
	Rejected    bool   // the last verdict was a refusal
	Deleted     bool   // … of a delete
	Removed     bool   // in a change only: a delete was acknowledged
}

// StateInfo is what a state says of itself.
type StateInfo struct {
	Fresh   bool            // it was made just now and is empty
	Broken  string          // why it cannot be believed, as a sentence; "" it can
	Stamp   string          // that the last change has given
	Run     int64           // the last run in it
	Rows    int64           // entries
	Notes   json.RawMessage // the caller's; nil when it never gave any
	Version int             // of the server, its major number
}

// StateChange is what Apply puts over a state, in one transaction.
type StateChange struct {
	// From is the stamp that the state must have, To the one it has afterwards. A
	// change that is there already has To, and is made again: nothing changes.
	From, To string
	Clear    bool // drop all entries first
	// Run, Mapping, HighWater and Notes are kept beside the entries. People read
	// them; only Notes are given back.
	Run       int64
	Mapping   string
	HighWater json.RawMessage
	Notes     json.RawMessage
	Damaged   string // why acknowledgements may be missing, for people too
	// Next gives the entries in any order, each key once, and io.EOF after the
	// last; nil: none. The entry is good until the next call.
	Next func() (StateEntry, error)
	// Crash is told when the entries are with the server and when the change is
	// committed; it may be nil.
	Crash func(committed bool)
}

// Comparison asks for the differences between rows and state.
type Comparison struct {
	Object  Object
	Columns []string // that are handed out; their fingerprint is compared
	Key     string   // the column of the identifier
	KeyText bool     // keys are JSON strings, also of a column of numbers
	Every   bool     // hand out every row
	Once    bool     // hand out rows without a Known entry; else also changed and rejected ones
	Gone    bool     // hand out entries without a row
	Sent    bool     // hand out rows whose entry has no Sent, too
}

// StateRowKind says what a row of a StateReader is.
type StateRowKind uint8

// The kinds of rows, in the order in which a comparison gives them.
const (
	StateTotals    StateRowKind = iota // the first, once
	StateDuplicate                     // Entry.Key stands in Copies rows; a hundred of them at most
	StateWrite                         // a row to be looked at: Cells, Print, and its Entry if it Has one
	StateGone                          // an Entry without a row
	StateWhole                         // an Entry, of a reading without comparison
)

// StateRow is one row, good until the next one.
type StateRow struct {
	Kind   StateRowKind
	Entry  StateEntry
	Has    bool // a StateWrite: the state has an entry
	Print  int64
	Copies int64
	Cells  [][]byte // JSON texts, one for each of Columns
	Totals StateCounts
}

// StateCounts are of all rows and entries, also those not handed out.
type StateCounts struct {
	Rows       int64 // of the source
	Nulls      int64 // rows without an identifier
	Duplicates int64 // rows whose identifier stands more than once
	Writes     int64 // rows that follow
	Gone       int64 // entries without a row
}

// StateReader is a stream of rows for one goroutine.
type StateReader interface {
	// Next gives the next row, io.EOF after the last one.
	Next() (StateRow, error)
	Close() error
}

// PostgresState is the state of one sync in a PostgreSQL source. It is safe for
// parallel use.
type PostgresState struct {
	p     *postgres
	name  string // of the sync, as it stands in the table of all syncs
	table string // quoted, with its schema
}

// StateIn is the state that a source keeps under a name of small letters,
// digits and underscores; false where the source cannot keep any.
func StateIn(src Source, name string) (*PostgresState, bool) {
	p, ok := src.(*postgres)
	if !ok {
		return nil, false
	}
	return &PostgresState{p: p, name: name, table: quote(StateSchema) + "." + quote("state_"+name)}, true
}

// KeepsState tells that a type of sources keeps the state of its syncs itself
// when its engine is the advanced one. The emulated warehouses offer that engine
// and leave the state with the service, whose files they are.
func KeepsState(typ string, engine string) bool {
	return typ == "postgres" && engine == api.EngineAdvanced
}

// testState tries whether a state can be kept, and leaves nothing behind.
func testState(ctx context.Context, src Source) error {
	s, ok := StateIn(src, "test")
	if !ok {
		return fmt.Errorf("keep the state of syncs: %w", ErrReadOnly)
	}
	return s.try(ctx)
}
