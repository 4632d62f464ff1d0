package liquid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits bound one rendering of a template. Zero values are the defaults.
type Limits struct {
	Iterations int       // rounds of loops and items of ranges; default 100,000
	Output     int       // bytes of the result; default MostText
	Text       int       // bytes of one value on the way there; default MostText
	Memory     int       // bytes of all values that are made on the way; default MostMemory
	Work       int       // bytes that all filters and comparisons together read and make; default 256 MiB
	Now        time.Time // what "now" means; default the system's clock
	// Context ends a rendering whose result is not waited for any more; nil: nothing
	// does.
	Context context.Context
}

// The default limits of memory. Of renderings that make more than 4 MiB only a few
// run at once in a process.
const (
	MostText   = 4 << 20
	MostMemory = 64 << 20
)

// withDefaults fills in what is zero, and takes the time once: now means the
// same in all of a template.
func (l Limits) withDefaults() Limits {
	setIfZero := func(at *int, value int) {
		if *at <= 0 {
			*at = value
		}
	}
	setIfZero(&l.Iterations, 100_000)
	setIfZero(&l.Output, MostText)
	setIfZero(&l.Text, MostText)
	setIfZero(&l.Memory, MostMemory)
	setIfZero(&l.Work, 256<<20)
	if l.Now.IsZero() {
		l.Now = time.Now()
	}
	return l
}

// run is one rendering: the variables and what is left of the limits.
type run struct {
	limits     Limits
	record     map[string]any
	scopes     []map[string]any // the first holds assigned variables, the others those of loops
	out        *strings.Builder
	counters   map[string]any // of increment and decrement
	cycles     map[string]int
	offsets    map[string]int64 // where loops with offset:continue go on
	loops      []*forLoop
	changed    *string // the last output of ifchanged
	interrupt  error
	iterations int
	steps      int
	work       int
	made       int
	heavy      bool // this one has a place among the large ones
	escape     bool // JSON mode
}

// newRun makes no maps yet: most templates set no variables, and there is one
// run for each record.
func newRun(record map[string]any, limits Limits) *run {
	return &run{limits: limits.withDefaults(), record: record, out: &strings.Builder{}, scopes: make([]map[string]any, 1, 4)}
}

// assign sets a variable outside all loops.
func (r *run) assign(name string, value any) { set(&r.scopes[0], name, value) }

// set writes into a map and makes it first if need be: most templates need none.
func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

var (
	// Both leave blocks as errors do; the loop around them takes them up.
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
	errLimit    = published("Memory limits exceeded")
)

// iterate accounts for rounds of loops and items of ranges.
func (r *run) iterate(n int64) error {
	if n > int64(r.limits.Iterations-r.iterations) {
		return fmt.Errorf("%w: more than %d iterations", errLimit, r.limits.Iterations)
	}
	r.iterations += int(n)
	return nil
}

// stepsPerIteration bounds the tags of a template that has many of them in its
// loops.
const stepsPerIteration = 10

// step accounts for one tag or text.
func (r *run) step() error {
	if r.steps++; r.steps > stepsPerIteration*r.limits.Iterations {
		return failed(fmt.Errorf("%w: more than %d steps", errLimit, stepsPerIteration*r.limits.Iterations))
	}
	return r.alive()
}

// spendOn accounts for a value that a filter or a comparison goes through or
// makes, by its size in bytes, roughly.
func (r *run) spendOn(value any) error {
	// About what a value costs to keep; items are counted and not measured.
	size := 8
	switch v := value.(type) {
	case string:
		size += len(v)
	case []any:
		size += 16 * len(v)
	case map[string]any:
		size += 64 * len(v)
	}
	r.work += size
	if r.work > r.limits.Work {
		return fmt.Errorf("%w: more than %d bytes of work", errLimit, r.limits.Work)
	}
	return nil
}

