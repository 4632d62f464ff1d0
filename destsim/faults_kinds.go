package destsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// FaultKind describes one kind of fault.
type FaultKind struct {
	Name string `json:"name"`
	Does string `json:"does"`
	// Takes lists the parameters besides kind and when.
	Takes []string `json:"takes"`
	// Methods lists the only methods that it touches; empty: all.
	Methods []string `json:"methods"`
	// Records means that it acts on single records of a batch.
	Records bool `json:"records"`

	at []string // the values that At may have
}

var (
	batchMethod     = []string{rpc.MethodSyncBatch}
	aroundCommit    = []string{"before", "after"}
	throughoutBatch = []string{"before", "after", "between"}
)

// faultKinds is the catalogue.
var faultKinds = []FaultKind{
	{Name: "delay", Does: "waits, by a distribution, before the call is executed or before it is answered", Takes: []string{"at", "delay"}, at: aroundCommit},
	{Name: "hang", Does: "gives no answer until the client goes away", Takes: []string{"at"}, at: aroundCommit},
	{Name: "rpc_error", Does: "answers a JSON-RPC error object", Takes: []string{"at", "code", "message", "data"}, at: aroundCommit},
	{Name: "http_status", Does: "answers another HTTP status", Takes: []string{"at", "status", "headers", "body"}, at: aroundCommit},
	{Name: "throttle", Does: "answers 429 with Retry-After as seconds, as a date, absent or as garbage", Takes: []string{"at", "retry_after", "seconds"}, at: aroundCommit},
	{Name: "reset", Does: "resets the connection before or after the batch is stored, or between two of its records", Takes: []string{"at", "records"}, at: throughoutBatch},
	{Name: "close", Does: "closes the connection without an answer, at the same places", Takes: []string{"at", "records"}, at: throughoutBatch},
	{Name: "truncate", Does: "announces the whole body, sends a part and closes", Takes: []string{"bytes"}},
	{Name: "stall", Does: "stops in the middle of the body for a while", Takes: []string{"bytes", "pause_ms"}},
	{Name: "slow_body", Does: "sends the body in small pieces with pauses", Takes: []string{"bytes", "pause_ms"}},
	{Name: "wrong_id", Does: "answers with another id", Takes: []string{"id"}},
	{Name: "wrong_identifiers", Does: "answers for identifiers that were not sent", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "missing_results", Does: "leaves results out", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "repeated_results", Does: "gives results twice", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "contradictory_results", Does: "gives a second result that says the opposite", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "extra_results", Does: "adds results for identifiers that were not sent", Takes: []string{"records"}, Methods: batchMethod},
	{Name: "record_failure", Does: "fails records, nothing of them is stored", Takes: []string{"records", "message"}, Methods: batchMethod, Records: true},
	{Name: "acknowledge_unstored", Does: "reports success for records that it does not store", Takes: []string{"records"}, Methods: batchMethod, Records: true},
	{Name: "refuse_stored", Does: "stores records and reports failure", Takes: []string{"records", "message"}, Methods: batchMethod, Records: true},
	{Name: "schema", Does: "shows a changed schema, and acts by it", Takes: []string{"drift"}, Methods: []string{
		rpc.MethodListObjects, rpc.MethodListFields, rpc.MethodSupportedOperations, rpc.MethodSyncBatch,
	}},
	{Name: "speed", Does: "answers other speeds, one after the other", Takes: []string{"speeds"}, Methods: []string{rpc.MethodGetSyncSpeed}},
	{Name: "rate_limit", Does: "sends other values of X-RateLimit-Limit, one after the other", Takes: []string{"limits"}},
}

// FaultKinds lists every kind of fault that can be armed.
func FaultKinds() []FaultKind {
	list := slices.Clone(faultKinds)
	for i := range list {
		list[i].Methods = append([]string{}, list[i].Methods...) // never null in JSON
	}
	return list
}

// methods are those that a fault can touch; empty: all.
func (f *Fault) methods(kind FaultKind) []string {
	switch {
	case f.When.Method != "":
		return []string{f.When.Method}
	case f.When.batchOnly() || f.At == "between":
		return batchMethod
	}
	return kind.Methods
}

