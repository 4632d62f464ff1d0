package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestDeepBodiesAreNotLaidOut: each level of JSON indents all below it, so a small body
// could become one of hundreds of megabytes.
func TestDeepBodiesAreNotLaidOut(t *testing.T) {
	for name, body := range map[string]string{
		"deep": strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
		"wide": `{"result": "` + strings.Repeat("x", 4<<20) + `"}`,
	} {
		size := 0
		for _, l := range layOut(wire.Body{Text: body}) {
			size += len(l)
		}
		require.LessOrEqual(t, size, 2*maxPretty, name)
	}
	require.Equal(t, []string{"{", `  "result": []`, "}"}, layOut(wire.Body{Text: `{"result":[]}`}))
}
