package rules

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// resultsGroup judges what sync_batch reports about its records (spec 7.2.4).
func resultsGroup(g ruleset) map[string]Claim {
	batches := func(takes func(c *Call) bool, ids ...string) {
		g.on(func(c *Call) bool { return c.Batch != nil && takes(c) }, ids...)
	}
	named := func(c *Call) bool { return c.Batch.IsArray && c.keyless == 0 && c.Records > 0 }
	batches(func(c *Call) bool { return c.Result() != nil && c.Records > 0 }, "RES-001")
	batches(func(c *Call) bool { return c.Batch.IsArray && len(c.Batch.Keys) > 0 }, "RES-002")
	batches(named, "RES-003", "RES-004")
	batches(func(c *Call) bool { return len(c.Batch.List) > 0 }, "RES-005", "RES-007")
	batches(func(c *Call) bool { return slices.ContainsFunc(c.Batch.List, says(false)) }, "RES-006")
	batches(func(c *Call) bool {
		return named(c) && slices.ContainsFunc(c.Batch.Keys, func(key json.RawMessage) bool { return len(key) > 0 && key[0] != '"' })
	}, "RES-017")
	g.onTraffic(func(t *Traffic, c *Call) bool {
		return c.Batch != nil && c.Records == 0 && (c.Result() != nil || c.IsError() && t.admitted(c))
	}, "RES-011")
	batches(func(c *Call) bool { return c.keyless > 0 && c.keyless == c.Records && c.Result() != nil }, "RES-019")
	g["RES-019"].claims = []string{"no record is acknowledged"}
	g.onTraffic(func(t *Traffic, c *Call) bool {
		return c.Batch != nil && t.beside(c) && c.Batch.IsArray && len(c.Batch.Keys) > 0
	}, "PAR-002")
	g["PAR-002"].claims = []string{"every record has a result"}
	batches(func(c *Call) bool {
		const most = 4 << 20
		n := len(c.Request)
		return n >= 100<<10 && n <= most && c.Status == http.StatusRequestEntityTooLarge || n >= most*9/10 && c.Batch.IsArray
	}, "DAT-012")
	return map[string]Claim{
		"every result of sync_batch has an array of record results":       resultsAreArrays,
		"every record result has an identifier exactly as it was sent":    eachResult(identifiersExact),
		"every record result has an identifier of the type that was sent": eachResult(identifierTypes),
		`every record result has a boolean "success"`: eachResult(func(l *Look, b *Batch, r result) {
			if r.Success == nil {
				l.brokenIn(b, `"success" as true or false`, foreign.Clip(string(r.Node.Raw), 200))
			}
		}),
		"every record result names a record that was sent, and each only once": eachResult(noStrangers),
		"every record result that is a failure has a message":                  failuresHaveMessages,
		"every record result agrees with the others of its record":             resultsAgree,
		"every record has a result":                                            everyRecordHasResult,
		"every batch is processed":                                             batchesProcessed,
		"no record is acknowledged":                                            noneAcknowledged,

		"it is noted which successes carry a message": notesMessages,
	}
}

func resultsAreArrays(l *Look) error {
	if len(l.Batches) == 0 { // empty batches carry no records to follow
		for _, r := range l.of(rpc.MethodSyncBatch) {
			if res := r.Result(); res != nil && !res.Get("record_results").Is(wire.Array) {
				l.broken(`"record_results" as an array`, r.Short(), r)
			}
		}
	}
	for _, b := range l.Batches {
		switch short := b.Reply.Short(); {
		case b.Reply.Kind == wire.KindTimeout:
			l.brokenIn(b, "an answer within the batch deadline", short)
		case b.Reply.Result() == nil:
			// An operation may be refused as a whole; OPS-004 judges that.
			l.note("%s of %q was answered without a result: %s", b.Operation, b.Object, short)
		case !b.IsArray:
			l.brokenIn(b, `"record_results" as an array`, short)
		}
	}
	return l.held()
}