// find looks a variable up in the loops from the inside out, then among the
// assigned ones, then among counters and the record.
func (r *run) find(name string) (any, error) {
	for i := len(r.scopes) - 1; i >= 0; i-- {
		if value, ok := r.scopes[i][name]; ok {
			return liquidValue(value), nil
		}
	}
	if value, ok := r.counters[name]; ok {
		return value, nil
	}
	if name == recordName {
		return r.record, nil
	}
	return nil, unknownVariable(name)
}

// recordName is the one variable that a template is given (spec 2.7).
const recordName = "record"

// UnknownColumn is the error of a column that does not exist, in the published
// words, by which clients know it.
func UnknownColumn(name string) error {
	return publishedf("Column being referenced in template can't be found in data source [%s]", name)
}

// unknownVariable has the published words.
func unknownVariable(name string) error { return fmt.Errorf("[expr] unknown variable `%s`", name) }

// value walks the path. A column that the record lacks has its own published
// error.
func (l lookup) value(r *run) (any, error) {
	root, err := l.root.value(r)
	if err != nil {
		return nil, err
	}
	name := toShort(root)
	value, err := r.find(name)
	if err != nil {
		return nil, err
	}
	fromRecord := name == recordName
	for i, s := range l.path {
		key, err := s.key.value(r)
		if err != nil {
			return nil, err
		}
		next, ok, err := stepInto(value, key, s.command)
		if err != nil {
			return nil, err
		}
		if !ok {
			if _, isRecord := value.(map[string]any); isRecord && fromRecord && i == 0 {
				return nil, UnknownColumn(shown(key))
			}
			return nil, unknownVariable(shown(key))
		}
		value = liquidValue(next)
	}
	return value, nil
}

// stepInto takes one step; ok is false where there is nothing.
func stepInto(value, key any, command bool) (next any, ok bool, err error) {
	name, isName := key.(string)
	switch v := value.(type) {
	case map[string]any:
		if next, ok = v[name]; isName && ok {
			return next, true, nil
		}
		if command && name == "size" {
			return int64(len(v)), true, nil
		}
		if command && name == "first" {
			return firstOfMap(v), true, nil
		}
	case []any:
		if n, isIndex := key.(int64); isIndex {
			if n < 0 {
				n += int64(len(v))
			}
			// Beyond the end there is nil, not an error.
			if n < 0 || n >= int64(len(v)) {
				return nil, true, nil
			}
			return v[n], true, nil
		}
		if command {
			return arrayCommand(v, name), true, nil
		}
	case drop:
		next, ok := v.property(name)
		if !ok {
			return nil, false, fmt.Errorf("undefined method %s", shown(key))
		}
		return next, true, nil
	case intRange:
		if command {
			return map[string]any{"size": v.size(), "first": v.from, "last": v.to}[name], true, nil
		}
	}
	if command && name == "size" {
		size, has := sizeOf(value)
		return size, has, nil
	}
	return nil, false, nil
}

// arrayCommand is .size, .first or .last of an array.
func arrayCommand(items []any, name string) any {
	switch {
	case name == "size":
		return int64(len(items))
	case len(items) == 0:
		return nil
	case name == "first":
		return items[0]
	}
	return items[len(items)-1]
}

// value computes both ends; a range from a larger to a smaller number is empty.
func (e rangeExpression) value(r *run) (any, error) {
	from, err := rangeEnd(r, e.from)
	if err != nil {
		return nil, err
	}
	to, err := rangeEnd(r, e.to)
	return intRange{from, to}, err
}

// rangeEnd: constants of any kind and texts are cut to integers, other values
// must be integers.
func rangeEnd(r *run, e expression) (int64, error) {
	value, err := e.value(r)
	if err != nil {
		return 0, err
	}
	_, constant := e.(literal)
	switch value.(type) {
	case nil, string:
		constant = true
	}
	if !constant {
		return toInteger(value)
	}
	if f, ok := value.(float64); ok {
		return int64(f), nil
	}
	n, _ := toNumber(value).integer()
	return n, nil
}
