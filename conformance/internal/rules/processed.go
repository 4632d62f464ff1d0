package rules

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// leastRefused is how many batches of a kind must be refused as a whole, and none processed,
// before that is a finding: one batch may fail for a good reason (spec 4.2.4).
const leastRefused = 2

// processedGroup judges whether batches of a kind are processed at all.
func processedGroup(g ruleset) map[string]Claim {
	for id, of := range map[string]string{"OPS-004": "advertised", "OPS-006": "mirror", "RES-012": "one", "RES-015": "twice", "SPD-006": "full", "DUP-001": "again"} {
		g.late(func(t *Traffic, j *judge) []Verdict { return t.processed(j, of) }, id)
		g[id].claims = []string{"every batch is processed"}
	}
	return nil
}

// batches are counted by kind.
type batches struct {
	results  int
	groups   map[string]*kind
	contents map[uint64]bool // of batches that were processed
	seed     maphash.Seed
}

// kind counts batches of one kind.
type kind struct {
	processed, refused int
	seen               *Call // the smallest that was processed
	first              *Call // the first that was refused
}

// keepBatch counts a batch under each of its kinds.
func (t *Traffic) keepBatch(c *Call) {
	if c.Batch.IsArray {
		t.batches.results += len(c.Batch.List)
	}
	lost := c.Kind == wire.KindClosed || c.Kind == wire.KindReset
	if c.Records == 0 || c.Kind == wire.KindTimeout || !c.enveloped() && !c.Ended() && !lost || c.refusedOutside() {
		return
	}
	processed := c.Batch.IsArray && len(c.Batch.List) > 0
	if !processed && c.Status == 429 {
		return
	}
	var listed []string
	if ops := t.operations[c.Object]; ops != nil {
		listed = ops.Operations()
	}
	mirrored := c.Batch.Operation == rpc.OperationDelete || c.Batch.Operation == rpc.OperationUpsert
	content := maphash.String(t.batches.seed, c.Object+"\x00"+c.Batch.Operation+"\x00"+string(c.params.Get("records").Raw))
	for name, is := range map[string]bool{
		"advertised": Accepts(listed, c.Batch.Operation),
		"mirror":     mirrored && slices.Contains(listed, rpc.OperationMirror),
		"one":        c.Records == 1,
		"full":       t.speed != nil && int64(c.Records) == t.speed.MaximumBatchSize,
		"twice":      len(c.Batch.sent) < len(c.Batch.Keys),
		"again":      t.batches.contents[content],
	} {
		if is {
			t.batches.count(name+"\x00"+c.Object+" "+c.Batch.Operation, c, processed)
		}
	}
	if known := t.batches.contents; processed && !known[content] {
		if len(known) >= mostContents {
			clear(known)
		}
		known[content] = true
	}
}

// keepEmpty counts a call with empty params. An error may have a good reason (spec 4.2.4), unless each
// ends so, or it is about the method or its params.
func (t *Traffic) keepEmpty(c *Call) {
	about := hasCode(c.reply, "-32601") || hasCode(c.reply, "-32602")
	if !c.empty || !c.known() || c.Result() == nil && !about && (!c.IsError() || !t.admitted(c)) {
		return
	}
	t.batches.count("empty "+c.Method+"\x00"+c.Method, c, c.Result() != nil)
	if about {
		t.batches.count("empty "+c.Method+"\x00"+c.Method, c, false)
	}
}

// count counts a call of a kind.
func (b *batches) count(of string, c *Call, processed bool) {
	g := b.groups[of]
	if g == nil {
		if len(b.groups) >= mostKept {
			return
		}
		g = &kind{}
		b.groups[of] = g
	}
	if !processed {
		g.refused++
		g.first = cmp.Or(g.first, c)
		return
	}
	g.processed++
	if g.seen == nil || c.Received < g.seen.Received {
		g.seen = c
	}
}

// processed judges the batches of a kind.
func (t *Traffic) processed(j *judge, of string) (out []Verdict) {
	for _, key := range slices.Sorted(maps.Keys(t.batches.groups)) {
		g := t.batches.groups[key]
		name, what, _ := strings.Cut(key, "\x00")
		if name != of {
			continue
		}
		v := Verdict{Check: j.check, Call: g.first, Look: &Look{}, Looked: 1}
		were := quantity.Verb(g.refused, "was", "were")
		switch {
		case g.processed > 0:
			v = t.judge(j, g.seen)
			if v.Looked = g.processed; g.refused > 0 {
				v.Look.note("%d of %s of %s %s refused as a whole", g.refused, quantity.Count(g.refused+g.processed, "call"), what, were)
			}
		case g.refused >= leastRefused:
			v = t.judge(j, g.first)
			v.Look.note("%s of %s %s refused as a whole, and none was processed", quantity.Count(g.refused, "call"), what, were)
		default:
			v.Undecided = "one call was refused as a whole, and there was no other: " + g.first.Short()
		}
		out = append(out, v)
	}
	return out
}
