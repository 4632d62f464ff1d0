package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
)

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
