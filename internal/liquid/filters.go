package liquid

import (
	"fmt"
)

// filter is one filter: how many arguments it takes beside its input, and what
// it does.
type filter struct {
	least, most int
	apply       func(r *run, input any, args []any) (any, error)
}

// filters are those of Liquid 5.4, those of its successors that the service
// offers (find, find_index, has, reject, squish), and the service's own.
var filters = map[string]filter{}

func init() {
	for _, group := range []map[string]filter{textFilters, arrayFilters, numberFilters, ownFilters} {
		for name, f := range group {
			filters[name] = f
		}
	}
}

// checkCount words the error as the published language does, with the input
// counted.
func (f filter) checkCount(given int) error {
	if given >= f.least && given <= f.most {
		return nil
	}
	expected := fmt.Sprint(f.least + 1)
	if f.most > f.least {
		expected = fmt.Sprintf("%d..%d", f.least+1, f.most+1)
	}
	return fmt.Errorf("wrong number of arguments (given %d, expected %s)", given+1, expected)
}

// argument is the nth argument, or the standard value when it is not given.
func argument(args []any, n int, standard any) any {
	if n < len(args) {
		return args[n]
	}
	return standard
}

// onText is a filter that makes a text of a text.
func onText(apply func(string) string) filter {
	return filter{apply: func(_ *run, input any, _ []any) (any, error) { return apply(toText(input)), nil }}
}

// onPresent is like onText, but leaves nil alone.
func onPresent(apply func(string) (any, error)) filter {
	return filter{apply: func(_ *run, input any, _ []any) (any, error) {
		if input == nil {
			return nil, nil
		}
		return apply(toText(input))
	}}
}
