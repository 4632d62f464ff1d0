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
	"github.com/destkit/destkit/internal/quantity"
)

// hookSteps call the author's hooks and judge what follows.
func hookSteps() []definition {
	return []definition{
		step(`^the hook "([a-z_]+)" (begins|is called)$`, func(sc *Scenario) any { return sc.callsHook }),
		step(`^the fields show the (change|new field)$`, func(sc *Scenario) any { return sc.fieldsShow }),
		step(`^every result of test_connection (has the same "success"|reports the fault)$`,
			func(sc *Scenario) any { return sc.connectionResults }),
	}
}

// callsHook begins a hook; its end follows when the scenario is over, or at
// once where the step says that the hook is only called.
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
	if how == "is called" {
		_, err := sc.runHook(sc.Ctx, name, "end", object)
		return err
	}
	sc.endings = append(sc.endings, func(ctx context.Context) error {
		_, err := sc.runHook(ctx, name, "end", object)
		return err
	})
	if name == "rotate_token" {
		return sc.rotate(reply)
	}
	return nil
}

func (sc *Scenario) hookObject() string {
	switch {
	case sc.Object != nil:
		return sc.Object.APIName
	case len(sc.Opts.Objects) > 0:
		return sc.Opts.Objects[0]
	case len(sc.Catalog.Objects) > 0:
		return sc.Catalog.Objects[0].APIName
	}
	return ""
}

func (sc *Scenario) runHook(ctx context.Context, name, action, object string) (map[string]json.RawMessage, error) {
	in := map[string]any{"action": action}
	if object != "" {
		in["object"] = object
	}
	reply, err := hook.Call(ctx, sc.Hook(name), sc.Hooks, sc.Opts.Hooks.Timeout, name, in)
	sc.j.forgetSchema()
	if err == nil {
		return reply, nil
	}
	if sc.Ctx.Err() != nil {
		return nil, line.Overtime(sc.Ctx)
	}
	return nil, line.Harness("%w", errors.New(sc.Redactor.String(err.Error())))
}

// endHooks undoes what the scenario began, in reverse order, even when the run
// was interrupted: a destination must not stay broken.
func (sc *Scenario) endHooks() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sc.Ctx), sc.Opts.Hooks.Timeout+time.Second)
	defer cancel()
	var first error
	for _, end := range slices.Backward(sc.endings) {
		if err := end(ctx); err != nil && first == nil {
			first = err
		}
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
		sc.Broken("an answer for the new token", r.Short(), r)
	}
	return sc.Held()
}

// reportsFault: success:false with a message, or an error (spec 7.2.3).
func reportsFault(r *exchange.Reply) (string, string) {
	const expected = "success false with an error_message, or an error"
	if r.IsError() {
		return "", ""
	}
	res := r.Result()
	ok, is := res.Get("success").Bool()
	message := res.Get("error_message")
	switch {
	case res == nil || !is || ok:
		return expected, r.Short()
	case !message.Is(wire.String) || strings.TrimSpace(message.Text) == "":
		return expected, "no error_message: " + r.Short()
	}
	return "", ""
}

func (sc *Scenario) connectionResults(claim string) error {
	if claim == "reports the fault" {
		if !slices.ContainsFunc(sc.Replies, func(r *exchange.Reply) bool { return r.OK() }) {
			return engine.Inconclusive("", "test_connection was not answered at all: %s", sc.Replies[0].Failure())
		}
		return sc.takes(rules.Every(sc.Replies, reportsFault))
	}
	var first *exchange.Reply
	for _, r := range sc.of(rpc.MethodTestConnection) {
		if r.Result() == nil {
			continue
		}
		if first == nil {
			first = r
		}
		before, _ := first.Result().Get("success").Bool()
		if now, _ := r.Result().Get("success").Bool(); before != now {
			sc.Broken("the same answer each time", r.Short(), first, r)
		}
	}
	if err := sc.Held(); err != nil || first != nil {
		return err
	}
	return engine.Inconclusive("", "test_connection gave no result")
}

func (sc *Scenario) fieldsShow(what string) error {
	if what == "new field" {
		return sc.newFieldListed()
	}
	return sc.fieldsChanged()
}

// newFieldListed looks for the field that a stored record has created.
func (sc *Scenario) newFieldListed() error {
	if len(sc.expectations(exists)) == 0 {
		return sc.noneAccepted()
	}
	name := sc.NewFieldName()
	of := slices.DeleteFunc(sc.of(rpc.MethodListFields), func(r *exchange.Reply) bool { return r.Object != sc.Object.APIName })
	if len(of) == 0 {
		return engine.Inconclusive("", "list_fields was not answered")
	}
	last := of[len(of)-1]
	if last.Result() == nil {
		return engine.Inconclusive("", "list_fields was not answered: %s", last.Short())
	}
	if !slices.Contains(rules.Texts(last.Items("fields"), "field_api_name"), name) {
		sc.Broken("the field "+name+", which was created on write, in list_fields", "list_fields names "+quantity.List(rules.Texts(last.Items("fields"), "field_api_name")), last)
	}
	return sc.Held()
}

// fieldsChanged compares list_fields before and after the hook alter_schema.
func (sc *Scenario) fieldsChanged() error {
	var hooked struct{ object, field string }
	_ = json.Unmarshal(sc.altered["object"], &hooked.object)
	_ = json.Unmarshal(sc.altered["field"], &hooked.field)
	hooked.object = cmp.Or(hooked.object, sc.hookObject())
	of := slices.DeleteFunc(sc.of(rpc.MethodListFields), func(r *exchange.Reply) bool { return r.Object != hooked.object })
	if len(of) < 2 {
		return engine.Inconclusive("hook alter_schema", "the hook changed the object %q, which list_objects does not name", hooked.object)
	}
	before, after := of[0], of[len(of)-1]
	names := rules.Texts(after.Items("fields"), "field_api_name")
	was, now := before.Result().Get("fields"), after.Result().Get("fields")
	same := was != nil && now != nil && string(was.Raw) == string(now.Raw)
	if same || hooked.field != "" && !slices.Contains(names, hooked.field) && slices.Equal(names, rules.Texts(before.Items("fields"), "field_api_name")) {
		sc.Broken("the changed schema on the next list_fields", "the fields are as before: "+quantity.List(names), before, after)
	}
	return sc.Held()
}
