package destination

import (
	"encoding/json"
	"errors"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/destsim/rpc"
)

// Deletes go in batches as large as the endpoint declares. One that fails as a whole is
// halved: a record that spoils its batch, or a size that the endpoint does not bear, must
// not keep the others from being deleted.

// unknownSize is the size of the batches of a clean-up where the endpoint
// declares none that can be read.
const unknownSize = 500

// cleanUpSize is never more than the endpoint takes in one batch (spec 8).
func (sc *scenario) cleanUpSize() int {
	if sc.catalog.speed == nil {
		return unknownSize
	}
	return int(max(1, min(unknownSize, sc.catalog.speed.MaximumBatchSize)))
}

// How many batches may fail as a whole before the clean-up gives up: in all, and in a row
// by a proxy or a balancer in front of the endpoint.
const (
	mostFailed    = 60
	mostDisturbed = 4
)

// deleteKeys deletes keys of a group, in batches that grow after a success and are halved
// after a failure. A size that took the endpoint away is not tried again.
func (sc *scenario) deleteKeys(g *cleaning, id rpc.Field, keys []journal.Key) {
	size, most := sc.cleanUpSize(), sc.cleanUpSize()
	failed, disturbed := 0, 0
	for len(keys) > 0 {
		part := keys[:min(size, len(keys))]
		b, err := sc.deleteBatch(g.object, id, part, disturbed == 0)
		answered := err == nil && (b.answered() || len(part) == 1 && b.reply.IsError() && !b.reply.Passing())
		if answered || len(part) == 1 {
			sc.takeDeletes(g, part, b, err)
			keys = keys[len(part):]
		}
		switch {
		case answered:
			disturbed, size = 0, min(2*size, most)
			continue
		case err != nil:
			most = max(1, len(part)/2)
		case passing(b, nil):
			disturbed++
		}
		size = max(1, len(part)/2)
		if failed++; sc.ctx.Err() != nil || sc.watch.isGone() || failed > mostFailed || disturbed == mostDisturbed {
			if len(part) > 1 {
				sc.takeDeletes(g, part, b, err)
				keys = keys[len(part):]
			}
			for _, k := range keys {
				g.answers[exchange.KeyText(k.Identifier)] = deletion{why: "not deleted, since the clean-up was given up: " + unanswered(b, err).why}
			}
			return
		}
	}
}

// deleteBatch sends one delete batch, and if it should again where it met a disturbance.
// Each is a sync run of its own.
func (sc *scenario) deleteBatch(o *object, id rpc.Field, keys []journal.Key, again bool) (*batch, error) {
	part := sc.newScenario(sc.ctx, cleanUpCheck, o)
	records := make([]*record, len(keys))
	for i, k := range keys {
		records[i] = &record{object: o, id: id, key: k.Identifier, values: map[string]json.RawMessage{id.APIName: k.Identifier}}
	}
	outages := sc.watch.count()
	b, err := part.cleanUpBatch(rpc.OperationDelete, records, o.ordinary(id))
	for n := range deleteRepeats {
		// A batch that took the endpoint away is not sent again as it was.
		if !again || !passing(b, err) || sc.watch.isGone() || sc.watch.count() > outages || !part.pause(deletePause<<n, b) {
			break
		}
		b, err = part.cleanUpBatch(rpc.OperationDelete, records, o.ordinary(id))
	}
	return b, err
}

// takeDeletes notes how the deletes of keys were answered.
func (sc *scenario) takeDeletes(g *cleaning, keys []journal.Key, b *batch, err error) {
	for i, k := range keys {
		d := unanswered(b, err)
		if err == nil {
			d.why = "delete: " + b.whyOf(b.records[i])
		}
		if err == nil && b.succeeded(b.records[i]) {
			d = deletion{acknowledged: true, reply: b.reply}
		} else if err == nil && b.refused(b.records[i]) {
			r := b.records[i]
			d = deletion{why: "delete: " + b.whyOf(r), reply: b.reply, refused: b.refusalOf(r)}
			d.absent = b.failed(r) && sc.ledger.MeansAbsent(g.name, "skipped "+skipWords(b, r))
		}
		g.answers[exchange.KeyText(k.Identifier)] = d
	}
}

// unanswered is the deletion of a key whose batch got no result for it.
func unanswered(b *batch, err error) deletion {
	if err != nil {
		_, unsent := errors.AsType[unsentError](err)
		return deletion{why: err.Error(), unanswered: !unsent}
	}
	return deletion{why: "delete: " + b.reply.Short(), unanswered: true}
}
