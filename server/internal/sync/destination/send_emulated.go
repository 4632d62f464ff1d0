package destination

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// emulatedSender sends to the store of an emulated type.
type emulatedSender struct {
	callSender
	emulated *emulatedConnection
	seen     stored
}

var _ Swapper = (*emulatedSender)(nil)

// Send writes a batch, after what the plan's fields and settings want to be done.
func (s *emulatedSender) Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error) {
	switch {
	case plan.Operation == rpc.OperationDelete:
		return s.callSender.Send(ctx, plan, records)
	case len(plan.handling) == 0:
		return s.callSender.Send(ctx, plan, plan.stamped(records))
	}
	return s.sendHandled(ctx, plan, records)
}

// Swap replaces the records of an object: all that are sent are upserted, and
// at the end every record that was not sent is deleted, whoever made it.
func (s *emulatedSender) Swap(_ context.Context, plan *Plan) (Swap, error) {
	store, err := s.emulated.store()
	switch {
	case err != nil:
		return nil, &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeNetwork, Message: err.Error()}
	case store.Records == nil:
		return nil, unswappable("its records cannot be listed")
	case plan.identifier == "":
		return nil, unswappable("the plan has no identifier")
	}
	return &emulatedSwap{sender: s, plan: plan, sent: keySet{}}, nil
}

func unswappable(why string) *CallError {
	return &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeRPCError, Message: "the object cannot be replaced as a whole: " + why}
}

// emulatedSwap remembers the sent identifiers, as hashes.
type emulatedSwap struct {
	sender *emulatedSender
	plan   *Plan

	mu   sync.Mutex
	sent keySet
}

// hashOf represents an identifier, whatever escapes its text has.
func hashOf(raw []byte) (hash keyHash) {
	if text, err := rawjson.StringText(raw); err == nil {
		raw = rawjson.AppendString(nil, text)
	}
	sum := sha256.Sum256(raw)
	copy(hash[:], sum[:])
	return hash
}

// Send upserts records. Those that the store refuses are kept from deletion
// too: a record that cannot be changed is not one that is gone.
func (w *emulatedSwap) Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error) {
	rows, err := readRows(plan, records)
	if err != nil {
		return Reply{}, &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeRPCError, Message: err.Error()}
	}
	w.mu.Lock()
	for i := range rows.len() {
		if plan.Operation != rpc.OperationDelete {
			w.sent[hashOf(rows.identifier(i))] = true
		}
	}
	w.mu.Unlock()
	return w.sender.Send(ctx, plan, records)
}

// swapPage is how many records are listed and deleted at once.
const swapPage = 500

// Commit deletes the records that were not sent. After an error it can be called again.
func (w *emulatedSwap) Commit(ctx context.Context) error {
	remove := w.plan.With(rpc.OperationDelete)
	lead := append(rawjson.AppendString([]byte{'{'}, w.plan.identifier), ':')
	// Records to delete are collected first: pages would shift under deletes.
	var gone [][]byte
	err := w.sender.eachRecord(w.plan.Object.APIName, func(_ int64, fields map[string]json.RawMessage) {
		raw, has := fields[w.plan.identifier]
		if has && !rawjson.IsNull(raw) && !w.has(raw) {
			gone = append(gone, append(append(bytes.Clone(lead), raw...), '}'))
		}
	})
	if err != nil {
		return &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeNetwork, Message: w.sender.clean.String(err.Error())}
	}
	for page := range slices.Chunk(gone, swapPage) {
		if err := w.remove(ctx, remove, page); err != nil {
			return err
		}
	}
	return nil
}

func (w *emulatedSwap) has(raw []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[hashOf(raw)]
}

func (w *emulatedSwap) remove(ctx context.Context, plan *Plan, records [][]byte) error {
	reply, err := w.sender.Send(once(ctx), plan, records) // one of many requests of a commit
	if err != nil {
		return err
	}
	for i := range reply.Results {
		if !reply.Results[i].Success {
			return &CallError{
				Method: rpc.MethodSyncBatch, Outcome: OutcomeRPCError, Status: reply.Status,
				Message: "a record could not be deleted: " + reply.Results[i].ErrorMessage,
			}
		}
	}
	if len(reply.Results) < len(records) {
		return &CallError{
			Method: rpc.MethodSyncBatch, Outcome: OutcomeMalformed, Status: reply.Status,
			Message: unknownError + "not every deleted record has a result",
		}
	}
	return nil
}

// Abort leaves the sent records: nothing else was touched.
func (w *emulatedSwap) Abort() error { return nil }
