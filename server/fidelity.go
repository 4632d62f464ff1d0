package server

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
	"github.com/destkit/destkit/server/internal/problem"
)

//go:embed fidelity.yaml
var fidelityText []byte

// fidelityProofs are the tests of each row, gathered by a test from the sources
// of the tests, so that the running program can name them.
//
//go:embed fidelity_proofs.json
var fidelityProofs []byte

// The states of a row of the ledger.
const (
	StateSpecified = "specified" // the specification says so
	StatePublished = "published" // it does not, published pages or clients do
	StateAssumed   = "assumed"   // nobody does; our choice
	StateUnknown   = "unknown"   // nobody does; do not rely on it
)

var fidelityStates = []string{StateSpecified, StatePublished, StateAssumed, StateUnknown}

// Fidelity is one row of the ledger: a rule of spec sections 2 to 9 that
// concerns the REST API, how well it is founded, and the tests that prove it.
type Fidelity struct {
	ID      string   `json:"id"`
	Section string   `json:"section"`
	Rule    string   `json:"rule"`
	State   string   `json:"state"`
	Proof   []string `json:"proof"`
	// BrokenBy are the violations and the alterations of answers that contradict the
	// rule: make mutations runs its tests against them.
	BrokenBy []string `json:"-"`
}

// fidelityDocument is the embedded ledger. It names no tests: these say
// themselves what they prove.
type fidelityDocument struct {
	Sections []struct {
		Section string `yaml:"section"`
		Title   string `yaml:"title"`
		Rows    []struct {
			ID       string   `yaml:"id"`
			State    string   `yaml:"state"`
			Rule     string   `yaml:"rule"`
			BrokenBy []string `yaml:"broken_by"`
		} `yaml:"rows"`
	} `yaml:"sections"`
}

// FidelityLedger lists the rows in the order of the specification. The embedded
// text is part of the program; a test holds it, so an error is a mistake there.
var FidelityLedger = sync.OnceValues(func() ([]Fidelity, error) {
	var document fidelityDocument
	if err := yamldoc.Decode("fidelity.yaml", fidelityText, &document); err != nil {
		return nil, fmt.Errorf("read ledger of fidelity: %w", err)
	}
	proofs := map[string][]string{}
	if err := json.Unmarshal(fidelityProofs, &proofs); err != nil {
		return nil, fmt.Errorf("read proofs of fidelity: %w", err)
	}
	var rows []Fidelity
	for _, section := range document.Sections {
		for i, row := range section.Rows {
			if want := fmt.Sprintf("F-%s-%02d", section.Section, i+1); row.ID != want {
				return nil, fmt.Errorf("read ledger of fidelity: row %d of section %s is called %q and not %s", i+1, section.Section, row.ID, want)
			}
			if row.Rule == "" || !slices.Contains(fidelityStates, row.State) {
				return nil, fmt.Errorf("read ledger of fidelity: row %s has no rule or an unknown state %q", row.ID, row.State)
			}
			proof := proofs[row.ID]
			if proof == nil {
				proof = []string{}
			}
			rows = append(rows, Fidelity{ID: row.ID, Section: section.Section, Rule: row.Rule, State: row.State, Proof: proof, BrokenBy: row.BrokenBy})
		}
	}
	return rows, nil
})

// chooseFidelity filters the ledger by ?state= and ?section=; a section holds
// those below it.
func chooseFidelity(query url.Values) ([]Fidelity, error) {
	rows, err := FidelityLedger()
	if err != nil {
		return nil, err
	}
	state, section := query.Get("state"), query.Get("section")
	if state != "" && !slices.Contains(fidelityStates, state) {
		return nil, problem.Invalid([]api.Problem{{Field: "state", Message: "must be one of " + strings.Join(fidelityStates, ", ")}})
	}
	chosen := []Fidelity{}
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
