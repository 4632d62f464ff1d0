package destination

import (
	"context"
	"strings"
	"testing"

	"github.com/destkit/destkit/conformance"
)

// Test judges a destination inside a Go test: each check becomes a subtest, which a gated failure
// fails and an undecided check skips. The Options are optional.
func Test(t *testing.T, target Target, options ...conformance.Options) *conformance.Report {
	t.Helper()
	var opts conformance.Options
	if len(options) > 0 {
		opts = options[0]
	}
	r, err := Run(context.Background(), target, opts)
	if err != nil {
		t.Fatalf("judge the destination: %v", err)
	}
	for _, p := range r.Problems {
		if p.ExitStatus != 1 {
			t.Errorf("%s: %s", p.Kind, p.Message)
		}
	}
	for _, c := range r.Checks {
		t.Run(c.ID, func(t *testing.T) {
			switch c.Status {
			case conformance.Fail, conformance.Flaky:
				t.Error(describe(c))
			case conformance.HarnessError:
				t.Errorf("%s: %s", c.Title, c.Reason)
			case conformance.Warn:
				t.Log(describe(c))
			case conformance.NotRun, conformance.NotApplicable, conformance.Inconclusive:
				t.Skipf("%s: %s", c.Status, c.Reason)
			}
		})
	}
	return r
}

func describe(c conformance.CheckResult) string {
	var b strings.Builder
	b.WriteString(c.Title)
	for _, f := range c.Findings {
		b.WriteString("\n  expected " + f.Expected + "\n  actual   " + f.Actual)
		if f.Fix != "" {
			b.WriteString("\n  fix      " + f.Fix)
		}
	}
	return b.String()
}
