package conformance

import "slices"

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

// EvidenceKinds are all kinds, in the order of a report.
func EvidenceKinds() []Evidence { return slices.Clone(evidenceKinds) }

var evidenceKinds = []Evidence{
	SeenHandshakes, SeenAttempts, SeenResponses, SeenEnvelopes, SeenAnswers, SeenErrors, SeenResults, SeenAccepted, SeenRefused,
	SeenStored, SeenChanged, SeenKept, SeenDeleted, SeenAbsent,
}