// eachResult is the claim about each result of the answered batches.
func eachResult(claim func(l *Look, b *Batch, r result)) Claim {
	return func(l *Look) error {
		for _, b := range l.Batches {
			for _, r := range b.List {
				if r.Node.Kind != wire.Null || len(b.Keys) > 0 && len(b.List) > len(b.Keys) { // else RES-002 misses a result
					claim(l, b, r)
				}
			}
		}
		return l.heldBy(slices.ContainsFunc(l.Batches, func(b *Batch) bool { return len(b.List) > 0 }), "no record result came back")
	}
}

func identifiersExact(l *Look, b *Batch, r result) {
	if r.Identifier == nil {
		if !l.withoutIdentifiers(b) {
			l.brokenIn(b, `an "identifier" in every record result`, string(r.Node.Raw))
		}
		return
	}
	// A stranger is RES-003's; a distorted one leaves a record without result.
	if at, is := b.misnamed(exchange.NodeText(r.Identifier)); is && b.Stranger(r) {
		l.brokenIn(b, "the identifier "+string(b.Keys[at]), "it came back as "+foreign.Clip(string(r.Identifier.Raw), 120)).Symptom = SymptomAltered
	}
}

// Resembles reports whether an identifier is a distorted copy of a key, or a nearby number.
func Resembles(sent, got string) bool {
	fold := func(s string) string {
		return strings.ToLower(strings.Join(strings.Fields(values.Normalise(s)), ""))
	}
	if fold(sent) == fold(got) || html.UnescapeString(got) == sent {
		return true
	}
	if plain, err := url.QueryUnescape(got); err == nil && plain == sent {
		return true
	}
	a, err := strconv.ParseFloat(sent, 64)
	if b, wrong := strconv.ParseFloat(got, 64); err == nil && wrong == nil && a == b {
		return true // 42.0 or 4.2e1 for 42
	}
	return isDigits(sent) && isDigits(got) && len(sent) == len(got) && sent[:len(sent)-3] == got[:len(got)-3]
}

func isDigits(s string) bool {
	return len(s) > 3 && strings.Trim(s, "0123456789") == ""
}

func identifierTypes(l *Look, b *Batch, r result) {
	if r.Identifier == nil {
		return
	}
	at := b.sent[exchange.NodeText(r.Identifier)]
	if len(at) == 0 {
		return
	}
	key := b.Keys[at[0]]
	if sent, err := wire.Parse(key); err == nil && sent.Kind != r.Identifier.Kind {
		l.brokenIn(b, fmt.Sprintf("the identifier %s as a %s", key, sent.Kind), fmt.Sprintf("it came back as the %s %s", r.Identifier.Kind, r.Identifier.Raw))
	}
}

func noStrangers(l *Look, b *Batch, r result) {
	if r.Identifier == nil {
		return
	}
	got := exchange.NodeText(r.Identifier)
	shown := foreign.Clip(string(r.Identifier.Raw), 120)
	named, came := len(b.sent[got]), len(b.ByKey[got])
	_, altered := b.misnamed(got)
	switch {
	case named == 0:
		breach := l.brokenIn(b, "results for the records of the batch only", "a result for "+shown)
		switch {
		case altered || slices.ContainsFunc(b.texts, func(key string) bool { return Resembles(key, got) }):
			breach.Symptom = SymptomAltered
		case slices.ContainsFunc(b.texts, func(key string) bool { return len(b.ByKey[key]) == 0 }):
			breach.Symptom = SymptomNoResult // it replaces a missing one
		}
	case came > named && b.List[b.ByKey[got][0]].Node == r.Node && !b.Contradicts(got): // RES-002 judges those that disagree
		breach := l.brokenIn(b, "one result for each record", quantity.Count(came, "result")+" for "+shown)
		if breach.Cause = b.repeated(); altered {
			breach.Symptom = SymptomAltered
		}
	}
}

