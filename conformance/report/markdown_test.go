package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
)

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
