package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// world is the state of one scenario on its way: what was sent, what came
// back, and what was found.
type world struct {
	*session
	Scene
	ctx context.Context
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

	run     int64 // the sync_run_id of the scenario
	runOnce sync.Once
	// hookAsked tells that the read-back hook was asked about the object.
	hookAsked bool
}

// newWorld is a scenario of a check for an object, or for none.
func (s *session) newWorld(ctx context.Context, c *Check, o *object) *world {
	return &world{session: s, Scene: Scene{check: c, secrets: s.redactor}, ctx: ctx, object: o, vars: map[string]any{}}
}

func (w *world) note(format string, args ...any)  { w.Note(format, args...) }
func (w *world) proof(format string, args ...any) { w.Proof(format, args...) }
func (w *world) held() error                      { return w.Held() }

// broken adds a finding: what was expected, what was seen, in which replies.
func (w *world) broken(expected, actual string, where ...*reply) {
	w.brokenFor("", expected, actual, where...)
}

// brokenFor is broken for one operation.
func (w *world) brokenFor(operation, expected, actual string, where ...*reply) {
	f := Finding{Expected: expected, Actual: actual, Operation: operation, Replica: w.replicas.shown(where)}
	if w.object != nil {
		f.Object = w.object.APIName
	}
	var exchanges []Exchange
	for _, r := range where {
		if r == nil {
			continue
		}
		exchanges = append(exchanges, r.Exchange())
		if f.Object == "" && r.object != "" {
			f.Object = r.object
		}
	}
	if told := w.replicas.told(w.replies); told != "" {
		f.Actual += "; " + told
		f.Cause = " Or a process keeps for itself what the next call, to another one, needs."
	}
	w.add(f, exchanges)
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
