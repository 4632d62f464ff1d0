package service

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// paceSteps are for PACE: speed, parallelism and the limit of a connection (spec 4.2, 8).
func paceSteps() []conformance.Step {
	return slices.Concat(limitSteps(), []conformance.Step{
		step(`^(a destination that|another destination that|the destination then) takes (\d+) records? in a batch, (\d+) batch(?:es)? at once and (\d+) records per second$`,
			func(p *play) any { return p.takesAtMost }),
		step(`^each batch takes (\d+) ms$`, func(p *play) any {
			return func(ms int) { p.dest.behaves(slowly(time.Duration(ms) * time.Millisecond)) }
		}),
		step(`^no batch is answered before (\d+) batches( of each sync)? are under way$`, func(p *play) any { return p.holdsBatches }),
		step(`^all syncs run at once$`, func(p *play) any { return p.allRun }),
		step(`^the sync runs with each of these answers to get_sync_speed:$`, func(p *play) any { return p.runsWithSpeeds }),

		step(`^every run asks get_sync_speed before its first batch$`, func(p *play) any { return p.speedIsAsked }),
		step(`^no batch( of run \d+)? has more than (\d+) records?$`, func(p *play) any { return p.batchesAreSmall }),
		step(`^at most (\d+) batches( of each sync)? are under way at once$`, func(p *play) any { return p.fewAtOnce }),
		step(`^(\d+) batches are under way at once$`, func(p *play) any { return p.manyAtOnce }),
		step(`^batches of (\d+) syncs are under way at once$`, func(p *play) any { return p.syncsAtOnce }),
		step(`^no second brings more than (\d+) records( of each sync)?$`, func(p *play) any { return p.slowRecords }),
		step(`^every run fails without a batch$`, func(p *play) any { return p.runsFail }),
		step(`^every record of every sync is in its destination$`, func(p *play) any { return p.everythingArrived }),
	})
}

func speedOf(size, parallel, records int) rpc.Speed {
	return rpc.Speed{MaximumBatchSize: int64(size), MaximumParallelBatches: int64(parallel), MaximumRecordsPerSecond: int64(records)}
}

func (p *play) aDestinationOfSpeed(size, parallel, records int) error {
	_, err := p.connect(connecting{sim: SimulatorConfig{Speed: speedOf(size, parallel, records)}})
	return err
}

// takesAtMost makes a destination of a speed, or changes that of the latest from
// the next call of get_sync_speed on.
func (p *play) takesAtMost(which string, size, parallel, records int) error {
	if which == "the destination then" {
		p.answersSpeed(string(raw(speedOf(size, parallel, records))))
		return nil
	}
	return p.aDestinationOfSpeed(size, parallel, records)
}

// answersSpeed lets get_sync_speed have another result.
func (p *play) answersSpeed(result string) {
	p.dest.behaves(methodIs(rpc.MethodGetSyncSpeed, func(c *call, r *reply) {
		r.status, r.edit = 0, nil
		r.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, raw(c.id), result)
	}))
}

// holdLimit bounds how long batches wait for others that may never come.
const holdLimit = 2 * time.Second

// holdsBatches answers batches only when so many are there; when they have met
// once, or have waited for long, all are answered.
func (p *play) holdsBatches(n int, ofEach string) {
	var mu sync.Mutex
	var once sync.Once
	here, met := map[string]int{}, make(chan struct{})
	open := func() { once.Do(func() { close(met) }) }
	p.dest.behaves(methodIs(rpc.MethodSyncBatch, func(c *call, r *reply) {
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
		enough := ofEach == "" || len(here) == len(p.syncs)
		for _, count := range here {
			enough = enough && count >= n
		}
		if r.before = met; enough {
			open()
		}
	}))
}

// syncOf tells which sync a batch belongs to.
func syncOf(c *call) string { return rawOf(c.param("sync_plan", "sync_id")) }

// allRun triggers a run of every sync and waits for all of them.
func (p *play) allRun() error {
	ids := make([]int64, len(p.syncs))
	for i, s := range p.syncs {
		var err error
		if ids[i], err = p.trigger(s, false); err != nil {
			return err
		}
	}
	for i, s := range p.syncs {
		a, err := p.ends(s, ids[i])
		if err != nil {
			return err
		}
		p.last = a
	}
	return nil
}

func (p *play) runsWithSpeeds(t *conformance.Table) error {
	for _, line := range t.Rows() {
		p.answersSpeed(line[0])
		if err := p.theSyncRuns(); err != nil {
			return err
		}
	}
	return nil
}

// sentBatches are those of the destination; none at all decides nothing.
func (p *play) sentBatches() ([]*call, error) {
	batches := p.dest.batches()
	if len(batches) == 0 {
		return nil, conformance.Outcome(conformance.Inconclusive, "", "no batch came")
	}
	return batches, nil
}

