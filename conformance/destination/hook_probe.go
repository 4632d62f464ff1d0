package destination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
)

// probeHooks looks at the hooks that the run will call before anything is written: a broken one
// would turn every check that needs it into the same error. The first is the problem of the run.
func (s *session) probeHooks(ctx context.Context, r *conformance.Report, checks []*conformance.Check) {
	for _, probe := range s.hookProbes(checks) {
		err := probe(ctx)
		if ctx.Err() != nil {
			return // an interrupted probe is no evidence about the hook
		}
		if err == nil {
			continue
		}
		p := conformance.Problem{Kind: "hook", ExitStatus: 3, Message: "call hook readback: " + err.Error()}
		if e, ok := errors.AsType[*hook.Error](err); ok {
			p.Message, p.Fix = e.What(), e.Fix
		}
		p.Message = s.Redactor.String(p.Message + "; nothing was written")
		p.Fix = s.Redactor.String(p.Fix)
		r.Problems = append(r.Problems, p)
		return
	}
}

// hookProbes are the questions about the hooks that this run calls.
func (s *session) hookProbes(checks []*conformance.Check) []func(context.Context) error {
	var out []func(context.Context) error
	reach := func(name string, spec conformance.HookSpec) {
		out = append(out, func(ctx context.Context) error { return spec.Reach(ctx, s.Hooks, s.Opts.Hooks.Timeout, name) })
	}
	if s.Opts.Write && s.Readback != nil {
		if s.Opts.ReadbackFunc == nil {
			reach("readback", s.Opts.Readback)
		}
		out = append(out, s.probeReadback)
	}
	for _, name := range hookNames {
		called := name == "cleanup" && s.Opts.Write || slices.ContainsFunc(checks, func(c *conformance.Check) bool {
			return c.Hook == name && (s.Opts.Write || !c.Write)
		})
		if s.Hook(name).Set() && called {
			reach(name, s.Hook(name))
		}
	}
	return out
}

// probeReadback queries a key of each named object that was never used; the hook must show none.
func (s *session) probeReadback(ctx context.Context) error {
	for _, name := range s.Opts.Objects {
		o := s.Catalog.Object(name)
		if o == nil {
			continue
		}
		id, err := o.Identifier()
		if err != nil {
			continue // FLD-004 reports it
		}
		var key json.RawMessage
		if id.Type == rpc.TypeInteger { // not of the range, which may be short
			key = json.RawMessage(strconv.FormatInt(s.Keys.UnusedInteger(), 10))
		} else {
			key = values.Quote(s.Keys.NextText("HOOK-000"))
		}
		reply, err := hook.Paged(s.Readback)(ctx, hook.ReadbackRequest{Object: name, IdentifierField: id.APIName, Identifiers: []json.RawMessage{key}})
		if err != nil {
			return err
		}
		if len(reply.Records) > 0 {
			return &hook.Error{
				Kind: hook.KindShape, Hook: "readback",
				Message: fmt.Sprintf("shows the key %s of %q, which was never used", key, name),
				Fix:     "answer only keys that are stored, and leave the others out of records",
			}
		}
	}
	return nil
}

const uncountedNote = "the read-back hook gives no count: a key counts as often as it is listed, and a hook that lists each key once cannot show a second copy"
