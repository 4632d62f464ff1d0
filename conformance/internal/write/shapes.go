package write

import (
	"slices"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// arraysInTurn gives each array of the record another length.
func arraysInTurn(sc *Scenario, r *Record) *Record {
	turn := r.Turn + 1
	var arrays []rpc.Field
	for _, f := range r.Object.Fields {
		if !f.Array || !BothWays(f) || r.Object.Avoids(f.APIName) {
			continue
		}
		how := values.Guess
		if l := r.Object.Lessons[f.APIName]; l != nil {
			how = l.Style
		}
		arrays = append(arrays, f)
		r = r.With(f.APIName, sc.Made.ArrayInTurn(f, r.Seed, turn, how, !f.Required && !r.Object.NoNull(f.APIName)))
	}
	if len(arrays) == 0 {
		return r
	}
	r.Turn, r.Odd.Fields = turn, arrays
	return r
}

// NullsInTurn gives the record nulls where it had values, and new values where it had nulls.
func NullsInTurn(sc *Scenario, r *Record) *Record {
	c := sc.Changed(r, r.Turn+1)
	c.Turn = r.Turn + 1
	if r.Seed.NullInTurn(c.Turn) {
		c = NullRest(sc, c)
	}
	return c
}

// oneBeyond keeps what is required and the first field beyond it: batches that are large
// for another reason than their size stay far below what a statement can hold.
func oneBeyond(_ *Scenario, r *Record) *Record {
	beyond := slices.IndexFunc(r.Object.Fields, func(f rpc.Field) bool {
		_, ok := r.Values[f.APIName]
		return ok && !f.Required && f.APIName != r.ID.APIName
	})
	return r.keep(func(f rpc.Field) bool {
		return f.Required || beyond >= 0 && f.APIName == r.Object.Fields[beyond].APIName
	})
}

// fewerFields leaves out every other field that need not be there, the first included,
// and never all of them: whether identifiers alone are taken is for RES-013.
func fewerFields(_ *Scenario, r *Record) *Record {
	var optional []string
	for _, f := range r.Object.Fields {
		if _, ok := r.Values[f.APIName]; ok && !f.Required && f.APIName != r.ID.APIName {
			optional = append(optional, f.APIName)
		}
	}
	return r.keep(func(f rpc.Field) bool {
		return f.Required || len(optional) == 1 || slices.Index(optional, f.APIName)%2 == 1
	})
}
