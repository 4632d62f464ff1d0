package destsim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// declaredViolations are batches that do not keep what planning has declared
// (FLD-011 to FLD-013, OPS-004 to OPS-006).
func declaredViolations() []violation {
	return []violation{
		breaks("FLD-011", "integers from -999 to -1 are stored as strings",
			seams{value: func(_ *call, _ *record, c *cell) { c.quoteSmall() }}),
		breaks("FLD-012", "a batch whose active identifier is not the first identifier of the object is an error",
			seams{batch: func(_ *call, b *batch) *rpc.Error {
				for _, f := range b.object.fields {
					if f.Identifier {
						if f != b.identifier.field {
							return &rpc.Error{Code: rpc.CodeInvalidParams, Message: fmt.Sprintf("unknown identifier %s", b.identifier.quoted)}
						}
						break
					}
				}
				return nil
			}}),
		breaks("FLD-013", "a batch by a field that is no identifier is acknowledged and nothing is written", looseIdentifier()),
		breaks("OPS-004", "update writes and answers empty record_results",
			seams{results: func(c *call, rs []result) []result {
				if c.batch.operation == rpc.OperationUpdate {
					return rs[:0]
				}
				return rs
			}}, Also{"RES-002", "the records of an update batch have no result"}),
		breaks("OPS-005", "a batch with an operation that is not advertised is processed as upsert",
			seams{accept: func(_ *call, p *plan, err *rpc.Error) *rpc.Error {
				// "mirror" is advertised and refused all the same (spec 4.2).
				if err == nil || p.object == nil || p.operation == "" || !p.identified() ||
					p.object.accepts(p.operation) || slices.Contains(p.object.operations, p.operation) {
					return err
				}
				p.operation = rpc.OperationUpsert
				return nil
			}}),
		breaks("OPS-006", "a delete batch is answered by an error",
			seams{batch: func(_ *call, b *batch) *rpc.Error {
				if b.operation != rpc.OperationDelete {
					return nil
				}
				return &rpc.Error{Code: rpc.CodeInvalidParams, Message: "unknown operation delete"}
			}}),
	}
}

// quoteSmall turns a small negative integer into a string. Identifiers stay as
// they are: a changed key would be another rule.
func (c *cell) quoteSmall() {
	if c.column.Type != rpc.TypeInteger || c.column.Array || c.column.Identifier {
		return
	}
	if n, err := strconv.ParseInt(string(c.raw), 10, 64); err == nil && -999 <= n && n <= -1 {
		c.raw = store.Quote(strconv.FormatInt(n, 10))
	}
}

// looseIdentifier takes a plan whose active identifier is a field that exists
// and is no identifier. Matching by it would change other rules, so nothing is
// written; a record without a value in it fails as ever.
func looseIdentifier() seams {
	return seams{
		accept: func(_ *call, p *plan, err *rpc.Error) *rpc.Error {
			if err == nil || p.object == nil || !p.object.accepts(p.operation) || p.identifier == nil ||
				p.identifier.pending || p.identifier.Identifier {
				return err
			}
			return nil
		},
		apply: func(_ *call, r *record, next next) result {
			if r.active.Identifier || r.anonymous() {
				return next(r)
			}
			return r.ok()
		},
	}
}

// identified reports whether the active identifier is one.
func (p *plan) identified() bool {
	return p.identifier != nil && p.identifier.Identifier && !p.identifier.pending
}

// anonymous reports whether a record has no value in its active identifier.
func (r *record) anonymous() bool { return len(r.identifier) == 0 || r.identifier[0] == 'n' }
