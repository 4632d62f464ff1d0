package service

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// repeatedID shows two calls with the same id.
func (j *Caller) repeatedID(r *callerRule, c *endpoint.Call) bool {
	if c.ID == "" {
		return false
	}
	sum := maphash.String(j.seed, c.ID)
	first := j.ids[sum]
	if first == nil {
		if len(j.ids) >= mostIDs {
			clear(j.ids)
		}
		j.ids[sum] = c.Lean()
		j.dest.Show(c)
	} else {
		j.dest.Show(first, c)
	}
	return r.judgeBy(r.sc.idsAreUnique)
}

// appended looks for a call whose method comes after the URL of the connection.
func (j *Caller) appended(r *callerRule, c *endpoint.Call) bool {
	if c.Method == "" {
		return false
	}
	j.dest.url, j.dest.origin = c.HTTP.RequestURI, ""
	path, _, _ := strings.Cut(c.HTTP.RequestURI, "?")
	if base, appended := strings.CutSuffix(path, "/"+c.Method); appended {
		j.dest.url = base
	}
	j.dest.Show(c)
	return r.judgeBy(r.sc.callsGoToURL)
}

// identified returns the record without an identifier, or with that of another; a later batch may be a retry.
func identified(c *endpoint.Call) (expected, actual string) {
	active := activeIdentifiers(c)
	if len(active) != 1 {
		return "", "" // CALL-013 judges that
	}
	seen := map[string]bool{}
	for _, r := range c.Records() {
		id := r.Get(active[0])
		if !id.Is(wire.String) && !id.Is(wire.Number) || id.Is(wire.String) && id.Text == "" {
			return "a record with " + active[0], jsonvalue.Raw(r)
		}
		key := jsonvalue.Raw(id)
		if seen[key] {
			return fmt.Sprintf("each %s once in a batch", active[0]), "another record with " + active[0] + " " + key
		}
		seen[key] = true
	}
	return "", ""
}

// speedNotAsked looks at the first batch of each run, but for one that had started before anything was seen.
func (j *Caller) speedNotAsked(r *callerRule, c *endpoint.Call) bool {
	run := jsonvalue.Raw(c.Param("sync_plan", "sync_run_id"))
	if c.Method != rpc.MethodSyncBatch || j.runs[run] {
		return false
	}
	first := len(j.runs) == 0
	if len(j.runs) >= mostRuns {
		clear(j.runs)
	}
	j.runs[run] = true
	asked := j.asked > 0
	j.asked = max(0, j.asked-1)
	if first && !asked {
		return false
	}
	return r.expect(asked, "get_sync_speed before the first batch of run "+run, "the batch came without it", c)
}

// most is the larger one, member by member, of the speeds in force: one may have changed in the middle of a run.
func (j *Caller) most() (rpc.Speed, bool) {
	var out rpc.Speed
	for _, s := range j.speeds {
		out.MaximumBatchSize = max(out.MaximumBatchSize, s.MaximumBatchSize)
		out.MaximumParallelBatches = max(out.MaximumParallelBatches, s.MaximumParallelBatches)
		out.MaximumRecordsPerSecond = max(out.MaximumRecordsPerSecond, s.MaximumRecordsPerSecond)
	}
	return out, len(j.speeds) > 0
}

// sized bounds the records of a batch.
func (j *Caller) sized(r *callerRule, c *endpoint.Call) bool {
	most, known := j.most()
	if c.Method != rpc.MethodSyncBatch || !known || most.MaximumBatchSize < 1 {
		return false
	}
	j.dest.Show(c)
	return r.judgeBy(func() error { return r.sc.batchesAreSmall("", int(min(most.MaximumBatchSize, 1<<31))) })
}

// paced looks at the latest batches of a run, now and then.
func (j *Caller) paced(r *callerRule, c *endpoint.Call) bool {
	most, known := j.most()
	ring := j.batches[syncOf(c)]
	if c.Method != rpc.MethodSyncBatch || !known || ring == nil {
		return false
	}
	ring.speed = most
	if ring.late = len(ring.calls) > 8 && ring.added%8 != 0; ring.late {
		return false
	}
	return j.together(r, ring)
}

