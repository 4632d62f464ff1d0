package control

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
)

//go:embed fidelity.yaml
var rulesText []byte

// proofsText are the tests of each row, gathered by a test from the sources
// of the tests, so that the running program can name them.
//
//go:embed fidelity_proofs.json
var proofsText []byte

// The states of a row of the table.
const (
	Specified = "specified" // the specification requires it
	Published = "published" // it does not, published pages or clients do
	Assumed   = "assumed"   // no source does; our choice
	Unknown   = "unknown"   // no source does; do not rely on it
)

// FidelityStates are all of them, the best founded first.
var FidelityStates = []string{Specified, Published, Assumed, Unknown}

// FidelityRow is a rule of spec sections 2 to 9 that concerns the REST API, how well it is
// founded, and the checks of the service suite and the tests that prove it.
type FidelityRow struct {
	ID      string   `json:"id"`
	Section string   `json:"section"`
	Rule    string   `json:"rule"`
	State   string   `json:"state"`
	Proof   []string `json:"proof"`
}

// fidelityDocument is the embedded table. It names checks and no tests: tests
// name their own proofs.
type fidelityDocument struct {
	Sections []struct {
		Section string `yaml:"section"`
		Title   string `yaml:"title"`
		Rows    []struct {
			ID     string   `yaml:"id"`
			State  string   `yaml:"state"`
			Rule   string   `yaml:"rule"`
			Checks []string `yaml:"checks"`
		} `yaml:"rows"`
	} `yaml:"sections"`
}

// Fidelity lists the rows in the order of the specification. The embedded
// text is part of the program; a test holds it, so an error is a mistake there.
var Fidelity = sync.OnceValues(func() ([]FidelityRow, error) {
	var read fidelityDocument
	if err := yamldoc.Decode("fidelity.yaml", rulesText, &read); err != nil {
		return nil, fmt.Errorf("read table of fidelity: %w", err)
	}
	proofs := map[string][]string{}
	if err := json.Unmarshal(proofsText, &proofs); err != nil {
		return nil, fmt.Errorf("read proofs of fidelity: %w", err)
	}
	var rows []FidelityRow
	for _, section := range read.Sections {
		for i, row := range section.Rows {
			if want := fmt.Sprintf("F-%s-%02d", section.Section, i+1); row.ID != want {
				return nil, fmt.Errorf("read table of fidelity: row %d of section %s is called %q and not %s", i+1, section.Section, row.ID, want)
			}
			if row.Rule == "" || !slices.Contains(FidelityStates, row.State) {
				return nil, fmt.Errorf("read table of fidelity: row %s has no rule or an unknown state %q", row.ID, row.State)
			}
			proof := append(append([]string{}, row.Checks...), proofs[row.ID]...)
			rows = append(rows, FidelityRow{ID: row.ID, Section: section.Section, Rule: row.Rule, State: row.State, Proof: proof})
		}
	}
	return rows, nil
})

// chosenRows filters the table by ?state= and ?section=; a section holds
// those below it.
func chosenRows(query url.Values) ([]FidelityRow, error) {
	rows, err := Fidelity()
	if err != nil {
		return nil, err
	}
	state, section := query.Get("state"), query.Get("section")
	if state != "" && !slices.Contains(FidelityStates, state) {
		return nil, problem.Invalid([]api.Problem{{Field: "state", Message: "must be one of " + strings.Join(FidelityStates, ", ")}})
	}
	chosen := []FidelityRow{}
	for _, row := range rows {
		if (state == "" || row.State == state) &&
			(section == "" || row.Section == section || strings.HasPrefix(row.Section, section+".")) {
			chosen = append(chosen, row)
		}
	}
	if len(chosen) == 0 && section != "" && state == "" {
		return nil, problem.InvalidField("section", "there is no section %q", foreign.Clip(section, 20))
	}
	return chosen, nil
}

// fidelity answers with the rows, and counts them by their state.
func fidelity(c *call.Control) (any, error) {
	query, err := c.Query("state", "section")
	if err != nil {
		return nil, err
	}
	rows, err := chosenRows(query)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, state := range FidelityStates {
		counts[state] = 0
	}
	for _, row := range rows {
		counts[row.State]++
	}
	return map[string]any{"rows": rows, "total": len(rows), "states": counts}, nil
}
