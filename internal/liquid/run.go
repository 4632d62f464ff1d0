package liquid

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/osteele/liquid/render"
	"github.com/osteele/liquid/values"
	"golang.org/x/sync/semaphore"
)

// Limits bound one rendering of a template. Zero values are the defaults.
type Limits struct {
	Iterations int       // rounds of loops and items of ranges; default 100,000
	Output     int       // bytes of the result; default MostText
	Text       int       // bytes of one value on the way there; default MostText
	Memory     int       // bytes of all values that are made on the way; default MostMemory
	Work       int       // bytes that all filters together read; default 256 MiB
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

const (
	itemCost = 64 // bytes that a filter takes for each item of an array or a map
	heavyAt  = 4 << 20
	heavies  = 2 // renderings of more than heavyAt at once, over the whole process
)

// heavy makes large renderings wait for each other: each is short, and together
// they would take the memory of all.
var heavy = semaphore.NewWeighted(heavies)

var errLimit = errors.New("Memory limits exceeded") //nolint:staticcheck // published

// withDefaults fills in defaults, and takes the time once: now means the same in
// all of a template.
func (l Limits) withDefaults() Limits {
	l.Iterations, l.Output = cmp.Or(l.Iterations, 100_000), cmp.Or(l.Output, MostText)
	l.Text, l.Memory, l.Work = cmp.Or(l.Text, MostText), cmp.Or(l.Memory, MostMemory), cmp.Or(l.Work, 256<<20)
	if l.Now.IsZero() {
		l.Now = time.Now()
	}
	if l.Context == nil {
		l.Context = context.Background()
	}
	return l
}

// run is one rendering: the data of tags besides variables, and the rest of the
// limits.
type run struct {
	limits                 Limits
	length                 int            // of the template
	counters, turns        map[string]int // of variables; of cycles and loops
	columns                map[string]any // with objects
	changed                *string        // the last output of ifchanged
	iterations, work, made int
	heavy                  bool // this one has a place among the large ones
}

// runName is a variable that no template can name: it hands the rendering to tags
// and filters.
const runName = ""

// runOf is the rendering that a tag belongs to.
func runOf(ctx render.Context) *run { return ctx.Get(runName).(*run) }

// set writes into a map and makes it first if need be: most templates need none.
func set[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// exceeded is the error of a limit.
func exceeded(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errLimit}, args...)...)
}

// iterate accounts for rounds of loops and items of ranges, before there are any,
// and for what each of them may print and do: as much as the template is long.
func (r *run) iterate(n, each int) error {
	if n > r.limits.Iterations-r.iterations {
		return exceeded("more than %d iterations", r.limits.Iterations)
	}
	r.iterations += max(0, n)
	return r.take(max(0, n) * each)
}

// read accounts for the work on a value.
func (r *run) read(value any) error {
	if r.work += size(value, r.limits.Text); r.work > r.limits.Work {
		return exceeded("more than %d bytes of work", r.limits.Work)
	}
	return nil
}

// make accounts for a value of so many bytes, where it can be known before it is
// there: a text that is replaced ten times over takes all memory otherwise.
func (r *run) make(bytes int) error {
	if bytes > r.limits.Text {
		return exceeded("a value of more than %d bytes", r.limits.Text)
	}
	return r.take(bytes)
}

// take accounts for memory of any use, and checks whether anybody still waits for
// the result.
func (r *run) take(bytes int) error {
	if r.limits.Context.Err() != nil {
		return context.Cause(r.limits.Context)
	}
	if bytes > r.limits.Memory-r.made {
		return exceeded("values of more than %d bytes together", r.limits.Memory)
	}
	r.made += bytes
	if r.made > heavyAt && !r.heavy {
		if heavy.Acquire(r.limits.Context, 1) != nil {
			return context.Cause(r.limits.Context)
		}
		r.heavy = true
	}
	return nil
}

// close lets the next large rendering begin.
func (r *run) close() {
	if r.heavy {
		heavy.Release(1)
	}
}

// output is what a template or a block prints, up to its limit.
type output struct {
	run  *run
	text strings.Builder
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	if o.text.Len()+len(text) > o.run.limits.Output {
		return 0, exceeded("an output of more than %d bytes", o.run.limits.Output)
	}
	// Growing text is copied as it grows, and waits in the library before.
	if err := errors.Join(o.run.make(len(text)), o.run.take(len(text))); err != nil {
		return 0, err
	}
	return o.text.Write(text)
}

// repeated accounts for a text that is made count times, whose length may not fit an
// integer.
func (r *run) repeated(count int, text string) error {
	if len(text) > 0 && count > r.limits.Text/len(text) {
		return r.make(r.limits.Text + 1)
	}
	return r.make(count * len(text))
}

// size is the most that the text of a value takes, in whatever notation; it stops
// above a number.
func size(value any, most int) int {
	total := 48
	switch v := value.(type) {
	case string:
		return len(v)
	case json.Number:
		return len(v)
	case values.SafeValue:
		return size(v.Value, most)
	case []any:
		for i := 0; i < len(v) && total <= most; i++ {
			total += 4 + 2*size(v[i], most-total)
		}
	case object:
		for key, item := range v {
			if total += 8 + 2*len(key) + 2*size(item, most-total); total > most {
				break
			}
		}
	}
	return total
}
