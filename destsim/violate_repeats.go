package destsim

import (
	"encoding/json"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// repeatViolations do not bear what is delivered twice (DUP-*).
func repeatViolations() []violation {
	return []violation{
		breaks("DUP-001", "upsert of a batch all of whose records are stored with the same values is an error",
			seams{batch: func(_ *call, b *batch) *rpc.Error {
				if b.operation == rpc.OperationUpsert && b.Len() > 0 && count(b.standings(), standing.isSame) == b.Len() {
					return &rpc.Error{Code: rpc.CodeServerError, Message: "unique violation"}
				}
				return nil
			}}),
		breaks("DUP-002", "upsert of a record that is stored with the same values adds a second copy",
			doubled(func(r *record, old *store.Row) bool { return r.same(old.Data) })),
		breaks("DUP-003", "upsert of one existing record with the same values, alone in its batch, is reported as failed",
			seams{batch: func(c *call, b *batch) *rpc.Error {
				if b.operation == rpc.OperationUpsert && b.Len() == 1 && b.standings()[0].same {
					identifier, _ := b.Record(0).Field(b.identifier.APIName)
					c.answer(json.RawMessage(appendResults(nil, []result{{identifier: identifier, message: "no row was changed"}})))
				}
				return nil
			}}),
	}
}
