package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
)

// TestResidueIsNotClaimedToBeGone: what was deleted by acknowledgement only is marked so wherever
// residue is shown, and no text claims that nothing is left behind.
func TestResidueIsNotClaimedToBeGone(t *testing.T) {
	r := &c.Report{
		Target: "https://example.com/d", Verdict: c.Conformant, Settings: c.Settings{Write: true},
		Checks: []c.CheckResult{{ID: "RES-001", Status: c.Pass}},
		Residue: c.Residue{Cleaned: 3, VerifiedBy: []string{"readback", "witness"}, Unverified: 240,
			UnverifiedReason: "nothing shows whether they are gone", Journal: "run.ndjson"},
	}
	for _, format := range []string{Text, Markdown, HTML} {
		said := written(t, format, r)
		require.Contains(t, said, "3 cleaned (shown by read-back and updates that were skipped), 240 by acknowledgement only", format)
		require.Contains(t, said, "nothing shows whether they are gone", format)
		require.NotContains(t, said, "left behind", format)
	}
	require.Contains(t, written(t, Text, r), "destkit clean --journal run.ndjson")
	require.Contains(t, written(t, JSON, r), `"unverified": 240`)

	r.Residue = c.Residue{Cleaned: 243, VerifiedBy: []string{"readback"}}
	require.Contains(t, written(t, Markdown, r), "243 records cleaned, none left behind")
	require.Contains(t, written(t, HTML, r), "Nothing is left behind")
	require.NotContains(t, written(t, JSON, r), "unverified")
}

// TestLeftoversOfOneReason: an answer that left many keys is shown once, with all of them.
func TestLeftoversOfOneReason(t *testing.T) {
	require.Equal(t, []string{
		`contact email "a", "b", "d" (delete: HTTP 502 <html>)`,
		`contact email "c" (delete: locked)`,
		`order email "e" (delete: HTTP 502 <html>)`,
		`order email "f"`,
	}, leftovers([]c.Leftover{
		{Object: "contact", Field: "email", Identifier: `"a"`, Reason: "delete: HTTP 502 <html>"},
		{Object: "contact", Field: "email", Identifier: `"b"`, Reason: "delete: HTTP 502 <html>"},
		{Object: "contact", Field: "email", Identifier: `"c"`, Reason: "delete: locked"},
		{Object: "contact", Field: "email", Identifier: `"d"`, Reason: "delete: HTTP 502 <html>"},
		{Object: "order", Field: "email", Identifier: `"e"`, Reason: "delete: HTTP 502 <html>"},
		{Object: "order", Field: "email", Identifier: `"f"`},
	}))
}