func failuresHaveMessages(l *Look) error {
	failures := 0
	err := eachResult(func(l *Look, b *Batch, r result) {
		if !says(false)(r) {
			return
		}
		failures++
		if strings.TrimSpace(text(r.Message)) == "" {
			l.brokenIn(b, `"error_message" as a non-empty string on a failure`, foreign.Clip(string(r.Node.Raw), 240))
		}
	})(l)
	if err != nil {
		return err
	}
	return l.heldBy(failures > 0, "nothing failed, so that no message could be looked at")
}

func everyRecordHasResult(l *Look) error {
	answered := false
	for _, b := range l.Batches {
		answered = answered || b.IsArray
		if !b.IsArray || l.withoutIdentifiers(b) {
			continue // OPS-004 and DUP-001 judge batches that fail as a whole
		}
		for i, key := range b.texts {
			if len(b.ByKey[key]) == 0 {
				l.brokenIn(b, fmt.Sprintf("a result for each of the %s", quantity.Count(len(b.Keys), "record")),
					fmt.Sprintf("%s came back; missing %s", quantity.Count(len(b.List), "result"), b.Keys[i])).Symptom = b.noResultSymptom(key)
			}
		}
	}
	return l.heldBy(answered, "no batch was answered by results")
}

// symptoms of results.
const (
	SymptomNoResult     = "no result"
	SymptomNoIdentifier = "no identifier in results"
	SymptomAltered      = "identifier altered"
	SymptomNoneAtAll    = "no results at all"
	SymptomContradict   = "two results that disagree"
)

func resultsAgree(l *Look) error {
	for _, b := range l.Batches {
		for i, key := range b.texts {
			// A record that occurs twice in a batch may fare differently.
			if len(b.ByKey[key]) > 1 && !b.Say(key, true) && !b.Say(key, false) && len(b.sent[key]) == 1 {
				breach := l.brokenIn(b, "one status for "+string(b.Keys[i]), b.Why(b.Keys[i]))
				breach.Symptom, breach.Cause = SymptomContradict, b.repeated()
			}
		}
	}
	return l.held()
}

// batchesProcessed leaves a batch that was not answered in time to the time checks.
func batchesProcessed(l *Look) error {
	var late *Batch
	for _, b := range l.Batches {
		switch {
		case b.Reply.Kind == wire.KindTimeout:
			late = b
		case !b.IsArray:
			l.brokenIn(b, fmt.Sprintf("a batch of %s that is processed record by record", quantity.Count(len(b.Keys), "record")), b.Reply.Short())
		case len(b.List) == 0:
			l.brokenIn(b, "a result for each record", b.Reply.Short()).Symptom = SymptomNoneAtAll
		}
	}
	if late == nil {
		return l.held()
	}
	return l.heldBy(false, "a batch of %s was not answered within %s", quantity.Count(len(late.Keys), "record"), l.BatchTimeout)
}

// noneAcknowledged is about the batches that were sent last.
func noneAcknowledged(l *Look) error {
	for _, b := range l.Latest {
		i := slices.IndexFunc(b.List, func(r result) bool {
			return says(true)(r) && !b.Stranger(r) && (r.Identifier == nil || !b.Contradicts(exchange.NodeText(r.Identifier)))
		})
		if i >= 0 {
			l.brokenIn(b, "a failure, or an error for the batch", foreign.Clip(string(b.List[i].Node.Raw), 200))
		}
	}
	return l.held()
}

func notesMessages(l *Look) error {
	for _, b := range l.Batches {
		for _, r := range b.List {
			if says(true)(r) && r.Message != nil {
				l.note("a success carries error_message %s: the service ignores it", foreign.Clip(string(r.Message.Raw), 80))
				return nil
			}
		}
	}
	l.note("no success carries a message")
	return nil
}
