package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
)

// TestMarkdownGroupsFindings: one block for each cause, as in a terminal.
func TestMarkdownGroupsFindings(t *testing.T) {
	r := sample()
	r.Checks = r.Checks[3:4]
	r.Checks[0].Findings = nil
	for i := range 8 {
		f := answered(fmt.Sprintf("value %d", i), "nothing", fmt.Sprintf(`{"i":%d}`, i))
		r.Checks[0].Findings = append(r.Checks[0].Findings, f)
	}
	other := answered("value 8", "something")
	other.Cause, other.Curl = "another cause", "curl 2"
	r.Checks[0].Findings = append(r.Checks[0].Findings, other)
	text := string(render(t, Markdown, r))
	for want, n := range map[string]int{
		"value 2": 1, "value 3": 0, "- and 5 more, in the JSON report": 1, "Possible cause: one cause": 1, "Possible cause: another cause": 1,
		"curl 1": 1, "curl 2": 1, "Fix: mend it": 2, "**Cause 1 of 2**": 1, "Response: HTTP 200 to sync\\_batch": 1, "value 8": 1,
	} {
		require.Equal(t, n, strings.Count(text, want), "%s\n%s", want, text)
	}
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