// check finds the kind and everything that does not fit it.
func (f *Fault) check() (FaultKind, error) {
	names := make([]string, len(faultKinds))
	for i, k := range faultKinds {
		names[i] = k.Name
		if k.Name == f.Kind {
			return k, f.checkKind(k)
		}
	}
	return FaultKind{}, fmt.Errorf("kind: %w", unknownWord("kind", f.Kind, names))
}

func (f *Fault) checkKind(kind FaultKind) error {
	for place, raw := range map[string]json.RawMessage{
		"data": f.Data, "id": f.ID, "when.identifier": f.When.Identifier, "when.value": f.When.Value,
	} {
		if raw != nil && !json.Valid(raw) {
			return fmt.Errorf("%s: is not a JSON value", place)
		}
	}
	if err := onlyMembers(f, kind.Name, append([]string{"kind", "when"}, kind.Takes...)); err != nil {
		return err
	}
	if f.At != "" && !slices.Contains(kind.at, f.At) {
		return fmt.Errorf("at: unknown value %q%s", clip(f.At), didYouMean(f.At, kind.at))
	}
	if f.At == "between" && f.When.Method != "" && f.When.Method != rpc.MethodSyncBatch {
		return fmt.Errorf("at: %s has no records to be between", f.When.Method)
	}
	if f.Records > 0 && len(kind.at) > 0 && f.At != "between" {
		return errors.New("records: counts with at between only")
	}
	if min(f.Bytes, f.Records, f.Seconds) < 0 || !(f.PauseMS >= 0 && f.PauseMS <= 3600000) {
		return errors.New("bytes, records, seconds and pause_ms must not be negative, and a pause not longer than an hour")
	}
	if err := f.checkParameters(); err != nil {
		return err
	}
	return f.When.check(kind)
}

// checkParameters requires the mandatory parameters of a kind.
func (f *Fault) checkParameters() error {
	switch f.Kind {
	case "delay":
		if f.Delay == nil {
			return errors.New("delay: is missing")
		}
		return f.Delay.check()
	case "http_status":
		if f.Status < 200 || f.Status > 599 {
			return fmt.Errorf("status: must be between 200 and 599, not %d", f.Status)
		}
		for name, value := range f.Headers {
			if name == "" || textproto.TrimString(name) != name || strings.ContainsAny(name, " :\t\r\n") || strings.ContainsAny(value, "\r\n") {
				return fmt.Errorf("headers[%q]: not a valid header name and value", clip(name))
			}
		}
	case "throttle":
		known := []string{"seconds", "date", "absent", "garbage"}
		if f.RetryAfter != "" && !slices.Contains(known, f.RetryAfter) {
			return fmt.Errorf("retry_after: unknown value %q%s", clip(f.RetryAfter), didYouMean(f.RetryAfter, known))
		}
	case "schema":
		if f.Drift == nil {
			return errors.New("drift: is missing")
		}
		return f.Drift.check()
	case "speed":
		if len(f.Speeds) == 0 {
			return errors.New("speeds: must have at least one entry")
		}
	case "rate_limit":
		if len(f.Limits) == 0 {
			return errors.New("limits: must have at least one entry")
		}
		for i, value := range f.Limits {
			if strings.ContainsAny(value, "\r\n") {
				return fmt.Errorf("limits[%d]: not a valid header value", i)
			}
		}
	}
	return nil
}

// onlyMembers complains about a member that is set and not among the known: a
// parameter that is ignored would let a test believe in what never happens.
func onlyMembers(v any, of string, known []string) error {
	var members map[string]json.RawMessage
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("read %s: %w", of, err)
	}
	if err := json.Unmarshal(raw, &members); err != nil {
		return fmt.Errorf("read %s: %w", of, err)
	}
	var strange []string
	for name := range members {
		if !slices.Contains(known, name) {
			strange = append(strange, name)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	slices.Sort(strange)
	return fmt.Errorf("%s: %s does not take it", strings.Join(strange, ", "), of)
}
