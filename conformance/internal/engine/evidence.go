package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// lacking says why there is no evidence of a kind, and what would give it.
var lacking = map[conformance.Evidence]struct{ reason, decider string }{
	conformance.SeenHandshakes: {"no TLS handshake was completed", ""},
	conformance.SeenResponses:  {"no response was seen", ""},
	conformance.SeenAttempts:   {"no call was made", ""},
	conformance.SeenEnvelopes:  {"no response with a result or an error was seen", ""},
	conformance.SeenAnswers:    {"no response with a result was seen", ""},
	conformance.SeenErrors:     {"no error object was seen", ""},
	conformance.SeenResults:    {"no record result was seen", ""},
	conformance.SeenAccepted:   {"no record was accepted", "fixtures"},
	conformance.SeenRefused:    {"no record was refused", "fixtures"},
	conformance.SeenStored:     {"no record was seen stored", "readback"},
	conformance.SeenChanged:    {"no record was seen changed: no mapped field has a second value", "fixtures"},
	conformance.SeenKept:       {"no record was seen that the batch could have changed", "fixtures"},
	conformance.SeenDeleted:    {"no record was seen deleted", "readback"},
	conformance.SeenAbsent:     {"no key was looked up", "readback"},
}

// Saw counts evidence of a kind.
func (found *Findings) Saw(kind conformance.Evidence, n int) {
	if found.seen == nil {
		found.seen = map[conformance.Evidence]int{}
	}
	found.seen[kind] += n
}

// Unsaw takes evidence of a kind back.
func (found *Findings) Unsaw(kind conformance.Evidence) { delete(found.seen, kind) }

// Evidence is what was counted so far.
func (found *Findings) Evidence() map[conformance.Evidence]int { return found.seen }

// unseen is the outcome of a scenario that holds without the evidence that its
// check asks for; nil when nothing is missing.
func (found *Findings) unseen() *outcome {
	if found.incomplete != "" {
		return &outcome{status: conformance.Inconclusive, reason: found.incomplete}
	}
	for _, kind := range found.check.Evidence {
		if found.seen[kind] > 0 {
			continue
		}
		why := lacking[kind]
		reason := why.reason
		if found.refusal != "" && (kind == conformance.SeenAccepted || kind == conformance.SeenStored || kind == conformance.SeenChanged || kind == conformance.SeenDeleted) {
			reason = "no record was accepted; the endpoint says: " + found.refusal
			why.decider = "fixtures"
		}
		return &outcome{status: conformance.Inconclusive, reason: reason, decider: why.decider}
	}
	return nil
}

// evidenceText lists what was seen, for example "3 stored, 3 changed".
func (found *Findings) evidenceText() string {
	var parts []string
	for _, kind := range conformance.EvidenceKinds() {
		if n := found.seen[kind]; n > 0 && slices.Contains(found.check.Evidence, kind) {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(append(parts, found.evidence...), "; ")
}
