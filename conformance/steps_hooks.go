package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/hook"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// hookSteps call the author's hooks and judge what follows.
func hookSteps() []definition {
	return []definition{
		step(`^the hook "([a-z_]+)" (begins|is called)$`, func(w *world) any { return w.callsHook }),
		step(`^the fields show the (change|new field)$`, func(w *world) any { return w.fieldsShow }),
		step(`^every result of (?:test_connection|sync_batch) (has a boolean "success"|has the same "success"|reports the fault|has an array of record results)$`,
			func(w *world) any { return w.connectionResults }),
	}
}

// callsHook begins a hook; its end follows when the scenario is over, or at
// once where the step says that the hook is only called.
func (w *world) callsHook(name, how string) error {
	object := w.hookObject()
	w.watch.expect(true) // a hook may take the endpoint down for a while
	w.endings = append(w.endings, func(context.Context) error { w.watch.expect(false); return nil })
	reply, err := w.runHook(w.ctx, name, "begin", object)
	if err != nil {
		return err
	}
	if name == "alter_schema" {
		w.altered = reply
	}
	if how == "is called" {
		_, err := w.runHook(w.ctx, name, "end", object)
		return err
	}
	w.endings = append(w.endings, func(ctx context.Context) error {
		_, err := w.runHook(ctx, name, "end", object)
		return err
	})
	if name == "rotate_token" {
		return w.rotate(reply)
	}
	return nil
}

func (w *world) hookObject() string {
	switch {
	case w.object != nil:
		return w.object.APIName
	case len(w.opts.Objects) > 0:
		return w.opts.Objects[0]
	case len(w.catalog.objects) > 0:
		return w.catalog.objects[0].APIName
	}
	return ""
}

func (w *world) runHook(ctx context.Context, name, action, object string) (map[string]json.RawMessage, error) {
	in := map[string]any{"action": action}
	if object != "" {
		in["object"] = object
	}
	reply, err := hook.Call(ctx, w.hook(name), w.hooks, w.opts.Hooks.Timeout, name, in)
	if err == nil {
		return reply, nil
	}
	if w.ctx.Err() != nil {
		return nil, overtime(w.ctx)
	}
	return nil, harness("%w", errors.New(w.redactor.String(err.Error())))
}

// endHooks undoes what the scenario began, in reverse order, even when the run
// was interrupted: a destination must not stay broken.
func (w *world) endHooks() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), w.opts.Hooks.Timeout+time.Second)
	defer cancel()
	var first error
	for _, end := range slices.Backward(w.endings) {
		if err := end(ctx); err != nil && first == nil {
			first = err
		}
	}
	w.endings = nil
	return first
}

// rotate takes over the new token; it must be accepted (spec 5.2.2).
func (w *world) rotate(reply map[string]json.RawMessage) error {
	var fresh string
	if json.Unmarshal(reply["token"], &fresh) != nil || fresh == "" {
		return harness("the hook rotate_token answered no token")
	}
	w.redactor.Add(fresh, "$DESTKIT_NEW_TOKEN")
	old := w.token.get()
	w.token.set(fresh)
	w.endings = append(w.endings, func(context.Context) error { w.token.set(old); return nil })
	stranger, err := w.strangerError()
	if err != nil {
		return err
	}
	r, err := w.session.send(w.ctx, w.check.ID, request{method: rpc.MethodListObjects})
	if err != nil {
		return err
	}
	if refusesStranger(r, stranger) {
		w.broken("an answer for the new token", r.short(), r)
	}
	return w.held()
}

// reportsFault: success:false with a message, or an error (spec 7.2.3).
func reportsFault(r *reply) (string, string) {
	const expected = "success false with an error_message, or an error"
	if r.isError() {
		return "", ""
	}
	res := r.result()
	ok, is := res.Get("success").Bool()
	message := res.Get("error_message")
	switch {
	case res == nil || !is || ok:
		return expected, r.short()
	case !message.Is(wire.String) || strings.TrimSpace(message.Text) == "":
		return expected, "no error_message: " + r.short()
	}
	return "", ""
}

const hasBoolean = `has a boolean "success"`

func (w *world) connectionResults(claim string) error {
	switch claim {
	case "has an array of record results":
		return w.resultsAreArrays()
	case "reports the fault":
		if !slices.ContainsFunc(w.replies, func(r *reply) bool { return r.OK() }) {
			return inconclusive("", "test_connection was not answered at all: %s", w.replies[0].trouble())
		}
		return w.everyReply(reportsFault)
	}
	var first *reply
	judged := 0
	for _, r := range w.of(rpc.MethodTestConnection) {
		res := r.result()
		if res == nil {
			continue
		}
		judged++
		ok, is := res.Get("success").Bool()
		switch {
		case claim == hasBoolean:
			if !is {
				w.broken(`"success" as true or false`, r.short(), r)
			}
		case first == nil:
			first = r
		default:
			if before, _ := first.result().Get("success").Bool(); before != ok {
				w.broken("the same answer each time", r.short(), first, r)
			}
		}
	}
	if err := w.held(); err != nil {
		return err
	}
	if judged == 0 {
		return inconclusive("", "test_connection gave no result")
	}
	return nil
}

func (w *world) fieldsShow(what string) error {
	if what == "new field" {
		return w.newFieldListed()
	}
	return w.fieldsChanged()
}

// newFieldListed looks for the field that a stored record has created.
func (w *world) newFieldListed() error {
	if len(w.expectations(exists)) == 0 {
		return w.noneAccepted()
	}
	name := w.newFieldName()
	of := slices.DeleteFunc(w.of(rpc.MethodListFields), func(r *reply) bool { return r.object != w.object.APIName })
	if len(of) == 0 {
		return inconclusive("", "list_fields was not answered")
	}
	last := of[len(of)-1]
	if last.result() == nil {
		return inconclusive("", "list_fields was not answered: %s", last.short())
	}
	if !slices.Contains(texts(last.items("fields"), "field_api_name"), name) {
		w.broken("the field "+name+", which was created on write, in list_fields", "list_fields names "+list(texts(last.items("fields"), "field_api_name")), last)
	}
	return w.held()
}

// fieldsChanged compares list_fields before and after the hook alter_schema.
func (w *world) fieldsChanged() error {
	var hooked struct{ object, field string }
	_ = json.Unmarshal(w.altered["object"], &hooked.object)
	_ = json.Unmarshal(w.altered["field"], &hooked.field)
	if hooked.object == "" {
		hooked.object = w.hookObject()
	}
	of := slices.DeleteFunc(w.of(rpc.MethodListFields), func(r *reply) bool { return r.object != hooked.object })
	if len(of) < 2 {
		return inconclusive("hook alter_schema", "the hook changed the object %q, which list_objects does not name", hooked.object)
	}
	before, after := of[0], of[len(of)-1]
	names := texts(after.items("fields"), "field_api_name")
	was, now := before.result().Get("fields"), after.result().Get("fields")
	same := was != nil && now != nil && string(was.Raw) == string(now.Raw)
	if same || hooked.field != "" && !slices.Contains(names, hooked.field) && slices.Equal(names, texts(before.items("fields"), "field_api_name")) {
		w.broken("the changed schema on the next list_fields", "the fields are as before: "+list(names), before, after)
	}
	return w.held()
}
