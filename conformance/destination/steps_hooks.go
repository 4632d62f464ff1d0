package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// hookSteps call the author's hooks and judge what follows.
func hookSteps() []definition {
	return []definition{
		step(`^the hook "([a-z_]+)" (begins|is called)$`, func(sc *scenario) any { return sc.callsHook }),
		step(`^the fields show the (change|new field)$`, func(sc *scenario) any { return sc.fieldsShow }),
		step(`^every result of test_connection (has the same "success"|reports the fault)$`,
			func(sc *scenario) any { return sc.connectionResults }),
	}
}

// callsHook begins a hook; its end follows when the scenario is over, or at
// once where the step says that the hook is only called.
func (sc *scenario) callsHook(name, how string) error {
	object := sc.hookObject()
	sc.watch.expect(true) // a hook may take the endpoint down for a while
	sc.endings = append(sc.endings, func(context.Context) error { sc.watch.expect(false); return nil })
	reply, err := sc.runHook(sc.ctx, name, "begin", object)
	if err != nil {
		return err
	}
	switch name {
	case "alter_schema":
		sc.altered = reply
	case "restart":
		sc.ledger.Restarted()
	}
	if how == "is called" {
		_, err := sc.runHook(sc.ctx, name, "end", object)
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

func (sc *scenario) hookObject() string {
	switch {
	case sc.object != nil:
		return sc.object.APIName
	case len(sc.opts.Objects) > 0:
		return sc.opts.Objects[0]
	case len(sc.catalog.objects) > 0:
		return sc.catalog.objects[0].APIName
	}
	return ""
}

func (sc *scenario) runHook(ctx context.Context, name, action, object string) (map[string]json.RawMessage, error) {
	in := map[string]any{"action": action}
	if object != "" {
		in["object"] = object
	}
	reply, err := hook.Call(ctx, sc.hook(name), sc.hooks, sc.opts.Hooks.Timeout, name, in)
	sc.forgetSchema()
	if err == nil {
		return reply, nil
	}
	if sc.ctx.Err() != nil {
		return nil, overtime(sc.ctx)
	}
	return nil, harness("%w", errors.New(sc.redactor.String(err.Error())))
}

// endHooks undoes what the scenario began, in reverse order, even when the run
// was interrupted: a destination must not stay broken.
func (sc *scenario) endHooks() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sc.ctx), sc.opts.Hooks.Timeout+time.Second)
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
func (sc *scenario) rotate(reply map[string]json.RawMessage) error {
	var fresh string
	if json.Unmarshal(reply["token"], &fresh) != nil || fresh == "" {
		return harness("the hook rotate_token answered no token")
	}
	sc.redactor.Add(fresh, "$DESTKIT_NEW_TOKEN")
	old := sc.token.get()
	sc.token.set(fresh)
	sc.endings = append(sc.endings, func(context.Context) error { sc.token.set(old); return nil })
	stranger, err := sc.strangerError()
	if err != nil {
		return err
	}
	r, err := sc.session.send(sc.ctx, sc.Check().ID, request{method: rpc.MethodListObjects})
	if err != nil {
		return err
	}
	if refusesStranger(r, stranger) {
		sc.broken("an answer for the new token", r.Short(), r)
	}
	return sc.Held()
}

// reportsFault: success:false with a message, or an error (spec 7.2.3).
func reportsFault(r *reply) (string, string) {
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

func (sc *scenario) connectionResults(claim string) error {
	if claim == "reports the fault" {
		if !slices.ContainsFunc(sc.replies, func(r *reply) bool { return r.OK() }) {
			return inconclusive("", "test_connection was not answered at all: %s", sc.replies[0].Failure())
		}
		return sc.takes(rules.Every(sc.replies, reportsFault))
	}
	var first *reply
	for _, r := range sc.of(rpc.MethodTestConnection) {
		if r.Result() == nil {
			continue
		}
		if first == nil {
			first = r
		}
		before, _ := first.Result().Get("success").Bool()
		if now, _ := r.Result().Get("success").Bool(); before != now {
			sc.broken("the same answer each time", r.Short(), first, r)
		}
	}
	if err := sc.Held(); err != nil || first != nil {
		return err
	}
	return inconclusive("", "test_connection gave no result")
}

func (sc *scenario) fieldsShow(what string) error {
	if what == "new field" {
		return sc.newFieldListed()
	}
	return sc.fieldsChanged()
}

// newFieldListed looks for the field that a stored record has created.
func (sc *scenario) newFieldListed() error {
	if len(sc.expectations(exists)) == 0 {
		return sc.noneAccepted()
	}
	name := sc.newFieldName()
	of := slices.DeleteFunc(sc.of(rpc.MethodListFields), func(r *reply) bool { return r.Object != sc.object.APIName })
	if len(of) == 0 {
		return inconclusive("", "list_fields was not answered")
	}
	last := of[len(of)-1]
	if last.Result() == nil {
		return inconclusive("", "list_fields was not answered: %s", last.Short())
	}
	if !slices.Contains(rules.Texts(last.Items("fields"), "field_api_name"), name) {
		sc.broken("the field "+name+", which was created on write, in list_fields", "list_fields names "+quantity.List(rules.Texts(last.Items("fields"), "field_api_name")), last)
	}
	return sc.Held()
}

// fieldsChanged compares list_fields before and after the hook alter_schema.
func (sc *scenario) fieldsChanged() error {
	var hooked struct{ object, field string }
	_ = json.Unmarshal(sc.altered["object"], &hooked.object)
	_ = json.Unmarshal(sc.altered["field"], &hooked.field)
	hooked.object = cmp.Or(hooked.object, sc.hookObject())
	of := slices.DeleteFunc(sc.of(rpc.MethodListFields), func(r *reply) bool { return r.Object != hooked.object })
	if len(of) < 2 {
		return inconclusive("hook alter_schema", "the hook changed the object %q, which list_objects does not name", hooked.object)
	}
	before, after := of[0], of[len(of)-1]
	names := rules.Texts(after.Items("fields"), "field_api_name")
	was, now := before.Result().Get("fields"), after.Result().Get("fields")
	same := was != nil && now != nil && string(was.Raw) == string(now.Raw)
	if same || hooked.field != "" && !slices.Contains(names, hooked.field) && slices.Equal(names, rules.Texts(before.Items("fields"), "field_api_name")) {
		sc.broken("the changed schema on the next list_fields", "the fields are as before: "+quantity.List(names), before, after)
	}
	return sc.Held()
}
