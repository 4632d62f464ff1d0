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

// probeHooks looks at the hooks that the run will call before anything is
// written: a hook that cannot be called, or a read-back that shows what was
// never there, would turn every check that needs it into the same error. The
// first broken one is the problem of the run.
func (s *session) probeHooks(ctx context.Context, r *conformance.Report, checks []*conformance.Check) {
	for _, probe := range s.hookProbes(checks) {
		err := probe(ctx)
		if ctx.Err() != nil {
			return // an interrupted probe says nothing about the hook
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
		if s.Hook(name).Set() && s.calls(name, checks) {
			reach(name, s.Hook(name))
		}
	}
	return out
}

// calls reports whether the run may call a hook: cleanup when it writes, the
// others when a selected check asks for them.
func (s *session) calls(name string, checks []*conformance.Check) bool {
	if name == "cleanup" {
		return s.Opts.Write
	}
	return slices.ContainsFunc(checks, func(c *conformance.Check) bool { return c.Hook == name && (s.Opts.Write || !c.Write) })
}

// probeReadback asks the read-back for a key of each named object that was never
// used. It must say that there is none.
func (s *session) probeReadback(ctx context.Context) error {
	for _, name := range s.Opts.Objects {
		o := s.Catalog.Object(name)
		if o == nil {
			continue
		}
		id, err := o.Identifier()
		if err != nil {
			continue // FLD-004 says so
		}
		key := s.unusedKey(id)
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

// unusedKey is a key that nothing was written under yet. An integer is not taken
// from the range, which may be short.
func (s *session) unusedKey(id rpc.Field) json.RawMessage {
	if id.Type != rpc.TypeInteger {
		return values.Quote(s.Keys.NextText("HOOK-000"))
	}
	return json.RawMessage(strconv.FormatInt(s.Keys.UnusedInteger(), 10))
}

const uncountedNote = "the read-back hook gives no count: a key counts as often as it is listed, and a hook that lists each key once cannot show a second copy"
