package destination

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// Whether batches of a kind are processed at all. A batch may fail for a good reason
// (spec 4.2.4), so one that does is no finding: it is one where several of a kind were
// refused as a whole and not one was ever processed.

// leastRefused is how many batches must be refused before that is a finding.
const leastRefused = 2

// processedRules are the checks about batches of a kind.
func processedRules() {
	for id, kind := range map[string]string{"OPS-004": "advertised", "OPS-006": "mirror", "RES-012": "one", "RES-015": "twice", "SPD-006": "full", "DUP-001": "again"} {
		passiveRules[id] = &passiveRule{
			takes:  func(*ruler, *sighted) bool { return false },
			claims: []string{"every batch is processed"},
			late:   func(p *ruler, pc *passiveCheck) { p.processed(pc, kind) },
		}
	}
}

// keepBatch counts a batch under each of its kinds.
func (t *traffic) keepBatch(p *ruler, c *sighted) {
	if c.batch.IsArray {
		t.results += len(c.batch.List)
	}
	if c.records == 0 || c.Kind == wire.KindTimeout || !c.enveloped() && !c.Ended() || c.refusedOutside() {
		return
	}
	processed := c.batch.IsArray && len(c.batch.List) > 0
	if !processed && c.Status == 429 {
		return
	}
	note := func(kind, of string) {
		key := kind + "\x00" + of
		g := t.groups[key]
		if g == nil {
			if len(t.groups) >= mostKept {
				return
			}
			g = &group{}
			t.groups[key] = g
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
	place := c.Object + " " + c.batch.operation
	if ops := t.operations[c.Object]; ops != nil {
		o := &object{Operations: readOperations(ops.reply)}
		if o.accepts(c.batch.operation) {
			note("advertised", place)
		}
		if slices.Contains(o.Operations, rpc.OperationMirror) && (c.batch.operation == rpc.OperationDelete || c.batch.operation == rpc.OperationUpsert) {
			note("mirror", place)
		}
	}
	if c.records == 1 {
		note("one", place)
	}
	if v := p.s.catalog.speed; v != nil && int64(c.records) == v.MaximumBatchSize {
		note("full", place)
	}
	if c.repeats() {
		note("twice", place)
	}
	t.keepContent(c, processed, func() { note("again", place) })
}

// repeats reports whether an identifier stands more than once in the batch.
func (c *sighted) repeats() bool {
	seen := make(map[string]bool, len(c.batch.records))
	for _, r := range c.batch.records {
		if seen[string(r.key)] {
			return true
		}
		seen[string(r.key)] = true
	}
	return false
}

// keepContent knows a batch again that was processed before.
func (t *traffic) keepContent(c *sighted, processed bool, again func()) {
	var h maphash.Hash
	h.SetSeed(t.seed)
	_, _ = h.WriteString(c.Object + "\x00" + c.batch.operation + "\x00")
	_, _ = h.Write(c.params.Get("records").Raw)
	sum := h.Sum64()
	if t.contents[sum] {
		again()
		return
	}
	if processed {
		if len(t.contents) >= mostContents {
			clear(t.contents)
		}
		t.contents[sum] = true
	}
}

// conclude judges what only the whole shows; it may be called again.
func (pc *passiveCheck) conclude(p *ruler) {
	if pc.rule != nil && pc.rule.late != nil {
		pc.found, pc.looked, pc.reason = p.suite.Findings(pc.check), 0, ""
		pc.rule.late(p, pc)
	}
}

// processed judges the batches of a kind.
func (p *ruler) processed(pc *passiveCheck, kind string) {
	for _, key := range sortedKeys(p.seen.groups) {
		g := p.seen.groups[key]
		if of, _, _ := strings.Cut(key, "\x00"); of != kind {
			continue
		}
		switch {
		case g.processed > 0:
			p.judge(pc, g.seen)
			pc.looked += g.processed - 1
			if g.refused > 0 {
				pc.found.Note("%d of %s of %s %s refused as a whole", g.refused, quantity.Count(g.refused+g.processed, "batch"), g.seen.batch.operation, quantity.Verb(g.refused, "was", "were"))
			}
		case g.refused >= leastRefused:
			p.judge(pc, g.first)
			pc.found.Note("%s %s refused as a whole, and none was processed", quantity.Count(g.refused, "batch"), quantity.Verb(g.refused, "was", "were"))
		default:
			pc.reason = fmt.Sprintf("one batch was refused as a whole, and there was no other: %s", g.first.Short())
			pc.looked++
		}
	}
}

// refusedMethods finds methods that refuse a caller whom others let in, before and
// after (AUTH-001).
func (p *ruler) refusedMethods(pc *passiveCheck) {
	for _, auth := range sortedKeys(p.seen.accepted) {
		a := p.seen.accepted[auth]
		if len(a.methods) == 0 {
			continue
		}
		for _, method := range sortedKeys(a.refused) {
			if first := a.refused[method]; !a.methods[method] && first.Started.Before(a.latest) {
				p.judge(pc, first)
			}
		}
		pc.looked++
		if len(a.methods) == len(rpc.Methods()) && len(a.refused) == 0 {
			pc.found.Saw(conformance.SeenAnswers, len(a.methods))
		} else if pc.found.Held() == nil {
			pc.reason = fmt.Sprintf("the caller has got results of %d of the %s", len(a.methods), quantity.Count(len(rpc.Methods()), "method"))
		}
	}
}
