package loadgen

import (
	"strings"

	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// DefaultKeyTemplate of string identifiers; {n} has twelve digits.
const DefaultKeyTemplate = records.DefaultTemplate

// Keys says which identifiers a run uses, so that no one mistakes them for data
// and clean-up can name them one by one: the n-th key of the run, from 0.
type Keys struct {
	// Template of string identifiers; {run} and {n} are filled in. All keys of a
	// run have the same length.
	Template string `json:"template"`
	// From and To are the closed range of integer identifiers.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// RunKeys are the keys of a run that is known by its id, as Clean takes them. template
// is "" and from and to are 0 for a run without keys of its own.
func RunKeys(run, template string, from, to int64) (Keys, error) {
	if run == "" || strings.ContainsAny(run, "{}") {
		return Keys{}, wire.Usagef("%q is no id of a run: it is in the keys, such as e9e7dc in zz-load-e9e7dc-000000000000", run)
	}
	k, err := records.NewKeys(template, run, from, to)
	return Keys(k), err
}
