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

// Whether batches of a kind are processed at all. A batch may fail for a good reason
// (spec 4.2.4), so one that does is no finding: it is one where several of a kind were
// refused as a whole and not one was ever processed.

// leastRefused is how many batches must be refused before that is a finding.
const leastRefused = 2

// processedGroup judges batches of a kind.
func processedGroup() group {
	g := group{rules: map[string]*rule{}}
	for id, of := range map[string]string{"OPS-004": "advertised", "OPS-006": "mirror", "RES-012": "one", "RES-015": "twice", "SPD-006": "full", "DUP-001": "again"} {
		g.late(func(t *Traffic, j *judge) []Verdict { return t.processed(j, of) }, id)
		g.rules[id].claims = []string{"every batch is processed"}
	}
	return g
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
	if c.Records == 0 || c.Kind == wire.KindTimeout || !c.enveloped() && !c.Ended() || c.refusedOutside() {
		return
	}
	processed := c.Batch.IsArray && len(c.Batch.List) > 0
	if !processed && c.Status == 429 {
		return
	}
	note := func(name, of string) {
		key := name + "\x00" + of
		g := t.batches.groups[key]
		if g == nil {
			if len(t.batches.groups) >= mostKept {
				return
			}
			g = &kind{}
			t.batches.groups[key] = g
		}
		switch {
		case processed:
			g.processed++
			if g.seen == nil || c.Received < g.seen.Received {
				g.seen = c
			}
		default:
			g.refused++
			g.first = cmp.Or(g.first, c)
		}
	}
	place := c.Object + " " + c.Batch.Operation
	if ops := t.operations[c.Object]; ops != nil {
		listed := ops.Operations()
		if Accepts(listed, c.Batch.Operation) {
			note("advertised", place)
		}
		if slices.Contains(listed, rpc.OperationMirror) && (c.Batch.Operation == rpc.OperationDelete || c.Batch.Operation == rpc.OperationUpsert) {
			note("mirror", place)
		}
	}
	if c.Records == 1 {
		note("one", place)
	}
	if v := t.speed; v != nil && int64(c.Records) == v.MaximumBatchSize {
		note("full", place)
	}
	if c.repeats() {
		note("twice", place)
	}
	t.keepContent(c, processed, func() { note("again", place) })
}

// keepContent knows a batch again that was processed before.
func (t *Traffic) keepContent(c *Call, processed bool, again func()) {
	var h maphash.Hash
	h.SetSeed(t.batches.seed)
	_, _ = h.WriteString(c.Object + "\x00" + c.Batch.Operation + "\x00")
	_, _ = h.Write(c.params.Get("records").Raw)
	sum := h.Sum64()
	if t.batches.contents[sum] {
		again()
		return
	}
	if processed {
		if len(t.batches.contents) >= mostContents {
			clear(t.batches.contents)
		}
		t.batches.contents[sum] = true
	}
}

// processed judges the batches of a kind.
func (t *Traffic) processed(j *judge, of string) (out []Verdict) {
	for _, key := range slices.Sorted(maps.Keys(t.batches.groups)) {
		g := t.batches.groups[key]
		if name, _, _ := strings.Cut(key, "\x00"); name != of {
			continue
		}
		switch {
		case g.processed > 0:
			v := t.judge(j, g.seen)
			v.Looked = g.processed
			if g.refused > 0 {
				v.Look.note("%d of %s of %s %s refused as a whole", g.refused, quantity.Count(g.refused+g.processed, "batch"), g.seen.Batch.Operation, quantity.Verb(g.refused, "was", "were"))
			}
			out = append(out, v)
		case g.refused >= leastRefused:
			v := t.judge(j, g.first)
			v.Look.note("%s %s refused as a whole, and none was processed", quantity.Count(g.refused, "batch"), quantity.Verb(g.refused, "was", "were"))
			out = append(out, v)
		default:
			out = append(out, Verdict{Check: j.check, Call: g.first, Look: &Look{}, Looked: 1,
				Undecided: "one batch was refused as a whole, and there was no other: " + g.first.Short()})
		}
	}
	return out
}
