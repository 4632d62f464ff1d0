package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// CleanupResult is what became of the records that were written.
type CleanupResult struct {
	// Deleted keys were acknowledged; a key that was never stored counts as well,
	// as deleting it twice is no error.
	Deleted int64 `json:"deleted"`
	// Left may still be there; Reasons say why.
	Left    int64    `json:"left"`
	Reasons []string `json:"reasons,omitempty"`
}

// written lists the keys that were used so far.
func (s *session) written() []WrittenKeys {
	p := s.e.plan
	list := []WrittenKeys{}
	for _, g := range p.grounds {
		if s.o.Work.Data != nil && s.o.Work.Data.OwnKeys {
			continue
		}
		id := g.object.Identifier
		w := WrittenKeys{Object: g.object.APIName, Label: g.object.Label, Field: id.APIName, Type: id.Type, Count: g.used.Load(), Keys: Keys(p.keys)}
		last := max(w.Count-1, 0)
		if w.First, w.Last = p.keys.Text(0), p.keys.Text(last); id.Type == rpc.TypeInteger {
			w.First, w.Last = strconv.FormatInt(p.keys.From, 10), strconv.FormatInt(p.keys.From+last, 10)
		}
		list = append(list, w)
	}
	s.e.end.Hidden.Value(&list) // labels and names are the target's words
	return list
}

// cleanup deletes what the run has written, also after an interruption, and then
// for a short time only.
func (s *session) cleanup(ctx context.Context) *CleanupResult {
	bound := 10 * time.Minute
	if ctx.Err() != nil {
		bound = 10 * time.Second
	}
	result := &CleanupResult{}
	// A second interruption ends the program; the first one must not end this.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	s.e.budget.most, s.e.control = 0, nil
	for _, g := range s.e.plan.grounds {
		s.e.erase(ctx, g, s.e.plan.keys, s.o.Connections, s.watcher("clean-up", 0, phase{}), result)
	}
	return result
}

// erase deletes the keys of one object.
func (e *engine) erase(ctx context.Context, g *keyspace, keys records.Keys, connections int, watch func(*measure, int64), result *CleanupResult) {
	total := g.used.Load()
	if total == 0 {
		return
	}
	fail := func(format string, args ...any) {
		result.Left += total
		result.Reasons = append(result.Reasons, fmt.Sprintf(format, args...))
	}
	if !g.object.Supports(rpc.OperationDelete) {
		fail("the object %s takes no delete batches: remove the keys %s* yourself", g.object.APIName, keys.Template)
		return
	}
	size := min(int64(e.plan.size), e.declared.Speed.MaximumBatchSize, total)
	o, err := g.object.ForOperation(rpc.OperationDelete, g.object.Identifier.APIName, nil)
	if err != nil {
		fail("%v", err)
		return
	}
	// Every key once, and none beyond the last: later ones may be in use.
	whole, why := total/size*size, ""
	for _, part := range []struct{ from, to, size int64 }{{0, whole, size}, {whole, total, total - whole}} {
		if part.from == part.to {
			continue
		}
		shape, err := records.NewShape(o, rpc.OperationDelete, int(part.size), g.as)
		if err != nil {
			fail("%v", err)
			return
		}
		m := &records.Maker{Object: o, Keys: keys}
		erasing := &keyspace{object: o, keys: part.to}
		erasing.used.Store(part.from)
		t := &task{shape: shape, keyspace: erasing, rows: []records.Row{m.Row()}, sweeps: true}
		got := e.run(ctx, phase{connections: connections, only: t, watch: watch})
		deleted := min(got.good, part.to-part.from)
		result.Deleted += deleted
		if total -= deleted; deleted == part.to-part.from {
			continue
		}
		switch all := got.sortedTallies(); {
		case len(all) > 0:
			why = all[0].Message
		case ctx.Err() != nil:
			why = "the time for it was over"
		case why == "":
			why = "no reply"
		}
	}
	if total > 0 {
		fail("%s of %s: %s", quantity.Count(total, "record"), g.object.APIName, why)
	}
}

