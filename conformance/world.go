package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance/wire"
)

// world is the state of one scenario on its way: what was sent, what came
// back, and what was found.
type world struct {
	*session
	ctx   context.Context
	check *Check
	// object is the destination object under judgement, nil in checks that
	// look at no single object.
	object *object

	unheard *reply     // a planning reply that did not arrive
	replies []*reply   // of the latest When and of all before it
	batches []*batch   // sync_batch calls with their records, in order
	latest  []*batch   // those of the latest When
	waves   [][]*batch // those of every When
	sets    []set      // what the latest When sent
	history []set      // what every When sent
	bad     []*record  // the records that must not be accepted
	badSure bool       // the author says that they are bad
	// valuesMatter: only a read-back can decide, since the check is about
	// values and not about existence.
	valuesMatter bool
	model        *model                        // what the destination must hold now
	modelBefore  *model                        // and before the latest When
	endings      []func(context.Context) error // hooks to end
	vars         map[string]any                // what one step leaves for another

	run      int64 // the sync_run_id of the scenario
	runOnce  sync.Once
	findings []Finding
	surplus  int // findings beyond maxFindings
	notes    []string
	evidence []string
	weak     *outcome // set when a claim holds on weak evidence only
	// hookAsked tells that the read-back hook was asked about the object.
	hookAsked bool
}

const maxFindings = 8

// note keeps an observation that is no finding.
func (w *world) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	for _, old := range w.notes {
		if old == n {
			return
		}
	}
	w.notes = append(w.notes, n)
}

// proof says what a PASS rests on.
func (w *world) proof(format string, args ...any) {
	w.evidence = append(w.evidence, fmt.Sprintf(format, args...))
}

// broken adds a finding: what was expected, what was seen, on which exchanges.
func (w *world) broken(expected, actual string, where ...*reply) {
	w.brokenFor("", expected, actual, where...)
}

// brokenFor is broken for one operation.
func (w *world) brokenFor(operation, expected, actual string, where ...*reply) {
	if len(w.findings) >= maxFindings {
		w.surplus++
		return
	}
	f := Finding{
		Rule: w.check.Title, Expected: expected, Actual: w.redactor.String(actual), Operation: operation,
		Cause: w.check.Cause, Fix: w.check.Fix, Exchanges: []Exchange{},
	}
	if w.object != nil {
		f.Object = w.object.APIName
	}
	for i, r := range where {
		if r == nil || i >= 4 {
			continue
		}
		f.Exchanges = append(f.Exchanges, r.Exchange)
		if f.Curl == "" {
			f.Curl = wire.Curl(r.Exchange)
		}
		if f.Object == "" && r.object != "" {
			f.Object = r.object
		}
	}
	w.findings = append(w.findings, f)
}

// held ends a Then: nil when nothing was found.
func (w *world) held() error {
	if len(w.findings) > 0 {
		return errBroken
	}
	return nil
}

// need asks for a read-back hook where nothing else can decide.
func (w *world) needReadback() error {
	if w.readback == nil {
		return notRun("readback", "needs the read-back hook: give --readback-url or --readback-command")
	}
	return nil
}

// list joins names for a sentence, at most ten.
func list(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + fmt.Sprintf(" and %d more", len(names)-10)
	}
	return strings.Join(names, ", ")
}
