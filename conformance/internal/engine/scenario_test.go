package engine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

// diary is an actor that notes its steps.
type diary struct{ entries []string }

func (d *diary) note(text string) error {
	d.entries = append(d.entries, text)
	switch text {
	case "breaks":
		return errBroken
	case "does not bind":
		return Outcome(conformance.NotApplicable, "", "nothing of that kind")
	case "errs":
		return errors.New("no such file")
	case "panics":
		panic("out of range")
	}
	return nil
}

// TestRunScenario: a step acts when godog comes to it, the first one that does not hold
// ends the scenario, and its error is the outcome.
func TestRunScenario(t *testing.T) {
	steps := []Step{
		NewStep(`^it (holds|breaks|does not bind|errs|panics|is said twice)$`, func(d *diary) any { return d.note }),
		NewStep(`^it is said (twice)$`, func(d *diary) any { return d.note }),
		NewStep(`^a table:$`, func(d *diary) any {
			return func(t *Table) {
				for _, row := range Rows(t) {
					d.entries = append(d.entries, row...)
				}
			}
		}),
	}
	for name, c := range map[string]struct {
		steps, negated string
		want           conformance.Status
		reason         string
		acted          []string
	}{
		"all hold":                  {"Given it holds\nThen it holds", "", conformance.Pass, "", []string{"holds", "holds"}},
		"a table":                   {"Given a table:\n| a | b |\n| 1 |   |", "", conformance.Pass, "", []string{"a", "b", "1", ""}},
		"a broken claim":            {"Then it breaks\nAnd it holds", "", conformance.Fail, "rule broken", []string{"breaks"}},
		"another outcome":           {"Given it does not bind\nThen it breaks", "", conformance.NotApplicable, "nothing of that kind", []string{"does not bind"}},
		"an error of the judge":     {"Given it errs\nThen it breaks", "", conformance.HarnessError, "no such file", []string{"errs"}},
		"a panic":                   {"Given it panics", "", conformance.HarnessError, "out of range", []string{"panics"}},
		"a step that is not known":  {"Given it holds\nWhen it sings\nThen it breaks", "", conformance.HarnessError, "step is not defined: it sings", []string{"holds"}},
		"a step with two meanings":  {"Given it is said twice", "", conformance.HarnessError, "step is ambiguous: it is said twice", nil},
		"no steps":                  {"", "", conformance.HarnessError, "no step was run", nil},
		"no Gherkin":                {"Given it holds\nwhatever", "", conformance.HarnessError, "no step was run", nil},
		"the opposite holds":        {"Then it breaks\nAnd it holds", "it breaks", conformance.Pass, "", []string{"breaks"}},
		"the opposite does not":     {"Then it holds\nAnd it errs", "it holds", conformance.Fail, "negated", []string{"holds", "errs"}},
		"the opposite of an unsure": {"Then it does not bind", "it does not bind", conformance.NotApplicable, "nothing of that kind", []string{"does not bind"}},
	} {
		t.Run(name, func(t *testing.T) {
			check := &conformance.Check{ID: "AAA-001", Source: "Feature: F\nScenario: S\n" + c.steps + "\n", Place: conformance.Place{File: "a.feature"}}
			for range 2 { // the second run knows which definitions the first one has used
				d := &diary{}
				out := runScenario(t.Context(), check, steps, d, c.negated)
				require.Equal(t, c.want, out.status)
				require.Equal(t, c.reason, out.reason)
				require.Equal(t, c.acted, d.entries)
			}
		})
	}
}
