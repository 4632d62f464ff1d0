package report

import (
	"strings"
	"time"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
)

var started = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// sampleExchange is what the recorder leaves of one call.
func sampleExchange() wire.Exchange {
	const body = `{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"object":{"object_api_name":"contact"},"operation":"upsert"},"records":[{"email":"zz-conf-7f3a-RES-002-1@example.com"}]},"id":"5f1c"}`
	const reply = `{"jsonrpc":"2.0","result":{"record_results":[]},"id":"5f1c"}`
	return wire.Exchange{
		ID: 41, Check: "RES-002", RPC: "sync_batch", Started: started.Add(time.Second), DurationMS: 12.25, ReusedConnection: true,
		Request: wire.Message{Method: "POST", URL: "https://crm.example.com/rpc",
			Header: []wire.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "Authorization", Value: "Bearer $DESTKIT_TOKEN"}},
			Body:   wire.Body{Text: body, Size: int64(len(body))}},
		Response: &wire.Response{Proto: "HTTP/1.1", Status: 200,
			Header: []wire.Header{{Name: "Content-Type", Value: "application/json; charset=utf-8"}, {Name: "X-RateLimit-Limit", Value: "100"}},
			Body:   wire.Body{Text: reply, Size: int64(len(reply))}},
	}
}

// check makes a result with the fields that every one has.
func check(id, title, area string, level c.Level, status c.Status) c.CheckResult {
	return c.CheckResult{ID: id, Title: title, Area: area, Level: level, Status: status, Attempts: 1, DurationMS: 12,
		Authority: []c.Authority{c.AuthoritySpec}, Sections: []string{"7.2.4"}, Gating: level == c.Must, Findings: []c.Finding{}}
}

// sample is a report with at least one result of each status.
func sample() *c.Report {
	r := &c.Report{
		SchemaVersion: c.SchemaVersion, Tool: c.Tool{Name: "destkit", Version: "1.2.3"}, Suite: "destination",
		Target: "https://crm.example.com/rpc", RunID: "7f3a", Seed: 18446744073709551615, Started: started, DurationMS: 3214,
		Profile: c.ProfileV1, Verdict: c.NonConformant, Tier: c.TierResults, ExitStatus: 1,
		Summary: "non-conformant: 2 of 6 MUSTs failed (RES-002, SEM-005); 2 undecided without a read-back hook; 2 records left behind; 3.2 s",
		Musts:   6, Failed: []string{"RES-002", "SEM-005"}, Undecided: []string{"DUR-001", "SEM-002"},
		Problems: []c.Problem{{Kind: "residue", ExitStatus: 0, Message: "2 records may still stand in the destination",
			Fix: "run destkit clean --journal conform.journal"},
			{Kind: "gate", ExitStatus: 1, Message: "gated checks failed: RES-002, SEM-005"}},
		Notes: []string{"no X-RateLimit-Limit header: the default of 50,000 requests per second applies"},
		Settings: c.Settings{Write: true, Objects: []string{"contact"}, Hooks: []string{"restart"}, Roots: "public",
			PlanningTimeoutMS: 10000, BatchTimeoutMS: 30000, TimeoutMS: 120000, MaxRecords: 5000,
			DeclaredSpeed: "1000 records × 16 batches, 1000000 records/s", DeclaredRateLimit: 100000, WaiverCount: 1},
		Calls: 212, Records: 250,
		Residue: c.Residue{Cleaned: 248, Journal: "conform.journal",
			Refused: []c.Leftover{{Object: "contact", Field: "email", Identifier: `"zz-conf-7f3a-SEM-005-1@example.com"`, Reason: "delete failed: locked"}},
			Unknown: []c.Leftover{{Object: "contact", Field: "email", Identifier: `"zz-conf-7f3a-ERR-002-1@example.com"`, Reason: "no answer"}}},
		Checks: sampleChecks(),
		Own:    []c.CheckResult{check("MY-001", "phone numbers are formatted", "our own rules", c.Should, c.Fail)},
	}
	r.Own[0].Gating, r.Own[0].Authority, r.Own[0].Sections = false, nil, nil
	r.Own[0].Reason = "the stored number has no country code"
	r.Counts = map[c.Status]int{}
	for _, x := range r.Checks {
		r.Counts[x.Status]++
	}
	return r
}

