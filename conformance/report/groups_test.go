package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// answered is a finding whose first exchange has that response.
func answered(expected, actual string, bodies ...string) c.Finding {
	f := c.Finding{Expected: expected, Actual: actual, Cause: "one cause", Fix: "mend it", Curl: "curl 1"}
	for i, b := range bodies {
		f.Exchanges = append(f.Exchanges, wire.Exchange{ID: i + 1, RPC: "sync_batch", Request: wire.Message{Body: wire.Body{Text: `["key-07","key-39"]`}}, Response: &wire.Response{Status: 200, Body: wire.Body{Text: b, Size: int64(len(b))}}})
	}
	return f
}

// shownText is a failed check with the findings as text.
func shownText(t *testing.T, opt Options, findings ...c.Finding) string {
	t.Helper()
	r := sample()
	r.Checks = r.Checks[3:4]
	r.Checks[0].Findings = findings
	var b strings.Builder
	require.NoError(t, WriteText(&b, r, opt))
	return b.String()
}

// manyFindings are eight of one cause and one of another.
func manyFindings() []c.Finding {
	var findings []c.Finding
	for i := range 8 {
		findings = append(findings, answered(fmt.Sprintf("value %d", i), "nothing", fmt.Sprintf(`{"i":%d}`, i)))
	}
	other := answered("value 8", "something")
	other.Cause, other.Curl = "another cause", "curl 2"
	return append(findings, other)
}

// TestFindingsAreGrouped: one block for each cause, two examples in it, and one
// command.
func TestFindingsAreGrouped(t *testing.T) {
	r := sample()
	r.Checks = r.Checks[3:4]
	r.Checks[0].Findings = manyFindings()
	for format, more := range map[string][]string{
		Text:     {"and 6 more, which --verbose lists", "cause 1 of 2", "response  HTTP 200 to sync_batch"},
		Markdown: {"- and 6 more, in the JSON report", "**Cause 1 of 2**", "Response: HTTP 200 to sync\\_batch"},
	} {
		text := string(render(t, format, r))
		for want, n := range map[string]int{
			"value 1": 1, "value 2": 0, "Possible cause: one cause": 1, "Possible cause: another cause": 1,
			"curl 1": 1, "curl 2": 1, "Fix: mend it": 2, "value 8": 1, more[0]: 1, more[1]: 1, more[2]: 1,
		} {
			require.Equal(t, n, strings.Count(text, want), "%s\n%s", want, text)
		}
		require.Less(t, strings.Index(text, more[2]), strings.Index(text, "curl 1"))
	}

	text := shownText(t, Options{Verbose: true}, manyFindings()[:8]...)
	for i := range 8 {
		require.Contains(t, text, fmt.Sprintf("value %d", i))
	}
	require.NotContains(t, text, "more, which")
	require.Equal(t, 1, strings.Count(text, "* exchange 1,"), "the same exchange is shown once")
}

// TestOneCauseOfSeveralChecks: cause and fix appear once, the command for each.
func TestOneCauseOfSeveralChecks(t *testing.T) {
	r := sample()
	first := r.Checks[3]
	first.Findings = []c.Finding{answered("value 1", "nothing")}
	second, other := first, first
	second.ID, second.Findings = "RES-020", []c.Finding{answered("value 2", "nothing")}
	second.Findings[0].Curl = "curl 2"
	other.ID, other.Findings = "RES-021", []c.Finding{answered("value 3", "nothing")}
	other.Findings[0].Observed = true
	r.Checks = []c.CheckResult{first, second, other}
	var b strings.Builder
	require.NoError(t, WriteText(&b, r, Options{}))
	text := b.String()
	require.Equal(t, 1, strings.Count(text, "Possible cause: one cause"), text)
	require.Equal(t, 1, strings.Count(text, "Possible cause and fix: those of RES-002 above"), text)
	require.Equal(t, 1, strings.Count(text, "Cause, as observed: one cause"), "what was observed is more than what may be")
	for _, want := range []string{"value 1", "value 2", "value 3", "curl 1", "curl 2", "destkit explain RES-020"} {
		require.Contains(t, text, want)
	}
}

// TestNotesOfWhatHoldsAreForTheLongForm: the short one has their number.
func TestNotesOfWhatHoldsAreForTheLongForm(t *testing.T) {
	r := sample()
	r.Checks = r.Checks[3:4]
	holds := c.CheckResult{ID: "RPC-017", Level: c.Info, Status: c.Pass, Notes: []string{"replies have no extra keys"}}
	open := c.CheckResult{ID: "FLD-010", Level: c.Must, Status: c.Inconclusive, Notes: []string{"judged without writes"}}
	r.Checks = append(r.Checks, holds, open)
	for verbose, want := range map[bool]string{false: "1 note on checks that hold, which --verbose lists", true: "RPC-017   replies have no extra keys"} {
		var b strings.Builder
		require.NoError(t, WriteText(&b, r, Options{Verbose: verbose}))
		require.Contains(t, b.String(), want)
		require.Equal(t, verbose, strings.Contains(b.String(), "no extra keys"))
		require.Contains(t, b.String(), "FLD-010   judged without writes")
	}
}

// TestTheSameIsSaidOnce: findings that differ in the id of a call are the same.
func TestTheSameIsSaidOnce(t *testing.T) {
	a := answered("a result", "id 0123456789abcdef0123456789abcdef")
	b := answered("a result", "id fedcba9876543210fedcba9876543210")
	text := shownText(t, Options{}, a, b)
	require.Equal(t, 1, strings.Count(text, "actual  "))
	require.Contains(t, text, "abcdef (2 times)")
}

