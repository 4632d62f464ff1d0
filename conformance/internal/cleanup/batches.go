package cleanup

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// cleanUpSize is never more than the endpoint takes in one batch (spec 8).
func (sc *Scenario) cleanUpSize() int {
	const most = 500
	if sc.Catalog.Speed == nil {
		return most
	}
	return int(max(1, min(most, sc.Catalog.Speed.MaximumBatchSize)))
}

// How many batches may fail as a whole before the clean-up gives up: in all, and in a row
// by a proxy or a balancer in front of the endpoint.
const (
	mostFailed    = 60
	MostDisturbed = 4
)

// deleteKeys deletes keys of a group, in batches that grow after a success and are halved after a
// failure: a record that spoils its batch, or a size that the endpoint does not bear, must not keep
// the others from being deleted. A size that took the endpoint away is not tried again.
func (sc *Scenario) deleteKeys(g *Cleaning, id rpc.Field, keys []journal.Key) {
	size, most := sc.cleanUpSize(), sc.cleanUpSize()
	failed, disturbed := 0, 0
	for len(keys) > 0 {
		part := keys[:min(size, len(keys))]
		b, err := sc.deleteBatch(g.Object, id, part, disturbed == 0)
		answered := err == nil && (b.Answered() || len(part) == 1 && b.Reply.IsError() && !b.Reply.Passing())
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
		if failed++; sc.Ctx.Err() != nil || sc.Watch.IsGone() || failed > mostFailed || disturbed == MostDisturbed {
			if len(part) > 1 {
				sc.takeDeletes(g, part, b, err)
				keys = keys[len(part):]
			}
			for _, k := range keys {
				g.answer(k, Deletion{why: "not deleted, since the clean-up was given up: " + unanswered(b, err).why})
			}
			return
		}
	}
}

// deleteBatch sends one delete batch as a separate sync run, and with again repeats it after a
// disturbance.
func (sc *Scenario) deleteBatch(o *write.Object, id rpc.Field, keys []journal.Key, again bool) (*write.Batch, error) {
	part := sc.c.NewScenario(sc.Ctx, line.CleanUpCheck, o)
	records := make([]*write.Record, len(keys))
	for i, k := range keys {
		records[i] = &write.Record{Object: o, ID: id, Key: k.Identifier, Values: map[string]json.RawMessage{id.APIName: k.Identifier}}
	}
	outages := len(sc.Watch.All())
	b, err := part.cleanUpBatch(rpc.OperationDelete, records, o.Ordinary(id))
	for n := range DeleteRepeats {
		// A batch that took the endpoint away is not sent again as it was.
		if !again || !passing(b, err) || sc.Watch.IsGone() || len(sc.Watch.All()) > outages || !part.pause(deletePause<<n, b) {
			break
		}
		b, err = part.cleanUpBatch(rpc.OperationDelete, records, o.Ordinary(id))
	}
	return b, err
}

// takeDeletes notes how the deletes of keys were answered.
func (sc *Scenario) takeDeletes(g *Cleaning, keys []journal.Key, b *write.Batch, err error) {
	for i, k := range keys {
		d := unanswered(b, err)
		if err == nil {
			r := b.Records[i]
			d.why = "delete: " + b.WhyOf(r)
			switch {
			case b.Succeeded(r):
				d = Deletion{Acknowledged: true, Reply: b.Reply}
			case b.Refused(r):
				d = Deletion{why: d.why, Reply: b.Reply, Refused: b.RefusalOf(r)}
				d.absent = b.Failed(r) && sc.Ledger.MeansAbsent(g.Name, "skipped "+write.SkipWords(b, r))
			}
		}
		g.answer(k, d)
	}
}

// unanswered is the deletion of a key whose batch got no result for it.
func unanswered(b *write.Batch, err error) Deletion {
	if err != nil {
		_, unsent := errors.AsType[line.UnsentError](err)
		return Deletion{why: err.Error(), unanswered: !unsent}
	}
	return Deletion{why: "delete: " + b.Reply.Short(), unanswered: true}
}

// passing reports whether a lost connection, a balancer or a limit kept a batch from its answer.
func passing(b *write.Batch, err error) bool {
	if err != nil {
		return errors.Is(err, wire.ErrAway)
	}
	return !b.Reply.Ended() && b.Reply.Kind != wire.KindTimeout || b.Reply.Passing() && !b.Answered()
}

// pause waits, as long as a Retry-After in seconds requests; false when the clean-up is over.
func (sc *Scenario) pause(d time.Duration, b *write.Batch) bool {
	if b != nil {
		seconds, _ := strconv.ParseInt(b.Reply.Header.Get("Retry-After"), 10, 32)
		d = max(d, min(time.Duration(seconds)*time.Second, longestPause))
	}
	return line.Elapse(sc.Ctx, d) == nil
}

// cleanUpBatch sends one batch outside the budget of the run, which must not hinder deletes.
func (sc *Scenario) cleanUpBatch(operation string, records []*write.Record, mapped []rpc.Field) (*write.Batch, error) {
	b := &write.Batch{Object: records[0].Object, Operation: operation, Records: records}
	r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, line.Request{
		Method: rpc.MethodSyncBatch, Params: sc.BatchParams(operation, records, mapped),
		Object: b.Object.APIName, Records: len(records), Odd: operation == rpc.OperationDelete, Unrepeated: true,
	})
	if err != nil {
		return nil, err
	}
	b.Reply = r
	b.Read()
	return b, nil
}