func sampleChecks() []c.CheckResult {
	pass := check("RPC-001", "the body is exactly one JSON value", "RPC envelope", c.Must, c.Pass)
	pass.Evidence = "41 replies"
	extra := check("RPC-017", "extra top-level members are tolerated", "RPC envelope", c.Info, c.Pass)
	extra.Notes = []string{`replies echo the member "method"`}

	fail := check("RES-002", "every record that was sent gets a result", "Record results", c.Must, c.Fail)
	fail.Attempts = 2
	fail.Reason = "A record without a result counts as failed and is sent again in every run."
	fail.Findings = []c.Finding{{
		Rule: "record_results holds one result for each record of the batch.", Object: "contact", Operation: "upsert",
		Expected: "5 results for 5 records",
		Actual:   "4 results\nmissing  zz-conf-7f3a-RES-002-4@example.com   (integer field \"age\" was null)",
		Cause:    "the handler skips records that raise an exception.",
		Fix:      `answer {"identifier": …, "success": false, "error_message": …} for them.`,
		Curl: `curl -sS "$DESTKIT_URL" -H 'Content-Type: application/json' -H "Authorization: Bearer $DESTKIT_TOKEN" -d '` +
			sampleExchange().Request.Body.Text + `'`,
		Exchanges: []wire.Exchange{sampleExchange()},
	}}
	second := fail.Findings[0]
	second.Operation, second.Actual = "insert", "4 results"
	fail.Findings = append(fail.Findings, second)

	flaky := check("SEM-005", "update never creates a record", "Operation semantics", c.Must, c.Flaky)
	flaky.Attempts, flaky.Reason = 2, "failed once in two runs; the second run does not acquit a MUST"
	flaky.Findings = []c.Finding{{Rule: "update never creates", Expected: "the record stays absent", Actual: "the record was created",
		Cause: "update is handled as upsert", Fix: "look the record up first", Curl: `curl -sS "$DESTKIT_URL" -d @SEM-005-1.json`,
		Exchanges: []wire.Exchange{}}}

	warn := check("RPC-009", "an unknown method is answered with -32601", "RPC envelope", c.Should, c.Warn)
	warn.Authority, warn.Reason = []c.Authority{c.AuthorityJSONRPC}, "other codes are shown to the user as an unknown error"
	broken := sampleExchange()
	broken.Kind, broken.RPCID, broken.Retried = "reset", "5f1c", true
	broken.ID, broken.Response, broken.Error, broken.RPC = 7, nil, "connection reset before a response", "no_such_method"
	broken.Request.Body = wire.Body{Base64: "/w==", Size: 1}
	warn.Findings = []c.Finding{{Rule: "code is -32601", Expected: "-32601", Actual: "-32000", Cause: "one code for all errors",
		Fix: "answer -32601", Curl: `curl -sS "$DESTKIT_URL" -d '{}'`, Exchanges: []wire.Exchange{broken}}}

	waived := check("RES-010", "results may come in any order and are labelled rightly", "Record results", c.Should, c.Waived)
	waived.Authority, waived.Reason = []c.Authority{c.AuthorityPublished}, "statuses are shifted by one"
	waived.Waiver = &c.Waiver{Check: "RES-010", Reason: "fixed in the next release", Owner: "crm team", Until: "2026-06-30", Issue: "CRM-17"}
	waived.Findings = []c.Finding{{Rule: "labelled", Expected: "own status", Actual: "that of the neighbour", Exchanges: []wire.Exchange{}}}

	na := check("SEM-009", "delete removes the record", "Operation semantics", c.Must, c.NotApplicable)
	na.Reason = "the object does not advertise mirror"
	notRun := check("DUR-001", "every acknowledged record is there at the first read-back", "Persistence, duplicates", c.Must, c.NotRun)
	notRun.Reason, notRun.Decider = "no read-back hook", "readback"
	blocked := check("RES-010.1", "a blocked check", "Record results", c.Should, c.NotRun)
	blocked.Reason, blocked.BlockedBy = "blocked by RES-002", []string{"RES-002"}
	open := check("SEM-002", "insert leaves the values of an existing record alone", "Operation semantics", c.Must, c.Inconclusive)
	open.Reason, open.Decider = "record_results look the same either way", "readback"
	harness := check("STA-001", "a changed schema is visible on the next call", "Statelessness", c.Must, c.HarnessError)
	harness.Reason = "the hook alter_schema answered ok and changed nothing"
	acquitted := check("TIM-001", "planning calls answer within the deadline", "Error safety, time", c.Should, c.Warn)
	acquitted.Attempts, acquitted.Reason = 2, "12.1 s once, 40 ms on the second run"
	return []c.CheckResult{pass, extra, warn, fail, waived, blocked, flaky, na, open, notRun, harness, acquitted}
}

