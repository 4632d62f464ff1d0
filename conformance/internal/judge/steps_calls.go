package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// callSteps send calls that write nothing.
func callSteps() []definition {
	return []definition{
		step(`^the service calls every (reading )?method$`, func(sc *Scenario) any { return sc.callsEvery }),
		step(`^the service calls (?:a method that does not exist|methods that do not exist(, of several shapes))$`, func(sc *Scenario) any { return sc.callsUnknown }),
		step(`^the service calls "([a-z_]+)"(?: (\d+) times| at (\d+) % of the rate limit)?( in the declared parallelism)?$`,
			func(sc *Scenario) any { return sc.callsMethod }),
		step(`^the service calls (every method|"[a-z_]+") in each of these ways:$`, func(sc *Scenario) any { return sc.callsInWays }),
		step(`^the service sends each of the bodies:$`, func(sc *Scenario) any { return sc.sendsBodies }),
	}
}

// readingCalls are the five calls that read, for the object under judgement or
// the first one that is listed.
func (sc *Scenario) readingCalls() []line.Request {
	calls := []line.Request{{Method: rpc.MethodTestConnection}, {Method: rpc.MethodListObjects}}
	if o := sc.anyObject(); o != nil {
		calls = append(calls, objectCalls(o)...)
	}
	return append(calls, line.Request{Method: rpc.MethodGetSyncSpeed})
}

func (sc *Scenario) anyObject() *write.Object {
	switch {
	case sc.Object != nil:
		return sc.Object
	case len(sc.Catalog.Objects) > 0:
		return sc.Catalog.Objects[0]
	}
	return nil
}

func objectCalls(o *write.Object) []line.Request {
	params := line.ObjectParams(o.Object)
	return []line.Request{
		{Method: rpc.MethodListFields, Params: params, Object: o.APIName},
		{Method: rpc.MethodSupportedOperations, Params: params, Object: o.APIName},
	}
}

// everyCall is each of the six methods once; sync_batch has no records, so that
// nothing is written.
func (sc *Scenario) everyCall() []line.Request {
	calls := []line.Request{{Method: rpc.MethodTestConnection}, {Method: rpc.MethodListObjects}}
	if o := sc.anyObject(); o != nil {
		calls = append(calls, objectCalls(o)...)
		if body, ok := sc.emptyBatch(o); ok {
			calls = append(calls, line.Request{Method: rpc.MethodSyncBatch, Params: body, Object: o.APIName})
		}
	}
	return append(calls, line.Request{Method: rpc.MethodGetSyncSpeed})
}

// emptyBatch is a sync_batch without records, with an operation that the object
// accepts.
func (sc *Scenario) emptyBatch(o *write.Object) ([]byte, bool) {
	id, err := o.Identifier()
	ops := o.Writing()
	if err != nil || len(ops) == 0 {
		return nil, false
	}
	r := &write.Record{Object: o, ID: id, Key: []byte(`""`), Values: map[string]json.RawMessage{id.APIName: []byte(`""`)}}
	full := sc.BatchParams(ops[0], []*write.Record{r}, nil)
	i := strings.Index(string(full), `"records":[`)
	return append(full[:i:i], `"records":[]}`...), true
}

func (sc *Scenario) sendAll(calls []line.Request) error {
	if err := sc.Reserve(calls); err != nil {
		return err
	}
	for _, c := range calls {
		r, err := sc.Send(c)
		if err != nil {
			return err
		}
		if r.Kind == wire.KindTimeout {
			return nil // one lost deadline is enough to judge; waiting for all would use up the run
		}
	}
	return nil
}

func (sc *Scenario) callsEvery(reading string) error {
	if reading != "" {
		return sc.sendAll(sc.readingCalls())
	}
	return sc.sendAll(sc.everyCall())
}

// unknownMethod is a name that no endpoint has.
const unknownMethod = "zz_no_such_method"