// own refuses keys of a file that no load makes: it may have been changed, and its
// keys prove nothing. Those of a load carry a run, by the template or in the range
// of the options.
func (k WrittenKeys) own(integer bool, o Options) error {
	const why = "give --key-template or --key-range if the load had one, else the file was changed"
	if k.Count > records.Keys(k.Keys).Count(integer) {
		return wire.Usagef("the file names %s of %s, more than it says that there are", quantity.Count(k.Count, "key"), k.Object)
	}
	if integer {
		from, to := int64(records.FirstInteger), int64(records.LastInteger)
		if o.KeyFrom != 0 || o.KeyTo != 0 {
			from, to = o.KeyFrom, o.KeyTo
		}
		if k.From < from || k.To > to || k.From > k.To {
			return wire.Usagef("the file names the keys %d to %d of %s, which no load makes: %s", k.From, k.To, k.Object, why)
		}
		return nil
	}
	template, run := records.DefaultTemplate, `[^{}]+`
	if o.KeyTemplate != "" && o.KeyTemplate != records.DefaultTemplate {
		template, run = o.KeyTemplate, `[0-9a-f]{6}`
		if o.RunID != "" {
			run = regexp.QuoteMeta(o.RunID)
		}
	}
	form := strings.ReplaceAll(regexp.QuoteMeta(template), regexp.QuoteMeta("{run}"), run)
	if made, err := regexp.MatchString("^"+form+"$", k.Template); err != nil || !made || strings.Count(k.Template, "{n}") != 1 {
		return wire.Usagef("the file names the keys %q of %s, which no load makes: %s", foreign.Clip(k.Template, wire.LongestQuote), k.Object, why)
	}
	return nil
}

// Clean deletes the keys that a journal or a result names. Of the options only
// Target, Transport, Connections and those of the keys count. Keys that no load
// makes are a *UsageError, and nothing is deleted.
func Clean(ctx context.Context, o Options, keys []WrittenKeys) (*CleanupResult, error) {
	end, err := wire.NewEndpoint(o.Target, o.Transport)
	if err != nil {
		return nil, err
	}
	objects := lists.Of(keys, func(k WrittenKeys) string { return k.Object })
	d, err := discover(ctx, end, o.Target.Token, o.Target.Headers, objects)
	if err != nil {
		return nil, err
	}
	connections := o.Connections
	connections = cmp.Or(connections, int(min(d.Speed.MaximumParallelBatches, ServiceParallel)))
	e := &engine{ctx: context.WithoutCancel(ctx), end: end, clock: pace.NewClock(), seed: 1, declared: *d, connections: connections}
	if end.Transport.Standard {
		end.Shared, _ = end.RoundTripper()
	}
	defer e.close()
	end.Bound(int(min(d.Speed.MaximumBatchSize, 10_000)), connections, o.Transport.MaxReply)
	result := &CleanupResult{}
	found := make([]records.Object, len(keys))
	for i, k := range keys {
		if found[i], err = d.Objects[k.Object].ForOperation(rpc.OperationDelete, k.Field, nil); err != nil {
			return nil, end.Hide(err)
		}
		if err := k.own(found[i].Identifier.Type == rpc.TypeInteger, o); err != nil {
			return nil, end.Hide(err)
		}
	}
	for i, k := range keys {
		obj := found[i]
		e.plan = &plan{size: int(min(d.Speed.MaximumBatchSize, 10_000)), keys: records.Keys(k.Keys), tasks: []*task{{}}}
		g := &keyspace{object: obj, as: records.Sync{ID: int64(i) + 1, Run: syncRun(1) + int64(i)}}
		g.used.Store(k.Count)
		e.erase(ctx, g, records.Keys(k.Keys), connections, nil, result)
	}
	return result, nil
}
