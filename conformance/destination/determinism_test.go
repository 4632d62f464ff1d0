package destination

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// clockwork are the members of a report that a clock writes, not the judge.
var clockwork = []string{"started", "duration_ms", "summary"}

// timeless takes everything out of a report that time alone decides.
func timeless(v any) any {
	switch x := v.(type) {
	case []any:
		out := []any{}
		for _, item := range x {
			if header, ok := item.(map[string]any); ok && header["name"] == "Date" {
				continue
			}
			out = append(out, timeless(item))
		}
		return out
	case map[string]any:
		for name, item := range x {
			if slices.Contains(clockwork, name) {
				delete(x, name)
				continue
			}
			x[name] = timeless(item)
		}
	}
	return v
}

// TestSameSeedSameReport: serial runs with one seed send the same ids, keys and values in the same
// order and report the same.
func TestSameSeedSameReport(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) any {
		e := newSmall()
		e.keep = func(operation, _ string) bool { return operation != "update" } // something to report
		opts := writing(e)
		opts.Serial, opts.Seed = true, seed
		r, err := Run(context.Background(), Target{Handler: e, Token: "the-token-of-the-tests"}, opts)
		require.NoError(t, err)
		require.NotEmpty(t, r.Failed)
		var doc any
		require.NoError(t, json.Unmarshal([]byte(encoded(r)), &doc))
		return timeless(doc)
	}
	first := run(7)
	require.Equal(t, first, run(7))
	require.NotEqual(t, first, run(8), "another seed makes other ids")
}