func (p *play) speedIsAsked() error {
	s := p.latest()
	asked := s.dest.seen(rpc.MethodGetSyncSpeed)
	var last time.Time
	for run := range s.runs {
		batches, err := p.batchesOf(s, run+1)
		if err != nil {
			return err
		}
		if len(batches) == 0 {
			return conformance.Outcome(conformance.Inconclusive, "", "run %d sent no batch", run+1)
		}
		fresh := false
		for _, c := range asked {
			fresh = fresh || c.came.After(last) && c.done && c.ended.Before(batches[0].came)
		}
		if !fresh {
			p.brokenCall(fmt.Sprintf("get_sync_speed before the first batch of run %d", run+1), "the batch came without it", batches[0])
		}
		last = batches[len(batches)-1].came
	}
	p.Proof("%d runs, get_sync_speed %d times", len(s.runs), len(asked))
	return p.Held()
}

func (p *play) batchesAreSmall(ofRun string, most int) error {
	batches, err := p.sentBatches()
	if err != nil {
		return err
	}
	var run int
	if _, err := fmt.Sscanf(ofRun, " of run %d", &run); err == nil {
		if batches, err = p.batchesOf(p.latest(), run); err != nil {
			return err
		}
	}
	total := 0
	for _, c := range batches {
		n := len(c.records())
		if total += n; n > most {
			p.brokenCall(fmt.Sprintf("at most %d records in a batch", most), fmt.Sprintf("%d records", n), c)
		}
	}
	if total <= most {
		return few(total, "records")
	}
	p.Proof("%d records in %d batches", total, len(batches))
	return p.Held()
}

// bySync sorts batches by their sync.
func bySync(calls []*call) map[string][]*call {
	out := map[string][]*call{}
	for _, c := range calls {
		out[syncOf(c)] = append(out[syncOf(c)], c)
	}
	return out
}

// groups are all batches as one, or those of each sync.
func (p *play) groups(ofEach string) (map[string][]*call, error) {
	batches, err := p.sentBatches()
	if err != nil || ofEach == "" {
		return map[string][]*call{"": batches}, err
	}
	return bySync(batches), nil
}

func (p *play) fewAtOnce(limit int, ofEach string) error {
	groups, err := p.groups(ofEach)
	if err != nil {
		return err
	}
	for name, batches := range groups {
		if len(batches) <= limit {
			return few(len(batches), "batches")
		}
		most, which := crowd(batches)
		if most > limit {
			p.brokenCall(fmt.Sprintf("at most %d batches under way at once", limit), fmt.Sprintf("%d batches", most), which...)
		}
		p.Proof("%s%d of %d batches at once", named(name), most, len(batches))
	}
	return p.Held()
}

// named begins a sentence about one sync among several.
func named(sync string) string {
	if sync == "" {
		return ""
	}
	return "sync " + sync + ": "
}

func (p *play) manyAtOnce(wanted int) error {
	batches, err := p.sentBatches()
	if err != nil {
		return err
	}
	if len(batches) < wanted {
		return few(len(batches), "batches")
	}
	most, which := crowd(batches)
	if most < wanted {
		p.brokenCall(fmt.Sprintf("%d batches under way at once", wanted), fmt.Sprintf("at most %d", most), which...)
	}
	p.Proof("%d of %d batches at once", most, len(batches))
	return p.Held()
}

func (p *play) syncsAtOnce(wanted int) error {
	batches, err := p.sentBatches()
	if err != nil {
		return err
	}
	most := 0
	for _, c := range batches {
		most = max(most, len(bySync(beside(batches, c))))
	}
	if most < wanted {
		p.brokenCall(fmt.Sprintf("batches of %d syncs under way at once", wanted), fmt.Sprintf("of %d at most", most), batches...)
	}
	p.Proof("batches of %d syncs at once", most)
	return p.Held()
}

func (p *play) slowRecords(limit int, ofEach string) error {
	groups, err := p.groups(ofEach)
	if err != nil {
		return err
	}
	for name, batches := range groups {
		total := 0
		for _, c := range batches {
			total += recordsIn(c)
		}
		if total <= limit {
			return few(total, "records")
		}
		most, within := traffic{batches, recordsIn}.densest(judgedSecond)
		if most > limit {
			p.brokenCall(fmt.Sprintf("at most %d records within a second", limit),
				fmt.Sprintf("%s%d records within %s", named(name), most, lasting(within)), within...)
		}
		p.Proof("%s%d records, at most %d within %s", named(name), total, most, judgedSecond)
	}
	return p.Held()
}

// lasting is how long after the first the last of the calls came.
func lasting(calls []*call) time.Duration {
	return calls[len(calls)-1].came.Sub(calls[0].came).Round(time.Millisecond)
}

func (p *play) runsFail() error {
	s := p.latest()
	if len(s.runs) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no run came to its end")
	}
	for i, run := range s.runs {
		if run.text("data", "status") != "failed" {
			p.broken(fmt.Sprintf("run %d fails", i+1), run.short(), run)
		}
		batches, err := p.batchesOf(s, i+1)
		if err != nil {
			return err
		}
		if len(batches) > 0 {
			p.brokenCall(fmt.Sprintf("run %d sends no batch", i+1), fmt.Sprintf("%d batches", len(batches)), batches...)
		}
	}
	p.Proof("%d runs", len(s.runs))
	return p.Held()
}

// everythingArrived is allArrived for every sync.
func (p *play) everythingArrived() error {
	all := p.syncs
	defer func() { p.syncs = all }()
	for i := range all {
		p.syncs = all[:i+1]
		if err := p.allArrived(); err != nil {
			return err
		}
	}
	return nil
}