// UnknownMethods are names of other shapes: reserved, near those of methods, long, with
// spaces, and none. Those in another case are RPC-019's.
var UnknownMethods = []string{
	unknownMethod, "rpc.zz_no_such_method", "list_object", "sync_batches", "test connection", "../list_objects", strings.Repeat("zz_no_such_method_", 100), "",
}

func (sc *Scenario) callsUnknown(several string) error {
	names := UnknownMethods
	if several == "" {
		names = names[:1]
	}
	for _, name := range names {
		if _, err := sc.Send(line.Request{Method: name, Odd: true}); err != nil {
			return err
		}
	}
	return nil
}

// methodCalls are the calls of one method: one for every object where the
// method asks for an object.
func (sc *Scenario) methodCalls(method string) []line.Request {
	if method != rpc.MethodListFields && method != rpc.MethodSupportedOperations {
		return []line.Request{{Method: method}}
	}
	var calls []line.Request
	for i, o := range sc.Catalog.Objects {
		if i == 50 {
			sc.Note("%s are listed: the first 50 were asked about", quantity.Count(len(sc.Catalog.Objects), "object"))
			break
		}
		calls = append(calls, slices.DeleteFunc(objectCalls(o), func(r line.Request) bool { return r.Method != method })...)
	}
	return calls
}

func (sc *Scenario) callsMethod(method, times, percent, declared string) error {
	if percent != "" {
		return sc.callsAtRate(method, percent)
	}
	if declared != "" {
		return sc.callsAsDeclared(method)
	}
	n, _ := strconv.Atoi(times) // absent: once
	for range max(1, n) {
		if err := sc.sendAll(sc.methodCalls(method)); err != nil {
			return err
		}
	}
	return nil
}

// noObjectListed is why a call about an object cannot be made: the list of
// objects was lost, or is empty, which other checks judge.
func noObjectListed() error {
	return engine.Inconclusive("", "no object is listed that could be asked about")
}

// callsInWays sends the named call, or all six, in each way of the table.
func (sc *Scenario) callsInWays(what string, table *engine.Table) error {
	calls := sc.everyCall()
	if what != "every method" {
		calls = sc.methodCalls(strings.Trim(what, `"`))
		if len(calls) == 0 {
			return noObjectListed()
		}
		calls = calls[:1]
	}
	for _, row := range engine.Rows(table) {
		name := row[0]
		way, ok := write.Ways[name]
		if !ok {
			return line.Harness("no way is called %q", name)
		}
		for _, c := range calls {
			if err := way(sc.Scenario.Scenario, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendsBodies sends each row of a table as a whole request body. {id} stands
// for a fresh id, {uuid} for one in UUID form, {300} for one of 300 characters.
func (sc *Scenario) sendsBodies(table *engine.Table) error {
	for _, row := range engine.Rows(table) {
		body := row[0]
		fresh := sc.NewID()
		uuid := fmt.Sprintf("%s-%s-4%s-a%s-%s", fresh[:8], fresh[8:12], fresh[13:16], fresh[17:20], fresh[20:])
		for name, id := range map[string]string{"{id}": fresh, "{uuid}": uuid, "{300}": strings.Repeat(fresh, 10)[:300]} {
			body = strings.ReplaceAll(body, name, id)
		}
		var envelope struct {
			ID     string `json:"id"`
			Method string `json:"method"`
		}
		_ = json.Unmarshal([]byte(body), &envelope) // odd bodies have neither
		if _, err := sc.Send(line.Request{Method: envelope.Method, ID: envelope.ID, Body: []byte(body), Odd: true}); err != nil {
			return err
		}
	}
	return nil
}

// sendAtOnce sends calls in parallel and keeps their replies in order.
func (sc *Scenario) sendAtOnce(calls []line.Request) error {
	if err := sc.Reserve(calls); err != nil {
		return err
	}
	replies := make([]*exchange.Reply, len(calls))
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { replies[i], errs[i] = sc.Session.Send(sc.Ctx, sc.Check().ID, c) })
	}
	wg.Wait()
	for i, r := range replies {
		if errs[i] != nil {
			return errs[i]
		}
		sc.Replies = append(sc.Replies, r)
	}
	return nil
}
