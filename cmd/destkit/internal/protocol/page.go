package protocol

import (
	"fmt"
	"io"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/features"
)

// WritePage writes docs/protocol.md.
func (b *Book) WritePage(w io.Writer) error {
	p := &pageWriter{}
	p.printf("# The custom destination protocol\n\n%s\n\n"+
		"`destkit protocol` prints this page in parts on a terminal. It is made from\n"+
		"[openrpc.json](../openapi/openrpc.json) and the checks of `destkit conform` (`make docs`);\n"+
		"a test sends every request on it to the simulated destination.\n\n"+
		"## Who calls whom\n\n```text\n%s```\n\n```text\n%s```\n", fold(introduction), diagram, sequence)
	if err := p.everyCall(b); err != nil {
		return err
	}
	for _, m := range b.Methods {
		if err := p.method(b, m); err != nil {
			return err
		}
	}
	p.specification(b.sections)
	_, err := w.Write([]byte(p.String())) // our own text, with its line breaks
	return err
}

type pageWriter struct{ strings.Builder }

func (p *pageWriter) printf(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
}

func (p *pageWriter) everyCall(b *Book) error {
	exchanges, err := exchangesOf(b.Methods[0], 88)
	if err != nil {
		return err
	}
	p.printf("\n## Every call\n\n%s\n\n```http\n%s%s\n```\n\n```http\n%s%s\n```\n\n%s\n",
		fold(b.Description), httpRequest, exchanges[0].request, httpResponse, exchanges[0].response, fold(envelope))
	refused, err := layoutExchange(refusedRequest, refusedResponse, 88)
	if err != nil {
		return err
	}
	p.exchange(refused)
	p.printf("\n| code | meaning |\n|---|---|\n")
	for _, e := range b.Errors {
		p.printf("| %d | %s |\n", e.Code, cell(e.Message))
	}
	p.rules("Rules of every call, and usual mistakes", b.rules(""))
	return nil
}

func (p *pageWriter) method(b *Book, m Method) error {
	p.printf("\n## %s\n\n*%s* · %s\n\n%s\n", m.Name, m.Phase, m.Summary, fold(m.Description))
	exchanges, err := exchangesOf(m, 88)
	if err != nil {
		return err
	}
	for _, e := range exchanges {
		p.printf("\nExample: %s. %s\n", e.name, e.description)
		p.exchange(e)
	}
	p.members("params", m.Params)
	p.members("result", m.Result)
	p.rules("Rules of "+m.Name+", and usual mistakes", b.rules(m.Name))
	return nil
}

func (p *pageWriter) exchange(e rpcExchange) {
	p.printf("\n```json\n%s\n```\n\n```json\n%s\n```\n", e.request, e.response)
}

func (p *pageWriter) members(of string, members []Member) {
	if len(members) == 0 {
		p.printf("\nThe %s are empty: `{}`.\n", of)
		return
	}
	p.printf("\n| in the %s | type | | |\n|---|---|---|---|\n", of)
	for _, m := range members {
		need := "optional"
		if m.Required {
			need = "required"
		}
		p.printf("| `%s` | %s | %s | %s |\n", m.Path, cell(m.Type), need, cell(m.Description))
	}
}

func (p *pageWriter) rules(title string, rules []*conformance.Check) {
	p.printf("\n### %s\n\n| check | | rule | usual mistake | instead |\n|---|---|---|---|---|\n", title)
	for _, c := range rules {
		p.printf("| %s | %s | %s | %s | %s |\n", c.ID, c.Level, cell(c.Title), cell(c.Cause), cell(c.Fix))
	}
}

// specification lists the sentences that checks cite by number, each number with an
// anchor that reports link to.
func (p *pageWriter) specification(sections []citedSection) {
	p.printf("\n## The specification by number\n\n%s\n", fold("Findings, `destkit explain` and comments in the code cite the specification by number, such as "+
		"\"spec 7.2.4\". These are the sections that bind a destination, with the checks that cite each; "+
		"[evidence/service-sentences.md](evidence/service-sentences.md) has every section."))
	for _, s := range sections {
		p.printf("\n<a id=\"%s\"></a>\n\n### spec %s: %s\n\n", features.Anchor(s.Number), s.Number, s.Title)
		if len(s.Checks) > 0 {
			p.printf("%s\n\n", fold("Checks: "+idRanges(s.Checks)))
		}
		p.printf("| number | sentence | checks |\n|---|---|---|\n")
		for _, sentence := range s.Sentences {
			number := ""
			if sentence.Rule != "" {
				number = fmt.Sprintf("<a id=\"%s\"></a>%s", features.Anchor(sentence.Rule), sentence.Rule)
			}
			p.printf("| %s | %s | %s |\n", number, cell(sentence.Says), idRanges(sentence.Checks))
		}
	}
}

// cell keeps a text inside its column.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// fold breaks a paragraph into lines.
func fold(text string) string { return strings.Join(command.FoldLines(text, 88), "\n") }