// together judges the latest batches of a run.
func (j *Caller) together(r *callerRule, ring *ring) bool {
	j.dest.Show(ring.calls...)
	return r.judgeBy(func() error { return r.pace(r.sc, ring.speed) })
}

// endOf judges the last batches of a run, by their speed: a late answer shows only then what was under way at once.
func (j *Caller) endOf(ring *ring) {
	if !ring.late {
		return
	}
	ring.late = false
	for _, r := range j.paces {
		j.together(r, ring)
	}
}

// limited looks, now and then, for more calls within a second than the one limit that the endpoint names.
func (j *Caller) limited(r *callerRule, c *endpoint.Call) bool {
	j.recent.late = j.recent.added%32 != 0
	return !j.recent.late && j.limitedAt(r, c)
}

// limitedAt looks at the calls up to one.
func (j *Caller) limitedAt(r *callerRule, c *endpoint.Call) bool {
	limit, err := strconv.Atoi(c.Header(endpoint.RateLimitHeader))
	if err != nil || limit < 1 {
		return false
	}
	var same []*endpoint.Call
	for _, o := range slices.Backward(j.recent.calls) {
		if o.Header(endpoint.RateLimitHeader) != c.Header(endpoint.RateLimitHeader) {
			break
		}
		same = append(same, o)
	}
	if len(same) <= limit {
		return false
	}
	return r.judgeBy(func() error {
		n, within := endpoint.Densest(same, endpoint.CountCall, judgedSecond)
		// Calls that were under way when the limit was first named did not know it.
		if n > limit+len(endpoint.Beside(same, within[0])) {
			r.sc.notDenser(limit, "call", n, within)
		}
		return r.sc.Held()
	})
}

// rested looks for calls while the connection has to rest.
func (j *Caller) rested(r *callerRule, c *endpoint.Call) bool {
	const underWay = 200 * time.Millisecond // so long after status 429 a call may come that was sent before it
	rest, known := j.rests[c.HTTP.Header.Get("Authorization")]
	if !known || !c.Came.After(rest.from.Add(underWay)) {
		return false
	}
	return r.expect(!c.Came.Before(rest.to), fmt.Sprintf("no call for %s after status 429", rest.to.Sub(rest.from).Round(time.Second)),
		fmt.Sprintf("a call after %s", c.Came.Sub(rest.from).Round(time.Millisecond)), c)
}

// Bounds of CALL-026.
const (
	fewestConnections = 20                    // calls, one of which at least must share a connection
	mostOpened        = 256                   // connections in a row of which it is counted how many were needed
	opening           = 50 * time.Millisecond // to open a connection, while another may come free
)

// connected looks for a call on an earlier connection, or for many that could have had one: calls that are under way
// at once need a connection each, and who is left without one has to open another.
func (j *Caller) connected(r *callerRule, c *endpoint.Call) bool {
	calls := j.recent.calls
	if c.HTTP.RemoteAddr == "" || len(calls) < fewestConnections {
		return false
	}
	first := len(calls) // of those that opened a connection each
	for first > 0 && len(calls)-first < mostOpened && calls[first-1].Kept() && !calls[first-1].Reused {
		first--
	}
	opened := calls[first:]
	switch {
	case len(opened) >= fewestConnections:
		if len(opened)-endpoint.Connections(opened, opening) < fewestConnections-1 {
			return false
		}
		j.dest.Show(opened...)
	case calls[first-1].Kept():
		peer := calls[first-1].HTTP.RemoteAddr
		before := slices.IndexFunc(calls[:first-1], func(o *endpoint.Call) bool { return o.HTTP.RemoteAddr == peer })
		if before < 0 { // too long ago
			return false
		}
		shown := calls[len(calls)-fewestConnections:]
		if before < len(calls)-fewestConnections {
			shown = append([]*endpoint.Call{calls[before]}, shown...)
		}
		j.dest.Show(shown...)
	default:
		return false
	}
	return r.judgeBy(r.sc.connectionsAreKept)
}
