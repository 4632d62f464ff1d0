package destsim

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// refused turns a batch down as a whole with -32603 when fn gives a message.
func refused(fn func(b *batch) string) seams {
	return seams{batch: func(_ *call, b *batch) *rpc.Error {
		if message := fn(b); message != "" {
			return &rpc.Error{Code: rpc.CodeInternalError, Message: message}
		}
		return nil
	}}
}

// batchViolations fail a batch as a whole (RES-011 to RES-013, RES-015,
// RES-018).
func batchViolations() []violation {
	return []violation{
		breaks("RES-011", "sync_batch without records is an error",
			refused(func(b *batch) string {
				if b.Len() == 0 {
					return "index out of range [0] with length 0"
				}
				return ""
			})),
		breaks("RES-011.2", `sync_batch without records answers "record_results":null`,
			seams{result: func(c *call, raw []byte) []byte {
				if c.method == rpc.MethodSyncBatch && string(raw) == `{"record_results":[]}` {
					return []byte(`{"record_results":null}`)
				}
				return raw
			}}),
		breaks("RES-012", "update with exactly one record is an error",
			refused(func(b *batch) string {
				if b.operation == rpc.OperationUpdate && b.Len() == 1 {
					return "the bulk interface needs two rows"
				}
				return ""
			})),
		// A delete maps nothing but its key and has no columns to set.
		breaks("RES-013", "a plan that maps only the identifier is an error unless it deletes",
			refused(func(b *batch) string {
				if len(b.plan.columns) == 1 && b.Len() > 0 && b.operation != rpc.OperationDelete {
					return "syntax error near WHERE"
				}
				return ""
			})),
		breaks("RES-015", "upsert with the same identifier twice in a batch is an error",
			refused(func(b *batch) string {
				if b.operation == rpc.OperationUpsert && b.repeats() {
					return "cannot affect row a second time"
				}
				return ""
			})),
		breaks("RES-018", "a batch of several records of which one fails validation is an error and nothing of it is stored",
			seams{batch: func(_ *call, b *batch) *rpc.Error {
				if b.Len() < 2 {
					return nil
				}
				if message := b.rehearse(); message != "" {
					return &rpc.Error{Code: rpc.CodeServerError, Message: message}
				}
				return nil
			}}),
	}
}

// repeats reports whether two records have the same identifier.
func (b *batch) repeats() bool {
	seen := make(map[string]bool, b.Len())
	for i := range b.Len() {
		raw, ok := b.Record(i).Field(b.identifier.APIName)
		if !ok {
			continue
		}
		key, problem := b.identifier.canonical(raw)
		if problem != "" || key[0] == 'n' {
			continue
		}
		if seen[string(key)] {
			return true
		}
		seen[string(key)] = true
	}
	return false
}

// rehearse applies the records without storing anything and gives the message
// of the first that fails validation.
func (b *batch) rehearse() string {
	s := b.call.sim
	unit, err := s.store.Begin()
	if err != nil || s.broken.Load() {
		return ""
	}
	defer unit.Rollback()
	b.unit = unit
	effect := func(rows store.Rows) error {
		r := &b.record
		// A field that is not there yet would be created for good.
		r.cells = slices.DeleteFunc(r.cells, func(c cell) bool { return c.column.pending })
		var err error
		b.outcome, err = r.effect(frozen{rows})
		return err
	}
	for i := b.from; i < b.to; i++ {
		b.record.reset(b, i, effect)
		r := b.record.apply()
		if b.failed != nil {
			b.failed = nil // the batch itself will meet it again
			return ""
		}
		if r.invalid() {
			return fmt.Sprintf("record %d: %s", i, r.message)
		}
	}
	return ""
}

// frozen are rows that stay as they are.
type frozen struct{ store.Rows }

func (frozen) Put(*store.Row, []byte) error { return nil }
func (frozen) Remove(*store.Row) error      { return nil }
