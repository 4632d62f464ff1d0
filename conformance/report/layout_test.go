package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

// pageOf is the HTML report of r.
func pageOf(t *testing.T, r *c.Report) string {
	t.Helper()
	return string(render(t, HTML, r))
}

// TestPageOfManyFindings: the index folds what does not fit a screen, and a cause
// shows two findings and one command.
func TestPageOfManyFindings(t *testing.T) {
	r := sample()
	one := r.Checks[3]
	r.Checks = nil
	for i := range 40 {
		check := one
		check.ID, check.Findings = fmt.Sprintf("MANY-%03d", i), nil
		for n := range 25 {
			check.Findings = append(check.Findings, answered(fmt.Sprintf("value %d", n), "nothing", fmt.Sprintf(`{"i":%d}`, i)))
		}
		r.Checks = append(r.Checks, check)
	}
	html := pageOf(t, r)
	require.Contains(t, html, "<summary>and 20 more</summary>")
	require.Contains(t, html, "<summary>and 20 more failures</summary>")
	require.Equal(t, 40, strings.Count(html, "<summary>and 23 more</summary>"))
	require.Equal(t, 40, strings.Count(html, "<code>curl 1</code>"))
	require.Equal(t, 40, strings.Count(html, "<details class=\"exchange\">"), "the same exchange is shown once")
}

// TestPageMarks: the fault in the response, and the difference of two values.
func TestPageMarks(t *testing.T) {
	r := sample()
	r.Checks[3].Findings = []c.Finding{
		answered(`"identifier" as a boolean`, `field 1 has "true"`, `{"identifier":"true","required":true}`),
		answered(`stored as "16:32"`, `it is "14:32"`),
	}
	html := pageOf(t, r)
	require.Contains(t, html, "\n<mark>  &#34;identifier&#34;: &#34;true&#34;,</mark>\n")
	require.Contains(t, html, "stored as &#34;1<mark>6</mark>:32&#34;")
	require.Contains(t, html, "it is &#34;1<mark>4</mark>:32&#34;")
}

// TestTones: green is for a verdict without a reservation.
func TestTones(t *testing.T) {
	r := conformant()
	require.NotContains(t, pageOf(t, r), `id="findings"`)
	require.Equal(t, "good", verdictTone(r))
	require.Equal(t, green+";"+bold, (&terminal{r: r}).verdictColor())
	r.Verdict = c.ConformantInPart
	require.Equal(t, "part", verdictTone(r))
	require.Equal(t, yellow+";"+bold, (&terminal{r: r}).verdictColor())
	r.Verdict = c.NonConformant
	require.Equal(t, "bad", verdictTone(r))
	require.Equal(t, red+";"+bold, (&terminal{r: r}).verdictColor())
}

// TestSectionsLeadToSentences: each section is a link to the page of its
// suite; text that is no section is no part of an address.
func TestSectionsLeadToSentences(t *testing.T) {
	const pages = "https://github.com/destkit/destkit/blob/main/docs/"
	for suite, page := range map[string]string{c.SuiteDestination: "protocol.md", c.SuiteService: "evidence/service-sentences.md"} {
		r := sample()
		r.Suite = suite
		r.Checks = r.Checks[3:4]
		r.Checks[0].Authority = []c.Authority{c.AuthoritySpec, c.AuthorityJSONRPC}
		r.Checks[0].Sections = []string{"7.2.4", "4.2 ](x", "9"}
		require.Contains(t, string(render(t, Markdown, r)),
			"\nMUST · [spec 7.2.4]("+pages+page+"#spec-7.2.4), 4.2 \\](x, [9]("+pages+page+"#spec-9), jsonrpc\n")
		require.Contains(t, string(render(t, HTML, r)),
			`<span class="rank">MUST · <a href="`+pages+page+`#spec-7.2.4">spec 7.2.4</a>, 4.2 ](x, <a href="`+pages+page+`#spec-9">9</a>, jsonrpc</span>`)
	}
}

func TestWrap(t *testing.T) {
	for text, lines := range map[string][]string{
		"":                              nil,
		"a short one":                   {"a short one"},
		"one two three":                 {"one two", "three"},
		"a-word-that-is-longer than it": {"a-word-that-is-longer", "than it"},
		// A line does not break within a value.
		`stored as "  spaces  "`: {"stored as", `"  spaces  "`},
		`stored as " x y"`:       {"stored as", `" x y"`},
		`it is "x y " here`:      {`it is "x y "`, "here"},
		`"ab" and " bc"`:         {`"ab" and`, `" bc"`},
		`"say \" it" " b"`:       {`"say \" it"`, `" b"`},
		"left  two":              {"left  two"},
		"    indented text":      {"    indented", "text"},
	} {
		require.Equal(t, lines, foreign.Wrap(text, 12), text)
	}
}