// conformant is a report in which every check passed.
func conformant() *c.Report {
	r := sample()
	r.Checks = lists.Where(r.Checks, hasStatus(c.Pass))
	r.Own, r.Problems, r.Residue, r.Failed, r.Undecided = nil, nil, c.Residue{Cleaned: 250}, nil, nil
	r.Counts = map[c.Status]int{c.Pass: len(r.Checks)}
	r.Verdict, r.Tier, r.ExitStatus = c.Conformant, c.TierSemantics, 0
	r.Summary = "conformant: 6 of 6 MUSTs hold; 0 undecided; 0 records left behind; 3.2 s"
	r.Settings.WaiverCount = 0
	return r
}

// replicated is a run over three processes, one of which shows a finding by
// itself.
func replicated() *c.Report {
	r := sample()
	r.Replicas = []string{"https://b.example.com/rpc", "$DESTKIT_URL (replica 2)"}
	r.Checks[3].Findings[0].Replica = r.Replicas[0] // RES-002 has two
	r.Checks[6].Findings[0].Replica = r.Replicas[1] // SEM-005 has one
	return r
}

// The strings with which an endpoint may try to leave its place in a format.
var hostile = strings.Join([]string{
	"</script><script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</pre></textarea>", "]]>", "<![CDATA[", "-->",
	"\x1b[2J\x1b[31mred\x1b]0;title\x07", "\u009b31m", "\x00\x08\x7f", "\r\nPASS forged", "\n::error title=forged::boo",
	"\n##[error]forged", "##vso[task.complete]", "`````\n# heading", "| a | b |", "[link](https://evil.example)", "@octocat",
	"$$x$$", "\u202egnp.exe", "\u2028", "%0A::error::x", "{{.Target}}", "${jndi:x}", "'; rm -rf / #", `\`, "\xff\xfe", "https://evil.example", "<!-- x",
}, " ")

// poisoned is the sample with the hostile text in every place that can hold
// text of an endpoint or of a configuration.
func poisoned(h string) *c.Report {
	r := sample()
	r.Target, r.Summary = "https://host.example/"+h, r.Summary+h
	r.Notes, r.Replicas = append(r.Notes, h), []string{h}
	r.Settings.Objects, r.Settings.Hooks, r.Settings.Selected = []string{h}, []string{h}, []string{h}
	r.Settings.SkipConvention, r.Settings.DeclaredSpeed, r.Settings.Roots = h, h, h
	r.Problems = append(r.Problems, c.Problem{Kind: h, ExitStatus: 3, Message: h, Fix: h})
	r.Residue.Unknown = append(r.Residue.Unknown, c.Leftover{Object: h, Identifier: h, Field: h, Reason: h})
	r.Residue.Journal = h
	for _, list := range [][]c.CheckResult{r.Checks, r.Own} {
		for i := range list {
			poison(&list[i], h)
		}
	}
	return r
}

func poison(x *c.CheckResult, h string) {
	x.Title, x.Reason, x.Area, x.Evidence = x.Title+h, x.Reason+h, x.Area+h, h
	x.Notes = append(x.Notes, h)
	if x.Decider != "" {
		x.Decider = h
	}
	if x.Waiver != nil {
		x.Waiver.Reason, x.Waiver.Owner = h, h
	}
	f := c.Finding{Rule: h, Expected: h, Actual: h, Object: h, Operation: h, Replica: h, Cause: h, Fix: h,
		Curl: "curl -d '" + strings.ReplaceAll(h, "'", `'\''`) + "'"}
	e := sampleExchange()
	e.RPC, e.Error = h, h
	e.Request.URL, e.Request.Method, e.Request.Body.Text = h, h, h
	e.Request.Header = append(e.Request.Header, wire.Header{Name: h, Value: h})
	e.Response.Proto, e.Response.Body.Text = h, h
	e.Response.Header = append(e.Response.Header, wire.Header{Name: h, Value: h})
	f.Exchanges = []wire.Exchange{e}
	x.Findings = append(x.Findings, f)
}
