package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryCheckDeclaresEvidence: a check that can fail a run declares what a pass rests on.
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
}
