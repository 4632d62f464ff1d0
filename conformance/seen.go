package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Evidence is a kind of observation that a PASS can rest on. A check names its
// kinds by tags such as @evidence-stored; a run that has none of one of them is
// INCONCLUSIVE, whatever the steps say, so that nothing passes unseen.
type Evidence string

// The kinds of evidence. Records are counted once for each batch that shows them.
const (
	SeenResponses  Evidence = "responses"  // HTTP responses
	SeenEnvelopes  Evidence = "envelopes"  // responses with a result or an error
	SeenAnswers    Evidence = "answers"    // responses with a result
	SeenAttempts   Evidence = "attempts"   // calls, whether they were answered or not
	SeenErrors     Evidence = "errors"     // JSON-RPC error objects
	SeenHandshakes Evidence = "handshakes" // TLS handshakes
	SeenResults    Evidence = "results"    // record results
	SeenAccepted   Evidence = "accepted"   // records of the last batch whose results say success
	SeenRefused    Evidence = "refused"    // records whose results say failure
	SeenStored     Evidence = "stored"     // accepted records that are in the destination
	SeenChanged    Evidence = "changed"    // accepted records whose values differ from those before
	SeenKept       Evidence = "kept"       // records that a batch could have changed, and did not
	SeenDeleted    Evidence = "deleted"    // records that were there and are gone
	SeenAbsent     Evidence = "absent"     // keys that are not in the destination
)

// evidenceKinds are all kinds, in the order of a report.
var evidenceKinds = []Evidence{
	SeenHandshakes, SeenAttempts, SeenResponses, SeenEnvelopes, SeenAnswers, SeenErrors, SeenResults, SeenAccepted, SeenRefused,
	SeenStored, SeenChanged, SeenKept, SeenDeleted, SeenAbsent,
}

// lacking says why there is no evidence of a kind, and what would give it.
var lacking = map[Evidence]struct{ reason, decider string }{
	SeenHandshakes: {"no TLS handshake was completed", ""},
	SeenResponses:  {"no response was seen", ""},
	SeenAttempts:   {"no call was made", ""},
	SeenEnvelopes:  {"no response with a result or an error was seen", ""},
	SeenAnswers:    {"no response with a result was seen", ""},
	SeenErrors:     {"no error object was seen", ""},
	SeenResults:    {"no record result was seen", ""},
	SeenAccepted:   {"no record was accepted", "fixtures"},
	SeenRefused:    {"no record was refused", "fixtures"},
	SeenStored:     {"no record was seen stored", "readback"},
	SeenChanged:    {"no record was seen changed: no mapped field has a second value", "fixtures"},
	SeenKept:       {"no record was seen that the batch could have changed", "fixtures"},
	SeenDeleted:    {"no record was seen deleted", "readback"},
	SeenAbsent:     {"no key was looked up", "readback"},
}

// Saw counts evidence of a kind.
func (found *Findings) Saw(kind Evidence, n int) {
	if found.seen == nil {
		found.seen = map[Evidence]int{}
	}
	found.seen[kind] += n
}

// Unsaw takes evidence of a kind back.
func (found *Findings) Unsaw(kind Evidence) { delete(found.seen, kind) }

// Evidence is what was counted so far.
func (found *Findings) Evidence() map[Evidence]int { return found.seen }

// unseen is the outcome of a scenario that holds without the evidence that its
// check asks for; nil when nothing is missing.
func (found *Findings) unseen() *outcome {
	if found.incomplete != "" {
		return &outcome{status: Inconclusive, reason: found.incomplete}
	}
	for _, kind := range found.check.Evidence {
		if found.seen[kind] > 0 {
			continue
		}
		why := lacking[kind]
		reason := why.reason
		if found.refusal != "" && (kind == SeenAccepted || kind == SeenStored || kind == SeenChanged || kind == SeenDeleted) {
			reason = "no record was accepted; the endpoint says: " + found.refusal
			why.decider = "fixtures"
		}
		return &outcome{status: Inconclusive, reason: reason, decider: why.decider}
	}
	return nil
}

// evidenceText lists what was seen, for example "3 stored, 3 changed".
func (found *Findings) evidenceText() string {
	var parts []string
	for _, kind := range evidenceKinds {
		if n := found.seen[kind]; n > 0 && slices.Contains(found.check.Evidence, kind) {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(append(parts, found.evidence...), "; ")
}
