package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestEveryKindOfEvidenceHasAReason: the reader of an undecided check learns what was missing.
func TestEveryKindOfEvidenceHasAReason(t *testing.T) {
	for _, kind := range conformance.EvidenceKinds() {
		require.NotEmpty(t, lacking[kind].reason, kind)
	}
	require.Len(t, lacking, len(conformance.EvidenceKinds()))
}

// seeing is the findings of a check that declares these kinds.
func seeing(kinds ...conformance.Evidence) *Findings {
	return &Findings{check: &conformance.Check{ID: "AAA-001", Evidence: kinds}, secrets: wire.NewRedactor()}
}

// TestAPassRestsOnEvidence: a scenario that holds is INCONCLUSIVE as long as one
// kind of its evidence was not seen, whatever else was.
func TestAPassRestsOnEvidence(t *testing.T) {
	pass := &outcome{status: conformance.Pass}
	for _, kind := range conformance.EvidenceKinds() {
		t.Run(string(kind), func(t *testing.T) {
			found := seeing(kind)
			for _, other := range conformance.EvidenceKinds() {
				if other != kind {
					found.Saw(other, 3)
				}
			}
			found.Saw(kind, 0)
			r := found.result(pass, false)
			require.Equal(t, conformance.Inconclusive, r.Status)
			require.Equal(t, lacking[kind].reason, r.Reason)
			require.Equal(t, lacking[kind].decider, r.Decider)
			require.Empty(t, r.Evidence, "what was not asked for is no evidence")

			found.Saw(kind, 2)
			found.Saw(kind, 1)
			r = found.result(pass, false)
			require.Equal(t, conformance.Pass, r.Status)
			require.Equal(t, "3 "+string(kind), r.Evidence)
		})
	}
}

func TestEveryKindOfEvidenceIsNeeded(t *testing.T) {
	found := seeing(conformance.SeenAccepted, conformance.SeenRefused)
	found.Saw(conformance.SeenRefused, 2)
	require.Equal(t, conformance.Inconclusive, found.result(&outcome{status: conformance.Pass}, false).Status)
	found.Saw(conformance.SeenAccepted, 5)
	found.Proof("upsert: 5 accepted")
	r := found.result(&outcome{status: conformance.Pass}, false)
	require.Equal(t, conformance.Pass, r.Status)
	require.Equal(t, "5 accepted; 2 refused; upsert: 5 accepted", r.Evidence)
	require.Equal(t, map[conformance.Evidence]int{conformance.SeenAccepted: 5, conformance.SeenRefused: 2}, r.Seen)
}

// TestARefusalIsTheReason: where the endpoint refused records, its words explain why nothing was
// seen, and values that it takes would decide.
func TestARefusalIsTheReason(t *testing.T) {
	for kind, said := range map[conformance.Evidence]bool{
		conformance.SeenAccepted: true, conformance.SeenStored: true, conformance.SeenChanged: true, conformance.SeenDeleted: true,
		conformance.SeenResponses: false, conformance.SeenErrors: false, conformance.SeenResults: false, conformance.SeenRefused: false, conformance.SeenKept: false, conformance.SeenAbsent: false,
	} {
		found := seeing(kind)
		found.refusal = "table is locked"
		r := found.result(&outcome{status: conformance.Pass}, false)
		require.Equal(t, conformance.Inconclusive, r.Status)
		if said {
			require.Equal(t, "no record was accepted; the endpoint says: table is locked", r.Reason, kind)
			require.Equal(t, "fixtures", r.Decider, kind)
		} else {
			require.Equal(t, lacking[kind].reason, r.Reason, kind)
		}
	}
}

// TestEvidenceMakesNothingBetter: only a pass is looked at twice.
func TestEvidenceMakesNothingBetter(t *testing.T) {
	for _, status := range []conformance.Status{conformance.NotApplicable, conformance.NotRun, conformance.Inconclusive, conformance.HarnessError} {
		found := seeing(conformance.SeenStored)
		r := found.result(&outcome{status: status, reason: "why"}, false)
		require.Equal(t, status, r.Status)
		require.Equal(t, "why", r.Reason)
		found.Saw(conformance.SeenStored, 1)
		require.Equal(t, status, found.result(&outcome{status: status}, false).Status)
	}
	found := seeing(conformance.SeenStored)
	found.Broken("this", "that")
	require.Equal(t, conformance.Fail, found.result(&outcome{status: conformance.Fail}, false).Status, "a failure needs no evidence beside its finding")
	require.Equal(t, conformance.Fail, found.result(&outcome{status: conformance.Pass}, false).Status)
}
