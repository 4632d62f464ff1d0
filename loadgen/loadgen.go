// Package loadgen generates load: it sends batches of a custom destination protocol (spec 4.2)
// as fast as requested or as fast as the target takes them, by a schedule or in a closed loop,
// and checks every record's result on the way.
//
// It owns the run: the data (objects, mixes, keys), the connections and phases, the
// figures, their limits and how they are written. Records, batches, connections and the
// schedule are packages below; pages are made of its results elsewhere. It refuses to
// know the judge, the simulator and the service; it never listens, prints or reads the
// environment.
package loadgen

import (
	"strings"

	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// UsageError is a mistake of the caller, in words: nothing was sent.
type UsageError = wire.UsageError

// Target is the custom destination to be loaded.
type Target = wire.Target

// Transport sets how the target is reached.
type Transport = wire.Transport

// DefaultKeyTemplate of string identifiers; {n} has twelve digits.
const DefaultKeyTemplate = records.DefaultTemplate

// Keys defines the identifiers that a run uses, so that no one mistakes them for data and
// clean-up can name them one by one: the n-th key of the run, from 0.
type Keys struct {
	// Template of string identifiers; {run} and {n} are filled in. All keys of a
	// run have the same length.
	Template string `json:"template"`
	// From and To are the closed range of integer identifiers.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// RunKeys are the keys of a run that is known by its id, as Clean takes them. template
// is "" and from and to are 0 for a run without its own keys.
func RunKeys(run, template string, from, to int64) (Keys, error) {
	if run == "" || strings.ContainsAny(run, "{}") {
		return Keys{}, wire.Usagef("%q is no id of a run: it is in the keys, such as e9e7dc in zz-load-e9e7dc-000000000000", run)
	}
	k, err := records.NewKeys(template, run, from, to)
	return Keys(k), err
}
