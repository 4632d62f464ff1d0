package service

import (
	"fmt"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// paceSteps are for PACE: speed, parallelism and the limit of a connection (spec 4.2, 8).
var paceSteps = []step{
	// The speed of the latest destination changes from the next call of get_sync_speed on.
	{`^(a destination that|the destination then) takes (\d+) records? in a batch, (\d+) batch(?:es)? at once and (\d+) records per second$`,
		func(sc *scenario, which string, size, parallel, records int) {
			speed := speedOf(size, parallel, records)
			if which == "the destination then" {
				sc.answersSpeed(string(jsonvalue.Encode(speed)))
				return
			}
			sc.connect(connecting{sim: SimulatorConfig{Speed: speed}})
		}},
	{`^each batch takes (\d+) ms$`, func(sc *scenario, ms int) {
		sc.dest.Behave(methodIs(rpc.MethodSyncBatch, func(_ *endpoint.Call, r *endpoint.Reply) {
			r.Before = after(time.Duration(ms) * time.Millisecond)
		}))
	}},
	{`^no batch is answered before (\d+) batches( of each sync)? are under way$`, (*scenario).holdsBatches},
	{`^all syncs run at once$`, func(sc *scenario) {
		ids := lists.Of(sc.syncs, func(s *syncing) int64 { return sc.trigger(s, false) })
		for i, s := range sc.syncs {
			sc.batch = []*answer{sc.ends(s, ids[i])}
		}
	}},
	{`^the sync runs with each of these answers to get_sync_speed:$`, func(sc *scenario, t *engine.Table) {
		for _, line := range engine.Rows(t) {
			sc.answersSpeed(line[0])
			sc.theSyncRuns("")
		}
	}},

	{`^every run asks get_sync_speed before its first batch$`, func(sc *scenario) error {
		s := sc.latest()
		asked := s.dest.Seen(rpc.MethodGetSyncSpeed)
		var last time.Time
		for i := range s.runs {
			batches := sc.someBatchesOf(i + 1)
			fresh := false
			for _, c := range asked {
				fresh = fresh || c.Came.After(last) && c.Done && c.Ended.Before(batches[0].Came)
			}
			sc.expectCall(fresh, fmt.Sprintf("get_sync_speed before the first batch of run %d", i+1), "the batch came without it", batches[0])
			last = batches[len(batches)-1].Came
		}
		return sc.HeldBy("%s, get_sync_speed %s", quantity.Count(len(s.runs), "run"), quantity.Count(len(asked), "time"))
	}},
	{`^no batch( of run \d+)? has more than (\d+) records?$`, (*scenario).batchesAreSmall},
	{`^at most (\d+) batches( of each sync)? are under way at once$`, (*scenario).fewAtOnce},
	{`^(\d+) batches are under way at once$`, func(sc *scenario, wanted int) error {
		batches := sc.sentBatches()
		enough(len(batches), wanted, "batches")
		most, which := endpoint.MostAtOnce(batches)
		sc.expectCall(most >= wanted, quantity.Count(wanted, "batch")+" under way at once", fmt.Sprintf("at most %d", most), which...)
		return sc.HeldBy("%d of %s at once", most, quantity.Count(len(batches), "batch"))
	}},
	{`^batches of (\d+) syncs are under way at once$`, func(sc *scenario, wanted int) error {
		batches, most := sc.sentBatches(), 0
		for _, c := range batches {
			most = max(most, len(bySync(endpoint.Beside(batches, c))))
		}
		expected := fmt.Sprintf("batches of %s under way at once", quantity.Count(wanted, "sync"))
		sc.expectCall(most >= wanted, expected, fmt.Sprintf("of %d at most", most), batches...)
		return sc.HeldBy("batches of %s at once", quantity.Count(most, "sync"))
	}},
	{`^no second brings more than (\d+) records$`, (*scenario).slowRecords},
	// Not counted: a call for each place for a batch that was not waiting for the answer with the limit.
	{`^no second after X-RateLimit-Limit "([^"]*)" brings more than (\d+) calls$`, func(sc *scenario, limit string, most int) error {
		calls := endpoint.Since(sc.dest.Seen(""), limit)
		calls = calls[min(len(calls), sc.places()-1):]
		enough(len(calls), most+1, "calls after the limit was named")
		n, within := endpoint.Densest(calls, endpoint.CountCall, judgedSecond)
		sc.notDenser(most, "call", n, within)
		return sc.HeldBy("%s, at most %d within %s", quantity.Count(len(calls), "call"), n, judgedSecond)
	}},
	// A low limit would not let so many batches by; calls that made the sync came at the pace of the suite.
	{`^some second of the sync brings more than (\d+) calls$`, func(sc *scenario, beyond int) error {
		calls := sc.latest().dest.Batches()
		enough(len(calls), beyond+1, "calls")
		n, within := endpoint.Densest(calls, endpoint.CountCall, judgedSecond)
		expected := fmt.Sprintf("more than %s within a second", quantity.Count(beyond, "call"))
		sc.expectCall(n > beyond, expected, fmt.Sprintf("%d at most", n), within...)
		return sc.HeldBy("%d of %s within %s", n, quantity.Count(len(calls), "call"), judgedSecond)
	}},
	{`^every run fails without a batch$`, func(sc *scenario) error {
		runs := sc.latest().runs
		mustSee(len(runs), "no run came to its end")
		for i, run := range runs {
			sc.expect(run.text("data", "status") == "failed", fmt.Sprintf("run %d fails", i+1), run.short(), run)
			batches := sc.batchesOf(i + 1)
			sc.expectCall(len(batches) == 0, fmt.Sprintf("run %d sends no batch", i+1), quantity.Count(len(batches), "batch"), batches...)
		}
		return sc.heldBy(len(runs), "run")
	}},
}

func speedOf(size, parallel, records int) rpc.Speed {
	return rpc.Speed{MaximumBatchSize: int64(size), MaximumParallelBatches: int64(parallel), MaximumRecordsPerSecond: int64(records)}
}

// answersSpeed lets get_sync_speed have another result.
func (sc *scenario) answersSpeed(result string) {
	sc.answersCall("every", rpc.MethodGetSyncSpeed, "", `{"jsonrpc":"2.0","id":{id},"result":`+result+`}`)
}

// holdsBatches answers all batches once so many have met, or have waited for long.
func (sc *scenario) holdsBatches(n int, ofEach string) {
	const holdLimit = 2 * time.Second // for others that may never come
	var mu sync.Mutex
	here, met := map[string]int{}, make(chan struct{})
	open := sync.OnceFunc(func() { close(met) })
	sc.dest.Behave(methodIs(rpc.MethodSyncBatch, func(c *endpoint.Call, r *endpoint.Reply) {
		mu.Lock()
		defer mu.Unlock()
		if len(here) == 0 {
			time.AfterFunc(holdLimit, open)
		}
		key := "all"
		if ofEach != "" {
			key = syncOf(c)
		}
		here[key]++
		complete := ofEach == "" || len(here) == len(sc.syncs)
		for _, count := range here {
			complete = complete && count >= n
		}
		if r.Before = met; complete {
			open()
		}
	}))
}

// sentBatches are those of the destination; none at all decides nothing.
func (sc *scenario) sentBatches() []*endpoint.Call {
	batches := sc.dest.Batches()
	mustSee(len(batches), "no batch came")
	return batches
}

// bySync sorts batches by their sync.
func bySync(calls []*endpoint.Call) map[string][]*endpoint.Call {
	out := map[string][]*endpoint.Call{}
	for _, c := range calls {
		out[syncOf(c)] = append(out[syncOf(c)], c)
	}
	return out
}

func (sc *scenario) batchesAreSmall(ofRun string, most int) error {
	batches := sc.sentBatches()
	var run int
	if _, err := fmt.Sscanf(ofRun, " of run %d", &run); err == nil {
		batches = sc.batchesOf(run)
	}
	total := 0
	for _, c := range batches {
		n := len(c.Records())
		total += n
		sc.expectCall(n <= most, fmt.Sprintf("at most %s in a batch", quantity.Count(most, "record")), quantity.Count(n, "record"), c)
	}
	enough(total, most+1, "records")
	return sc.HeldBy("%s in %s", quantity.Count(total, "record"), quantity.Count(len(batches), "batch"))
}

func (sc *scenario) fewAtOnce(limit int, ofEach string) error {
	all := sc.sentBatches()
	groups := map[string][]*endpoint.Call{"all": all}
	if ofEach != "" {
		groups = bySync(all)
	}
	for name, batches := range groups {
		enough(len(batches), limit+1, "batches")
		most, which := endpoint.MostAtOnce(batches)
		expected := fmt.Sprintf("at most %s under way at once", quantity.Count(limit, "batch"))
		sc.expectCall(most <= limit, expected, quantity.Count(most, "batch"), which...)
		sc.Proof("%s: %d of %s at once", name, most, quantity.Count(len(batches), "batch"))
	}
	return sc.Held()
}

func (sc *scenario) slowRecords(limit int) error {
	batches, total := sc.sentBatches(), 0
	for _, c := range batches {
		total += endpoint.CountRecords(c)
	}
	enough(total, limit+1, "records")
	most, within := endpoint.Densest(batches, endpoint.CountRecords, judgedSecond)
	sc.notDenser(limit, "record", most, within)
	return sc.HeldBy("%s, at most %d within %s", quantity.Count(total, "record"), most, judgedSecond)
}

// notDenser adds a finding where calls bring more within a second than a limit.
func (sc *scenario) notDenser(limit int, noun string, n int, within []*endpoint.Call) {
	if n <= limit {
		return
	}
	lasting := within[len(within)-1].Came.Sub(within[0].Came).Round(time.Millisecond)
	expected := fmt.Sprintf("at most %s within a second", quantity.Count(limit, noun))
	sc.brokenCall(expected, fmt.Sprintf("%s within %s", quantity.Count(n, noun), lasting), within...)
}

// places are how many batches of all syncs the destination takes at once; 1 if it got no query.
func (sc *scenario) places() int {
	places := 0
	for _, c := range sc.dest.Seen(rpc.MethodGetSyncSpeed) {
		answer, err := wire.Parse(c.Answer)
		if n, ok := answer.Get("result", "maximum_parallel_batches").Int(); err == nil && ok {
			places += int(n)
		}
	}
	return max(places, 1)
}

// A limit of a second is judged over less: calls may be held up, and then come closer together than they were sent.
// So a rate that is up to a quarter too fast for long is not seen.
const judgedSecond = 800 * time.Millisecond

// enough ends a claim undecided where too few came.
func enough(n, least int, of string) {
	if n < least {
		undecided("only %d %s came: that is not enough to tell", n, of)
	}
}
