package service

import (
	"fmt"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// paceSteps are for PACE: speed, parallelism and the limit of a connection (spec 4.2, 8).
func paceSteps() []engine.Step {
	return []engine.Step{
		step(`^(a destination that|the destination then) takes (\d+) records? in a batch, (\d+) batch(?:es)? at once and (\d+) records per second$`, (*scenario).takesAtMost),
		step(`^each batch takes (\d+) ms$`, func(sc *scenario, ms int) {
			sc.dest.behaves(methodIs(rpc.MethodSyncBatch, func(_ *endpoint.Call, r *endpoint.Reply) {
				r.Before = after(time.Duration(ms) * time.Millisecond)
			}))
		}),
		step(`^no batch is answered before (\d+) batches( of each sync)? are under way$`, (*scenario).holdsBatches),
		step(`^all syncs run at once$`, (*scenario).allRun),
		step(`^the sync runs with each of these answers to get_sync_speed:$`, (*scenario).runsWithSpeeds),

		step(`^every run asks get_sync_speed before its first batch$`, (*scenario).speedIsAsked),
		step(`^no batch( of run \d+)? has more than (\d+) records?$`, (*scenario).batchesAreSmall),
		step(`^at most (\d+) batches( of each sync)? are under way at once$`, (*scenario).fewAtOnce),
		step(`^(\d+) batches are under way at once$`, (*scenario).manyAtOnce),
		step(`^batches of (\d+) syncs are under way at once$`, (*scenario).syncsAtOnce),
		step(`^no second brings more than (\d+) records$`, (*scenario).slowRecords),
		step(`^every run fails without a batch$`, (*scenario).runsFail),
	}
}

func speedOf(size, parallel, records int) rpc.Speed {
	return rpc.Speed{MaximumBatchSize: int64(size), MaximumParallelBatches: int64(parallel), MaximumRecordsPerSecond: int64(records)}
}

// takesAtMost makes a destination of a speed, or changes that of the latest from
// the next call of get_sync_speed on.
func (sc *scenario) takesAtMost(which string, size, parallel, records int) {
	if which == "the destination then" {
		sc.answersSpeed(string(jsonvalue.Encode(speedOf(size, parallel, records))))
		return
	}
	sc.connect(connecting{sim: SimulatorConfig{Speed: speedOf(size, parallel, records)}})
}

// answersSpeed lets get_sync_speed have another result.
func (sc *scenario) answersSpeed(result string) {
	sc.answersCall("every", rpc.MethodGetSyncSpeed, "", `{"jsonrpc":"2.0","id":{id},"result":`+result+`}`)
}

// holdLimit bounds how long batches wait for others that may never come.
const holdLimit = 2 * time.Second

// holdsBatches answers batches only when so many are there; when they have met
// once, or have waited for long, all are answered.
func (sc *scenario) holdsBatches(n int, ofEach string) {
	var mu sync.Mutex
	var once sync.Once
	here, met := map[string]int{}, make(chan struct{})
	open := func() { once.Do(func() { close(met) }) }
	sc.dest.behaves(methodIs(rpc.MethodSyncBatch, func(c *endpoint.Call, r *endpoint.Reply) {
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
		enough := ofEach == "" || len(here) == len(sc.syncs)
		for _, count := range here {
			enough = enough && count >= n
		}
		if r.Before = met; enough {
			open()
		}
	}))
}

// syncOf tells which sync a batch belongs to.
func syncOf(c *endpoint.Call) string { return jsonvalue.Raw(c.Param("sync_plan", "sync_id")) }

// allRun triggers a run of every sync and waits for all of them.
func (sc *scenario) allRun() {
	ids := make([]int64, len(sc.syncs))
	for i, s := range sc.syncs {
		ids[i] = sc.trigger(s, false)
	}
	for i, s := range sc.syncs {
		sc.batch = []*answer{sc.ends(s, ids[i])}
	}
}

func (sc *scenario) runsWithSpeeds(t *engine.Table) {
	for _, line := range engine.Rows(t) {
		sc.answersSpeed(line[0])
		sc.theSyncRuns()
	}
}

// sentBatches are those of the destination; none at all decides nothing.
func (sc *scenario) sentBatches() []*endpoint.Call {
	batches := sc.dest.Batches()
	if len(batches) == 0 {
		undecided("no batch came")
	}
	return batches
}

func (sc *scenario) speedIsAsked() error {
	s := sc.latest()
	asked := s.dest.Seen(rpc.MethodGetSyncSpeed)
	var last time.Time
	for run := range s.runs {
		batches := sc.batchesOf(s, run+1)
		if len(batches) == 0 {
			undecided("run %d sent no batch", run+1)
		}
		fresh := false
		for _, c := range asked {
			fresh = fresh || c.Came.After(last) && c.Done && c.Ended.Before(batches[0].Came)
		}
		if !fresh {
			sc.brokenCall(fmt.Sprintf("get_sync_speed before the first batch of run %d", run+1), "the batch came without it", batches[0])
		}
		last = batches[len(batches)-1].Came
	}
	return sc.HeldBy("%s, get_sync_speed %s", quantity.Count(len(s.runs), "run"), quantity.Count(len(asked), "time"))
}

func (sc *scenario) batchesAreSmall(ofRun string, most int) error {
	batches := sc.sentBatches()
	var run int
	if _, err := fmt.Sscanf(ofRun, " of run %d", &run); err == nil {
		batches = sc.batchesOf(sc.latest(), run)
	}
	total := 0
	for _, c := range batches {
		n := len(c.Records())
		if total += n; n > most {
			sc.brokenCall(fmt.Sprintf("at most %s in a batch", quantity.Count(most, "record")), quantity.Count(n, "record"), c)
		}
	}
	if total <= most {
		return few(total, "records")
	}
	return sc.HeldBy("%s in %s", quantity.Count(total, "record"), quantity.Count(len(batches), "batch"))
}

// bySync sorts batches by their sync.
func bySync(calls []*endpoint.Call) map[string][]*endpoint.Call {
	out := map[string][]*endpoint.Call{}
	for _, c := range calls {
		out[syncOf(c)] = append(out[syncOf(c)], c)
	}
	return out
}

func (sc *scenario) fewAtOnce(limit int, ofEach string) error {
	all := sc.sentBatches()
	groups := map[string][]*endpoint.Call{"all": all}
	if ofEach != "" {
		groups = bySync(all)
	}
	for name, batches := range groups {
		if len(batches) <= limit {
			return few(len(batches), "batches")
		}
		most, which := endpoint.MostAtOnce(batches)
		if most > limit {
			sc.brokenCall(fmt.Sprintf("at most %s under way at once", quantity.Count(limit, "batch")), quantity.Count(most, "batch"), which...)
		}
		sc.Proof("%s: %d of %s at once", name, most, quantity.Count(len(batches), "batch"))
	}
	return sc.Held()
}

func (sc *scenario) manyAtOnce(wanted int) error {
	batches := sc.sentBatches()
	if len(batches) < wanted {
		return few(len(batches), "batches")
	}
	most, which := endpoint.MostAtOnce(batches)
	if most < wanted {
		sc.brokenCall(fmt.Sprintf("%s under way at once", quantity.Count(wanted, "batch")), fmt.Sprintf("at most %d", most), which...)
	}
	return sc.HeldBy("%d of %s at once", most, quantity.Count(len(batches), "batch"))
}

func (sc *scenario) syncsAtOnce(wanted int) error {
	batches := sc.sentBatches()
	most := 0
	for _, c := range batches {
		most = max(most, len(bySync(endpoint.Beside(batches, c))))
	}
	if most < wanted {
		sc.brokenCall(fmt.Sprintf("batches of %s under way at once", quantity.Count(wanted, "sync")), fmt.Sprintf("of %d at most", most), batches...)
	}
	return sc.HeldBy("batches of %s at once", quantity.Count(most, "sync"))
}

func (sc *scenario) slowRecords(limit int) error {
	batches := sc.sentBatches()
	total := 0
	for _, c := range batches {
		total += endpoint.CountRecords(c)
	}
	if total <= limit {
		return few(total, "records")
	}
	most, within := endpoint.Densest(batches, endpoint.CountRecords, judgedSecond)
	if most > limit {
		sc.tooDense(limit, "record", most, within)
	}
	return sc.HeldBy("%s, at most %d within %s", quantity.Count(total, "record"), most, judgedSecond)
}

// tooDense adds a finding about calls that bring more within a second than a limit.
func (sc *scenario) tooDense(limit int, noun string, n int, within []*endpoint.Call) {
	lasting := within[len(within)-1].Came.Sub(within[0].Came).Round(time.Millisecond)
	sc.brokenCall(fmt.Sprintf("at most %s within a second", quantity.Count(limit, noun)), fmt.Sprintf("%s within %s", quantity.Count(n, noun), lasting), within...)
}

func (sc *scenario) runsFail() error {
	s := sc.latest()
	if len(s.runs) == 0 {
		undecided("no run came to its end")
	}
	for i, run := range s.runs {
		if run.text("data", "status") != "failed" {
			sc.broken(fmt.Sprintf("run %d fails", i+1), run.short(), run)
		}
		batches := sc.batchesOf(s, i+1)
		if len(batches) > 0 {
			sc.brokenCall(fmt.Sprintf("run %d sends no batch", i+1), quantity.Count(len(batches), "batch"), batches...)
		}
	}
	return sc.heldBy(len(s.runs), "run")
}

// A limit of a second is judged over less than one: between the service and the
// destination calls may be held up, and then come closer together than they
// were sent. So what is up to a quarter too fast for long is not seen.
const judgedSecond = 800 * time.Millisecond

// few says that there were not enough calls to tell.
func few(n int, of string) error {
	return engine.Inconclusive("", "only %d %s came: that is not enough to tell", n, of)
}
