package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestEveryCheckDeclaresEvidence: what may fail a run says what a pass rests on.
func TestEveryCheckDeclaresEvidence(t *testing.T) {
	cat, err := LoadCatalogue(SuiteDestination)
	require.NoError(t, err)
	for _, c := range cat.Checks {
		if c.Level != Info {
			require.NotEmpty(t, c.Evidence, c.ID)
		}
		for _, kind := range c.Evidence {
			require.Contains(t, evidenceKinds, kind, c.ID)
		}
		aboutRecords := slices.ContainsFunc(c.Evidence, func(k Evidence) bool {
			return slices.Contains([]Evidence{SeenResults, SeenAccepted, SeenRefused, SeenStored, SeenChanged, SeenKept, SeenDeleted, SeenAbsent}, k)
		})
		if aboutRecords {
			require.True(t, c.Write, "%s sees records and writes none", c.ID)
		}
		if c.ReadbackRequired && c.Level != Info {
			require.True(t, slices.ContainsFunc(c.Evidence, func(k Evidence) bool {
				return slices.Contains([]Evidence{SeenStored, SeenChanged, SeenKept, SeenDeleted, SeenAbsent}, k)
			}), "%s needs a read-back and passes without anything that it shows", c.ID)
		}
	}
	for _, kind := range evidenceKinds {
		require.NotEmpty(t, lacking[kind].reason, kind)
	}
	require.Len(t, lacking, len(evidenceKinds))
}

// seeing is the findings of a check that declares these kinds.
func seeing(kinds ...Evidence) *Findings {
	return &Findings{check: &Check{ID: "AAA-001", Evidence: kinds}, secrets: wire.NewRedactor()}
}

// TestAPassRestsOnEvidence: a scenario that holds is INCONCLUSIVE as long as one
// kind of its evidence was not seen, whatever else was.
func TestAPassRestsOnEvidence(t *testing.T) {
	pass := &outcome{status: Pass}
	for _, kind := range evidenceKinds {
		t.Run(string(kind), func(t *testing.T) {
			found := seeing(kind)
			for _, other := range evidenceKinds {
				if other != kind {
					found.Saw(other, 3)
				}
			}
			found.Saw(kind, 0)
			r := found.result(pass, false)
			require.Equal(t, Inconclusive, r.Status)
			require.Equal(t, lacking[kind].reason, r.Reason)
			require.Equal(t, lacking[kind].decider, r.Decider)
			require.Empty(t, r.Evidence, "what was not asked for is no evidence")

			found.Saw(kind, 2)
			found.Saw(kind, 1)
			r = found.result(pass, false)
			require.Equal(t, Pass, r.Status)
			require.Equal(t, "3 "+string(kind), r.Evidence)
		})
	}
}

func TestEveryKindOfEvidenceIsNeeded(t *testing.T) {
	found := seeing(SeenAccepted, SeenRefused)
	found.Saw(SeenRefused, 2)
	require.Equal(t, Inconclusive, found.result(&outcome{status: Pass}, false).Status)
	found.Saw(SeenAccepted, 5)
	found.Proof("upsert: 5 accepted")
	r := found.result(&outcome{status: Pass}, false)
	require.Equal(t, Pass, r.Status)
	require.Equal(t, "5 accepted; 2 refused; upsert: 5 accepted", r.Evidence)
	require.Equal(t, map[Evidence]int{SeenAccepted: 5, SeenRefused: 2}, r.Seen)
}

// TestARefusalIsTheReason: where the endpoint refused records, its words say why
// nothing was seen, and values that it takes would decide.
func TestARefusalIsTheReason(t *testing.T) {
	for kind, said := range map[Evidence]bool{
		SeenAccepted: true, SeenStored: true, SeenChanged: true, SeenDeleted: true,
		SeenResponses: false, SeenErrors: false, SeenResults: false, SeenRefused: false, SeenKept: false, SeenAbsent: false,
	} {
		found := seeing(kind)
		found.refusal = "table is locked"
		r := found.result(&outcome{status: Pass}, false)
		require.Equal(t, Inconclusive, r.Status)
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
	for _, status := range []Status{NotApplicable, NotRun, Inconclusive, HarnessError} {
		found := seeing(SeenStored)
		r := found.result(&outcome{status: status, reason: "why"}, false)
		require.Equal(t, status, r.Status)
		require.Equal(t, "why", r.Reason)
		found.Saw(SeenStored, 1)
		require.Equal(t, status, found.result(&outcome{status: status}, false).Status)
	}
	found := seeing(SeenStored)
	found.Broken("this", "that")
	require.Equal(t, Fail, found.result(&outcome{status: Fail}, false).Status, "a failure needs no evidence beside its finding")
	require.Equal(t, Fail, found.result(&outcome{status: Pass}, false).Status)
}
