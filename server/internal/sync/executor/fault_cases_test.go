package executor

import (
	"slices"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

const syncBatch = rpc.MethodSyncBatch

// faultCase is one fault of the simulator.
type faultCase struct {
	name  string
	fault destsim.Fault
	// repaired: the run delivers everything nevertheless. Otherwise it reports
	// that it did not.
	repaired bool
	code     string // of the run, where it must fail; "" any, or none
	named    int64  // so many records are named as failed; 0 any number
	lies     bool   // the destination reports false results: only an audit can detect them
	mild     bool   // an operation may not mind it at all
	late     bool   // outlasts the deadline of a batch
	deletes  bool   // acts on the deletes of a mirror only
	many     bool   // of a kind with commit phases, which it can pass: also with ten times the records
}

// calls makes a fault fire on the first n batches; 0: on all.
func calls(f destsim.Fault, n int64) destsim.Fault {
	f.When.Method, f.When.Times = syncBatch, n
	return f
}

// one makes it fire on batches, or on the record, with this identifier. In a
// sheet identifiers are text.
func one(f destsim.Fault, sheet bool) destsim.Fault {
	f.When = destsim.Trigger{Method: syncBatch, Identifier: api.Raw(777)}
	if sheet {
		f.When.Identifier = api.Raw("777")
	}
	return f
}

func planned(f destsim.Fault, n int64) destsim.Fault {
	f.When.Method, f.When.Times = rpc.MethodGetSyncSpeed, n
	return f
}

// faultCases lists failures, for a run of at least a thousand records in twenty
// batches.
func faultCases(sheet bool) []faultCase {
	cases := phasedCases(sheet)
	cases = append(cases, answerCases(sheet)...)
	cases = append(cases, schemaCases()...)
	return append(cases,
		faultCase{name: "speed: other numbers in each run", fault: destsim.Fault{Kind: "speed", Speeds: []rpc.Speed{{MaximumBatchSize: 70, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 500}}}, repaired: true},
		faultCase{name: "speed: zero", fault: destsim.Fault{Kind: "speed", Speeds: []rpc.Speed{{}}}, code: CodeSpeed},
		faultCase{name: "speed: an error object, always", fault: planned(destsim.Fault{Kind: "rpc_error"}, 0), code: CodeRPC},
		faultCase{name: "speed: 503, twice", fault: planned(destsim.Fault{Kind: "http_status", Status: 503}, 2), repaired: true},
		faultCase{name: "speed: reset, twice", fault: planned(destsim.Fault{Kind: "reset"}, 2), repaired: true},
		faultCase{name: "speed: throttled", fault: planned(destsim.Fault{Kind: "throttle"}, 9), repaired: true},
		faultCase{name: "rate_limit: changing", fault: destsim.Fault{Kind: "rate_limit", Limits: []string{"50", "2", "", "nonsense", "-1", "10000"}, When: destsim.Trigger{Method: syncBatch}}, repaired: true},
	)
}

// phasedCases have commit phases: nothing, all or a part of the batch is stored.
func phasedCases(sheet bool) []faultCase {
	var cases []faultCase
	add := func(name string, at string, c faultCase) {
		c.name, c.fault.At = name+", "+at, at
		cases = append(cases, c)
	}
	for _, at := range []string{"before", "after"} {
		pause := &destsim.Delay{MS: 30}
		add("delay: within the deadline", at, faultCase{many: true, fault: calls(destsim.Fault{Kind: "delay", Delay: pause}, 8), repaired: true})
		late := &destsim.Delay{MS: float64(batchDeadline(sheet).Milliseconds()) * 1.5}
		add("delay: beyond the deadline", at, faultCase{late: true, many: true, fault: calls(destsim.Fault{Kind: "delay", Delay: late}, 3), repaired: true})
		add("hang: twice", at, faultCase{late: true, many: true, fault: calls(destsim.Fault{Kind: "hang"}, 2), repaired: true})
		add("rpc_error: seven times", at, faultCase{many: true, fault: calls(destsim.Fault{Kind: "rpc_error"}, 7), repaired: true})
		add("rpc_error: always", at, faultCase{fault: calls(destsim.Fault{Kind: "rpc_error", Code: -32050, Message: "closed today"}, 0), code: CodeRPC})
		add("rpc_error: for one record", at, faultCase{fault: one(destsim.Fault{Kind: "rpc_error"}, sheet), named: 1})
		add("http_status: 503 seven times", at, faultCase{many: true, fault: calls(destsim.Fault{Kind: "http_status", Status: 503}, 7), repaired: true})
		add("http_status: 500 always", at, faultCase{fault: calls(destsim.Fault{Kind: "http_status", Status: 500, Body: "oops"}, 0), code: CodeStatus})
		add("http_status: 401 always", at, faultCase{fault: calls(destsim.Fault{Kind: "http_status", Status: 401}, 0), code: CodeUnauthorized})
		add("http_status: 413 for one record", at, faultCase{fault: one(destsim.Fault{Kind: "http_status", Status: 413}, sheet), named: 1})
		for _, header := range []string{"seconds", "date", "absent", "garbage"} {
			add("throttle: Retry-After "+header, at, faultCase{many: header == "seconds", fault: calls(destsim.Fault{Kind: "throttle", RetryAfter: header, Seconds: 7}, 9), repaired: true})
		}
		add("throttle: always", at, faultCase{fault: calls(destsim.Fault{Kind: "throttle", Seconds: 40}, 0), code: CodeThrottled})
	}
	for _, at := range []string{"before", "after", "between"} {
		for _, kind := range []string{"reset", "close"} {
			add(kind+": seven times", at, faultCase{many: true, fault: calls(destsim.Fault{Kind: kind}, 7), repaired: true})
			add(kind+": for one record", at, faultCase{fault: one(destsim.Fault{Kind: kind}, sheet), named: 1})
		}
		of := destsim.Fault{Kind: "reset", When: destsim.Trigger{Operation: rpc.OperationDelete, Times: 2}}
		add("reset: of deletes, twice", at, faultCase{fault: of, repaired: true, deletes: true})
	}
	of := destsim.Fault{Kind: "rpc_error", When: destsim.Trigger{Operation: rpc.OperationDelete}}
	add("rpc_error: of deletes, always", "before", faultCase{fault: of, deletes: true})
	return cases
}

// answerCases are wrong answers.
func answerCases(sheet bool) []faultCase {
	record := func(kind string) destsim.Fault { return destsim.Fault{Kind: kind} }
	return []faultCase{
		{name: "truncate: seven times", fault: calls(record("truncate"), 7), repaired: true},
		{name: "stall: four times", fault: calls(destsim.Fault{Kind: "stall", PauseMS: 20}, 4), repaired: true},
		{name: "slow_body: four times", fault: calls(destsim.Fault{Kind: "slow_body", PauseMS: 1, Bytes: 400}, 4), repaired: true},
		{name: "wrong_id: seven times", fault: calls(record("wrong_id"), 7), repaired: true},
		{name: "wrong_id: always", fault: calls(record("wrong_id"), 0), code: CodeUnknown},
		{name: "wrong_identifiers: twelve batches", fault: calls(record("wrong_identifiers"), 12), repaired: true},
		{name: "wrong_identifiers: always", fault: calls(record("wrong_identifiers"), 0)},
		{name: "missing_results: twelve batches", fault: calls(record("missing_results"), 12), repaired: true},
		{name: "missing_results: three of each batch, always", fault: calls(destsim.Fault{Kind: "missing_results", Records: 3}, 0)},
		{name: "repeated_results: always", fault: calls(record("repeated_results"), 0), repaired: true},
		{name: "contradictory_results: twelve batches", fault: calls(record("contradictory_results"), 12), repaired: true},
		{name: "contradictory_results: always", fault: calls(record("contradictory_results"), 0)},
		{name: "extra_results: always", fault: calls(destsim.Fault{Kind: "extra_results", Records: 4}, 0), repaired: true},
		{name: "record_failure: twelve batches", fault: calls(record("record_failure"), 12), repaired: true},
		{name: "record_failure: always", fault: calls(destsim.Fault{Kind: "record_failure", Message: "too long"}, 0)},
		{name: "record_failure: one record, always", fault: one(destsim.Fault{Kind: "record_failure", Message: "too long"}, sheet), named: 1},
		{name: "refuse_stored: twelve batches", fault: calls(record("refuse_stored"), 12), repaired: true},
		{name: "refuse_stored: one record, always", fault: one(record("refuse_stored"), sheet), named: 1},
		{name: "acknowledge_unstored: one record", fault: one(record("acknowledge_unstored"), sheet), lies: true},
		{name: "acknowledge_unstored: two batches", fault: calls(record("acknowledge_unstored"), 2), lies: true},
	}
}

// schemaCases are a schema that was changed since it was planned with.
func schemaCases() []faultCase {
	drift := func(d destsim.Drift) destsim.Fault { return calls(destsim.Fault{Kind: "schema", Drift: &d}, 0) }
	return []faultCase{
		{name: "schema: a field is gone", fault: drift(destsim.Drift{Action: "remove_field", Field: "level"})},
		{name: "schema: a new field", fault: drift(destsim.Drift{Action: "add_field", Field: "fresh"}), repaired: true},
		{name: "schema: a field of another type", fault: drift(destsim.Drift{Action: "retype_field", Field: "level", Type: rpc.TypeBoolean})},
		{name: "schema: another field is required", fault: drift(destsim.Drift{Action: "require_field", Field: "name"}), mild: true},
		{name: "schema: the object is gone", fault: drift(destsim.Drift{Action: "remove_object", Object: person}), code: CodeRPC},
		{name: "schema: no operation is left", fault: drift(destsim.Drift{Action: "set_operations"}), code: CodeRPC},
	}
}

// kindsOf are the kinds among cases.
func kindsOf(cases []faultCase) []string {
	var kinds []string
	for _, c := range cases {
		kinds = append(kinds, c.fault.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
