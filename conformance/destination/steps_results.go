package destination

import (
	"fmt"
	"html"
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

// resultSteps judge what sync_batch says of its records (spec 7.2.4).
func resultSteps() []definition {
	return []definition{
		step(`^every record result (has an identifier exactly as it was sent|has an identifier of the type that was sent|has a boolean "success"|names a record that was sent, and each only once|that is a failure has a message|agrees with the others of its record|stands at its own record|reports a skip in one way)$`,
			func(sc *scenario) any { return func(claim string) error { return resultClaims[claim](sc) } }),
		step(`^every record has a result$`, func(sc *scenario) any { return sc.everyRecordHasResult }),
		step(`^every (batch is processed|operation accepts records that it is for|plan that maps no more than it must is accepted|value of the declared type is accepted|declared field takes a value)$`,
			func(sc *scenario) any { return func(claim string) error { return batchClaims[claim](sc) } }),
		step(`^no new record is refused next to those that exist$`, func(sc *scenario) any { return sc.noneRefusedNextToOld }),
		step(`^(no|every) (good |bad )?record is (?:acknowledged|marked as failed)$`, func(sc *scenario) any { return sc.statuses }),
		step(`^every (record|operation|repeated change) has the same outcome (?:as before|in parallel as alone)$`, func(sc *scenario) any { return sc.sameOutcomes }),
	}
}

var batchClaims = map[string]func(*scenario) error{
	"batch is processed":                              (*scenario).batchesProcessed,
	"operation accepts records that it is for":        (*scenario).operationsAccept,
	"plan that maps no more than it must is accepted": (*scenario).leastPlanWorks,
	"value of the declared type is accepted":          (*scenario).valuesAccepted,
	"declared field takes a value":                    (*scenario).fieldsTakeValues,
}

var resultClaims = map[string]func(*scenario) error{
	"agrees with the others of its record":             (*scenario).resultsAgree,
	"stands at its own record":                         (*scenario).statusesInPlace,
	"reports a skip in one way":                        (*scenario).oneSkipConvention,
	"has an identifier exactly as it was sent":         (*scenario).identifiersExact,
	"has an identifier of the type that was sent":      (*scenario).identifierTypes,
	`has a boolean "success"`:                          (*scenario).successIsBoolean,
	"names a record that was sent, and each only once": (*scenario).noStrangers,
	"that is a failure has a message":                  (*scenario).failuresHaveMessages,
}

func (sc *scenario) resultsAreArrays() error {
	if len(sc.batches) == 0 { // empty batches carry no records to follow
		for _, r := range sc.of(rpc.MethodSyncBatch) {
			if res := r.Result(); res != nil && !res.Get("record_results").Is(wire.Array) {
				sc.broken(`"record_results" as an array`, r.Short(), r)
			}
		}
	}
	for _, b := range sc.batches {
		if res := b.reply.Result(); res != nil && !b.IsArray {
			sc.brokenFor(b.operation, `"record_results" as an array`, b.reply.Short(), b.reply)
		}
		if b.reply.Kind == wire.KindTimeout {
			sc.brokenFor(b.operation, "an answer within the batch deadline", b.reply.Short(), b.reply)
			continue
		}
		if b.reply.Result() == nil {
			// An operation may be refused as a whole; OPS-004 judges that.
			sc.note("%s of %q was answered without a result: %s", b.operation, b.object.APIName, b.reply.Short())
		}
	}
	return sc.held()
}

// eachResult visits the results of all answered batches.
func (sc *scenario) eachResult(visit func(b *batch, r result)) error {
	any := false
	for _, b := range sc.batches {
		for _, r := range b.List {
			any = true
			visit(b, r)
		}
	}
	if err := sc.held(); err != nil {
		return err
	}
	if !any {
		return inconclusive("", "no record result came back")
	}
	return nil
}

func (sc *scenario) identifiersExact() error {
	return sc.eachResult(func(b *batch, r result) {
		if r.Identifier == nil {
			if !sc.withoutIdentifiers(b) {
				sc.brokenFor(b.operation, `an "identifier" in every record result`, string(r.Node.Raw), b.reply)
			}
			return
		}
		got := exchange.NodeText(r.Identifier)
		if b.keyed(got) == nil {
			// A stranger is RES-003's; a distorted one leaves a record without result.
			for _, s := range b.records {
				if len(b.of(s)) == 0 && resembles(exchange.KeyText(s.key), got) {
					sc.brokenAs(symptomAltered, b.operation, "the identifier "+string(s.key), "it came back as "+foreign.Clip(string(r.Identifier.Raw), 120), b.reply)
					return
				}
			}
		}
	})
}

// resembles tells a distorted copy of a key from an identifier out of nowhere:
// folded, trimmed or normalised it is the same, or it is a nearby number.
func resembles(sent, got string) bool {
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

func (sc *scenario) identifierTypes() error {
	return sc.eachResult(func(b *batch, r result) {
		if r.Identifier == nil {
			return
		}
		s := b.keyed(exchange.NodeText(r.Identifier))
		if s == nil {
			return
		}
		if sent, err := wire.Parse(s.key); err == nil && sent.Kind != r.Identifier.Kind {
			sc.brokenFor(b.operation, fmt.Sprintf("the identifier %s as a %s", s.key, sent.Kind),
				fmt.Sprintf("it came back as the %s %s", r.Identifier.Kind, r.Identifier.Raw), b.reply)
		}
	})
}

func (sc *scenario) successIsBoolean() error {
	return sc.eachResult(func(b *batch, r result) {
		if r.Success == nil {
			sc.brokenFor(b.operation, `"success" as true or false`, foreign.Clip(string(r.Node.Raw), 200), b.reply)
		}
	})
}

func (sc *scenario) noStrangers() error {
	return sc.eachResult(func(b *batch, r result) {
		if r.Identifier == nil {
			return
		}
		got := exchange.NodeText(r.Identifier)
		sent := 0
		switch s := b.keyed(got); {
		case s != nil && len(b.ByKey[got]) > 1:
			sent = count(b.records, s)
		case s != nil:
			sent = 1
		}
		switch {
		case sent == 0 && slices.ContainsFunc(b.records, func(s *record) bool { return resembles(exchange.KeyText(s.key), got) }):
			sc.brokenAs(symptomAltered, b.operation, "results for the records of the batch only", "a result for "+foreign.Clip(string(r.Identifier.Raw), 120), b.reply)
		case sent == 0:
			sc.brokenFor(b.operation, "results for the records of the batch only", "a result for "+foreign.Clip(string(r.Identifier.Raw), 120), b.reply)
		case len(b.ByKey[got]) > sent && b.Contradicts(got): // RES-002 judges that
		case len(b.ByKey[got]) > sent && b.List[b.ByKey[got][0]].Node == r.Node:
			symptom := ""
			if slices.ContainsFunc(b.records, func(s *record) bool { return len(b.of(s)) == 0 && resembles(exchange.KeyText(s.key), got) }) {
				symptom = symptomAltered
			}
			sc.brokenAs(symptom, b.operation, "one result for each record", fmt.Sprintf("%s for %s", quantity.Count(len(b.ByKey[got]), "result"), foreign.Clip(string(r.Identifier.Raw), 120)), b.reply)
		}
	})
}

func (sc *scenario) failuresHaveMessages() error {
	failures := 0
	err := sc.eachResult(func(b *batch, r result) {
		if r.Success == nil || *r.Success {
			return
		}
		failures++
		if !r.Message.Is(wire.String) || strings.TrimSpace(r.Message.Text) == "" {
			sc.brokenFor(b.operation, `"error_message" as a non-empty string on a failure`, foreign.Clip(string(r.Node.Raw), 240), b.reply)
		}
	})
	if err == nil && failures == 0 {
		return inconclusive("", "nothing failed, so that no message could be looked at")
	}
	return err
}

func (sc *scenario) everyRecordHasResult() error {
	answered := 0
	for _, b := range sc.batches {
		if !b.answered() {
			continue // OPS-004 and DUP-001 judge batches that fail as a whole
		}
		answered++
		if sc.withoutIdentifiers(b) {
			continue
		}
		for _, r := range b.records {
			if len(b.of(r)) == 0 {
				sc.brokenAs(b.noResultSymptom(r), b.operation, fmt.Sprintf("a result for each of the %s", quantity.Count(len(b.records), "record")),
					fmt.Sprintf("%s came back; missing %s", quantity.Count(len(b.List), "result"), r.key), b.reply)
			}
		}
	}
	if answered == 0 {
		return inconclusive("", "no batch was answered by results")
	}
	return sc.held()
}

// symptoms of results.
const (
	symptomNoResult     = "no result"
	symptomNoIdentifier = "no identifier in results"
	symptomAltered      = "identifier altered"
	symptomNoneAtAll    = "no results at all"
	symptomContradict   = "two results that disagree"
)

// withoutIdentifiers adds a finding, once, about a batch with a result for each record and
// an identifier in none: the records can be matched by position, which the service does not.
func (sc *scenario) withoutIdentifiers(b *batch) bool {
	if !b.anonymous() {
		return false
	}
	if slices.Contains(sc.Symptoms(), symptomNoIdentifier) {
		return true
	}
	said, under := "", ""
	if name := b.keyMember(); name != "" {
		said = fmt.Sprintf("; the key is in the member %q", name)
		under = fmt.Sprintf(" (the key stands under another name, %q)", name)
	}
	sc.brokenAs(symptomNoIdentifier, b.operation, `an "identifier" in every record result`,
		fmt.Sprintf("%s came back for %s, in none an identifier%s: %s", quantity.Count(len(b.List), "result"), quantity.Count(len(b.records), "record"), said, foreign.Clip(string(b.List[0].Node.Raw), 160)), b.reply)
	sc.ExplainAs(func(s string) bool { return s == symptomNoIdentifier },
		"the results carry no identifier"+under+": the service matches results and records by it, and not by their position, so that each record counts as failed.",
		`put the identifier of the record, as it was sent, into the member "identifier" of each result, successes and failures.`, true)
	return true
}

// anonymous reports whether there is a result for each record, and an identifier in none.
func (b *batch) anonymous() bool {
	return len(b.List) > 0 && len(b.List) == len(b.records) && !slices.ContainsFunc(b.List, func(r result) bool { return r.Identifier != nil || r.Node.Kind != wire.Object })
}

// keyMember is the member of the results that holds the keys of the records, by position.
func (b *batch) keyMember() string {
	for _, m := range b.List[0].Node.Members {
		if m.Value.Kind != wire.Bool && exchange.NodeText(m.Value) == exchange.KeyText(b.records[0].key) {
			return m.Name
		}
	}
	return ""
}

// noResultSymptom tells a record whose result names an altered identifier from one
// that has none.
func (b *batch) noResultSymptom(r *record) string {
	if b.anonymous() {
		return symptomNoIdentifier
	}
	for _, res := range b.List {
		if b.stranger(res) && resembles(exchange.KeyText(r.key), exchange.NodeText(res.Identifier)) {
			return symptomAltered
		}
	}
	// An altered one may be that of another record, which has results to spare.
	for key, at := range b.ByKey {
		if s := b.keyed(key); len(at) > 1 && s != nil && s != r && len(at) > count(b.records, s) && resembles(exchange.KeyText(r.key), key) {
			return symptomAltered
		}
	}
	return symptomNoResult
}

func (sc *scenario) resultsAgree() error {
	for _, b := range sc.batches {
		for _, r := range b.records {
			all := b.of(r)
			// A record that stands twice in a batch may fare differently.
			if len(all) > 1 && !b.succeeded(r) && !b.failed(r) && count(b.records, r) == 1 {
				sc.brokenAs(symptomContradict, b.operation, "one status for "+string(r.key), b.why(r), b.reply)
			}
		}
	}
	return sc.held()
}

func count(records []*record, r *record) int {
	n := 0
	for _, o := range records {
		if exchange.KeyText(o.key) == exchange.KeyText(r.key) {
			n++
		}
	}
	return n
}

// batchesProcessed: no top-level error and some results; RES-002 counts them. A
// batch that was not answered in time is left to the time checks.
func (sc *scenario) batchesProcessed() error {
	var late *batch
	for _, b := range sc.batches {
		switch {
		case b.reply.Kind == wire.KindTimeout:
			late = b
		case !b.answered():
			sc.brokenFor(b.operation, fmt.Sprintf("a batch of %s that is processed record by record", quantity.Count(len(b.records), "record")), b.reply.Short(), b.reply)
		case len(b.List) == 0:
			sc.brokenAs(symptomNoneAtAll, b.operation, "a result for each record", b.reply.Short(), b.reply)
		}
	}
	if err := sc.held(); err != nil {
		return err
	}
	if len(sc.waves) > 1 && sc.lastOperation() == rpc.OperationDelete && !slices.ContainsFunc(sc.model.all(), func(e *expected) bool { return e.created }) {
		return sc.noneAccepted() // what was deleted was never created
	}
	if late == nil {
		return nil
	}
	return inconclusive("", "a batch of %s was not answered within %s", quantity.Count(len(late.records), "record"), sc.opts.BatchTimeout)
}

// stranger tells a result that names a record which was not sent.
func (b *batch) stranger(r result) bool {
	if r.Identifier == nil || r.Identifier.Kind == wire.Null {
		return false
	}
	return b.keyed(exchange.NodeText(r.Identifier)) == nil
}

func (sc *scenario) acknowledged(which string) error {
	for _, b := range sc.latest {
		if which == "no" {
			for _, r := range b.List {
				if r.Success != nil && *r.Success && !b.stranger(r) && (r.Identifier == nil || !b.Contradicts(exchange.NodeText(r.Identifier))) {
					sc.brokenFor(b.operation, "a failure, or an error for the batch", foreign.Clip(string(r.Node.Raw), 200), b.reply)
					break
				}
			}
			continue
		}
		for _, r := range b.records {
			if e := sc.model.get(r); !e.known || !e.exists {
				return inconclusive("", "%s was not acknowledged when it was created", r.key)
			}
			if before, looked := sc.before[r.place()]; looked && before.count == 0 {
				return inconclusive("", "%s was acknowledged when it was created and is not there (SEM-001, SEM-006)", r.key)
			}
			if !b.succeeded(r) {
				symptom := "refused " + purpose{b.operation, true}.String()
				sc.brokenAs(symptom, b.operation, "success for "+string(r.key), b.why(r), b.reply)
				if first := sc.object.identifiers()[0]; r.id.APIName != first.APIName {
					sc.ExplainAs(func(s string) bool { return s == symptom },
						fmt.Sprintf("a record that is there is not found by %s: another identifier than the active one is looked up, or the conflict is looked for on another column.", r.id.APIName),
						"read active_identifier from the plan, and match by that field alone.", false)
				}
			}
		}
	}
	return sc.held()
}

func (sc *scenario) notesMessages() error {
	for _, b := range sc.batches {
		for _, r := range b.List {
			if r.Success != nil && *r.Success && r.Message != nil {
				sc.note("a success carries error_message %s: the service ignores it", foreign.Clip(string(r.Message.Raw), 80))
				return nil
			}
		}
	}
	sc.note("no success carries a message")
	return nil
}

func (sc *scenario) statuses(which, kind string) error {
	switch kind {
	case "good ":
		return sc.goodNotFailed()
	case "bad ":
		return sc.badNotAcknowledged()
	}
	return sc.acknowledged(which)
}