func TestExcerpt(t *testing.T) {
	long := make([]string, 40)
	for i := range long {
		long[i] = fmt.Sprintf(`{"identifier":"key-%02d","success":true}`, i)
	}
	results := `{"jsonrpc":"2.0","result":{"record_results":[` + strings.Join(long, ",") + `]}}`
	for name, tc := range map[string]struct {
		f      c.Finding
		marked []string
	}{
		"a value that was seen":          {answered(`"success" as a boolean`, `"key-07" has no`, results), []string{`"success": true`}},
		"a member that was expected":     {answered(`an error with the code -32601`, "the wrong one", `{"error":{"code":-32000,"message":"no"}}`), []string{`"code": -32000,`}},
		"a value that was expected":      {answered(`age of "key-39" stored as 3`, "it is 4", results), []string{`"success": true`}},
		"an error for a result":          {answered("a result", "none", `{"error":{"text":1}}`), []string{`"error": {`}},
		"what is not there":              {answered("3 results", `2 results; missing "key-77"`, results), []string{`missing: "key-77"`}},
		"a member that is not there":     {answered(`"success" as true or false`, "none", `{"result":{}}`), []string{`missing: "success"`}},
		"the second response":            {answered("the same", `"key-two" came`, `{"a":"key-one"}`, `{"a":"key-two"}`), []string{`"a": "key-two"`}},
		"what is in every line":          {answered(`"success"`, "nothing", results), nil},
		"text that is no JSON":           {answered("JSON", "HTML", "<html>\n<body>busy"), nil},
		"the status of a record":         {answered("a failure for \"key-07\", which is not stored", "it is acknowledged", results), []string{`"success": true`}},
		"a member of a quoted record":    {answered(`"success" as true or false`, `{"identifier":"key-07","success":1}`, strings.Replace(results, `"key-07","success":true`, `"key-07","success":1`, 1)), []string{`"success": 1`}},
		"a member of a quoted field":     {answered("one of the types integer, string", `list_fields of "a": {"field_api_name":"b","label":"B","type":"text"}`, `{"fields":[{"field_api_name":"a","type":"string"},{"field_api_name":"b","label":"B","type":"text"}]}`), []string{`"type": "text"`}},
		"a key that was not sent":        {answered(`the identifier "key-70"`, `it came back as "key-x"`, `{"r":[{"identifier":"key-x","success":true}]}`), []string{`"identifier": "key-x",`}},
		"a number is no part of another": {answered("1", "it is 100", `{"a":1000,"b":100}`), []string{`"b": 100`}},
	} {
		x := decisive(tc.f, room{around: 2, lines: 10})
		require.NotNil(t, x, name)
		var marked []string
		for _, l := range x.Lines {
			if l.Marked {
				marked = append(marked, strings.TrimSpace(l.Text))
			}
		}
		require.Equal(t, tc.marked, marked, name)
		require.LessOrEqual(t, len(x.Lines), 13, "%s: ten lines with gaps around them and what is missing", name)
	}
	require.Nil(t, decisive(answered("a", "b"), excerptRoom), "without a response")
}

// TestTheResponseIsNotSaidTwice: where the observation is the response, it is laid out.
func TestTheResponseIsNotSaidTwice(t *testing.T) {
	body := `{"jsonrpc":"2.0","id":"0123456789abcdef","result":{"success":"true"}}`
	for actual, want := range map[string]string{
		"test_connection: " + body: "actual    test_connection: the response below\n",
		body[:50] + "…":            "actual    the response below\n",
		"HTTP 200 " + body + "!":   "actual    HTTP 200 the response below!\n",
		body[:39]:                  "actual    " + body[:39] + "\n",
	} {
		require.Contains(t, shownText(t, Options{}, answered(`"success" as true or false`, actual, body)), want)
	}
}

func TestDiffer(t *testing.T) {
	for name, tc := range map[string]struct{ expected, actual, in, at string }{
		"moments":           {`a of "k" stored as "2021-03-29T16:32Z"`, `it is "2021-03-29T14:32Z"`, "6", "4"},
		"numbers":           {"stored as 9007199254740993", "it is 9007199254740992", "3", "2"},
		"a part is lost":    {`stored as "ends\n"`, `it is "ends"`, `\n`, ""},
		"letters of others": {`stored as "café"`, `it is "cafè"`, "é", "è"},
	} {
		in, at, ok := differ(tc.expected, tc.actual)
		require.True(t, ok, name)
		require.Equal(t, tc.in, tc.expected[in[0]:in[1]], name)
		require.Equal(t, tc.at, tc.actual[at[0]:at[1]], name)
	}
	for expected, actual := range map[string]string{"stored as 1": "it is 2", "stored as null": `it is "null" or so`, "text": "it is 3", `as "a"`: `is "a"`, "": ""} {
		_, _, ok := differ(expected, actual)
		require.False(t, ok, "%s: %s", expected, actual)
	}
	text := shownText(t, Options{}, answered(`stored as "2021-03-29T16:32Z"`, `it is "2021-03-29T14:32Z"`))
	require.Contains(t, text, "actual    it is \"2021-03-29T14:32Z\"\n                                   ^\n")
}

// TestDeepBodiesAreNotLaidOut: each level of JSON indents all below it, so a small body
// could become one of hundreds of megabytes.
func TestDeepBodiesAreNotLaidOut(t *testing.T) {
	for name, body := range map[string]string{
		"deep": strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
		"wide": `{"result": "` + strings.Repeat("x", 4<<20) + `"}`,
	} {
		size := 0
		for _, l := range layOut(wire.Body{Text: body}) {
			size += len(l)
		}
		require.LessOrEqual(t, size, 2*maxPretty, name)
	}
	require.Equal(t, []string{"{", `  "result": []`, "}"}, layOut(wire.Body{Text: `{"result":[]}`}))
}
