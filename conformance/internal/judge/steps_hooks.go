package judge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// These steps call the author's hooks and judge what follows.

var hookSentences = sentences{
	`^the fields show the change$`:                             (*Scenario).fieldsChanged,
	`^the fields show the new field$`:                          (*Scenario).newFieldListed,
	`^every result of test_connection has the same "success"$`: (*Scenario).sameSuccess,
	`^every result of test_connection reports the fault$`:      (*Scenario).faultReported,
}

func hookSteps() []engine.Step {
	return []engine.Step{engine.NewStep(`^the hook "([a-z_]+)" (begins|is called)$`, func(sc *Scenario) any { return sc.callsHook })}
}

// callsHook begins a hook; it ends at once where it is only called, else with the scenario.
func (sc *Scenario) callsHook(name, how string) error {
	object := sc.hookObject()
	sc.Watch.Expect(true) // a hook may take the endpoint down for a while
	sc.endings = append(sc.endings, func(context.Context) error { sc.Watch.Expect(false); return nil })
	reply, err := sc.runHook(sc.Ctx, name, "begin", object)
	if err != nil {
		return err
	}
	switch name {
	case "alter_schema":
		sc.altered = reply
	case "restart":
		sc.Ledger.Restarted()
	}
	end := func(ctx context.Context) error {
		_, err := sc.runHook(ctx, name, "end", object)
		return err
	}
	if how == "is called" {
		return end(sc.Ctx)
	}
	sc.endings = append(sc.endings, end)
	if name == "rotate_token" {
		return sc.rotate(reply)
	}
	return nil
}

// hookObject is the object that a hook is called for, "" without any.
func (sc *Scenario) hookObject() string {
	if sc.Object != nil {
		return sc.Object.APIName
	}
	return append(slices.Concat(sc.Opts.Objects, sc.Catalog.Names()), "")[0]
}

func (sc *Scenario) runHook(ctx context.Context, name, action, object string) (map[string]json.RawMessage, error) {
	in := map[string]any{"action": action}
	if object != "" {
		in["object"] = object
	}
	reply, err := hook.Call(ctx, sc.Hook(name), sc.Hooks, sc.Opts.Hooks.Timeout, name, in)
	sc.j.Overall.Mu.Lock()
	if r := sc.j.Overall.Rules; r != nil {
		r.Traffic.ForgetFields() // the hook may have changed them
	}
	sc.j.Overall.Mu.Unlock()
	switch {
	case err == nil:
		return reply, nil
	case sc.Ctx.Err() != nil:
		return nil, line.Overtime(sc.Ctx)
	}
	return nil, line.Harness("%w", errors.New(sc.Redactor.String(err.Error())))
}

// endHooks undoes what the scenario began, even when the run was interrupted.
func (sc *Scenario) endHooks() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sc.Ctx), sc.Opts.Hooks.Timeout+time.Second)
	defer cancel()
	var first error
	for _, end := range slices.Backward(sc.endings) {
		first = cmp.Or(first, end(ctx))
	}
	sc.endings = nil
	return first
}

// rotate takes over the new token; it must be accepted (spec 5.2.2).
func (sc *Scenario) rotate(reply map[string]json.RawMessage) error {
	var fresh string
	if json.Unmarshal(reply["token"], &fresh) != nil || fresh == "" {
		return line.Harness("the hook rotate_token answered no token")
	}
	sc.Redactor.Add(fresh, "$DESTKIT_NEW_TOKEN")
	old := sc.Token.Get()
	sc.Token.Set(fresh)
	sc.endings = append(sc.endings, func(context.Context) error { sc.Token.Set(old); return nil })
	stranger, err := sc.strangerError()
	if err != nil {
		return err
	}
	r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, line.Request{Method: rpc.MethodListObjects})
	if err != nil {
		return err
	}
	if refusesStranger(r, stranger) {
		sc.BrokenFor("", "an answer for the new token", r.Short(), r)
	}
	return sc.Held()
}

// faultReported: success:false with a message, or an error (spec 7.2.3).
func (sc *Scenario) faultReported() error {
	if !slices.ContainsFunc(sc.Replies, func(r *exchange.Reply) bool { return r.OK() }) {
		return engine.Inconclusive("", "test_connection was not answered at all: %s", sc.Replies[0].Failure())
	}
	return sc.takes(rules.Every(sc.Replies, func(r *exchange.Reply) (string, string) {
		const expected = "success false with an error_message, or an error"
		res := r.Result()
		ok, is := res.Get("success").Bool()
		message := res.Get("error_message")
		switch {
		case r.IsError():
			return "", ""
		case !is || ok:
			return expected, r.Short()
		case !message.Is(wire.String) || strings.TrimSpace(message.Text) == "":
			return expected, "no error_message: " + r.Short()
		}
		return "", ""
	}))
}

func (sc *Scenario) sameSuccess() error {
	given := lists.Where(sc.of(rpc.MethodTestConnection), func(r *exchange.Reply) bool { return r.Result() != nil })
	if len(given) == 0 {
		return engine.Inconclusive("", "test_connection gave no result")
	}
	for _, r := range given {
		before, _ := given[0].Result().Get("success").Bool()
		if now, _ := r.Result().Get("success").Bool(); before != now {
			sc.BrokenFor("", "the same answer each time", r.Short(), given[0], r)
		}
	}
	return sc.Held()
}

// listsOfFields are the replies to list_fields of an object.
func (sc *Scenario) listsOfFields(object string) []*exchange.Reply {
	return lists.Where(sc.of(rpc.MethodListFields), func(r *exchange.Reply) bool { return r.Object == object })
}

func fieldNames(r *exchange.Reply) []string { return rules.Texts(r.Items("fields"), "field_api_name") }

// newFieldListed looks for the field that a stored record has created.
func (sc *Scenario) newFieldListed() error {
	if len(sc.expectations(exists)) == 0 {
		return sc.noneAccepted()
	}
	of := sc.listsOfFields(sc.Object.APIName)
	if len(of) == 0 {
		return engine.Inconclusive("", "list_fields was not answered")
	}
	last := of[len(of)-1]
	if last.Result() == nil {
		return engine.Inconclusive("", "list_fields was not answered: %s", last.Short())
	}
	if name := sc.NewFieldName(); !slices.Contains(fieldNames(last), name) {
		sc.BrokenFor("", "the field "+name+", which was created on write, in list_fields", "list_fields names "+quantity.List(fieldNames(last)), last)
	}
	return sc.Held()
}

// fieldsChanged compares list_fields before and after the hook alter_schema.
func (sc *Scenario) fieldsChanged() error {
	var object, field string
	_ = json.Unmarshal(sc.altered["object"], &object)
	_ = json.Unmarshal(sc.altered["field"], &field)
	object = cmp.Or(object, sc.hookObject())
	of := sc.listsOfFields(object)
	if len(of) < 2 {
		return engine.Inconclusive("hook alter_schema", "the hook changed the object %q, which list_objects does not name", object)
	}
	before, after := of[0], of[len(of)-1]
	names := fieldNames(after)
	was, now := before.Result().Get("fields"), after.Result().Get("fields")
	same := was != nil && now != nil && string(was.Raw) == string(now.Raw)
	if same || field != "" && !slices.Contains(names, field) && slices.Equal(names, fieldNames(before)) {
		sc.BrokenFor("", "the changed schema on the next list_fields", "the fields are as before: "+quantity.List(names), before, after)
	}
	return sc.Held()
}
