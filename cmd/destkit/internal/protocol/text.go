package protocol

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

// textWriter writes for a terminal of 80 columns.
type textWriter struct {
	io.Writer
	coloured bool
}

// The codes of the colours that are used here.
const (
	bold = "1"
	dim  = "2"
)

func (t textWriter) paint(code, text string) foreign.Own {
	if !t.coloured {
		return foreign.Own(text)
	}
	return foreign.Own("\x1b[" + code + "m" + text + "\x1b[0m")
}

// head writes a headline after an empty line.
func (t textWriter) head(text string) { foreign.Printf(t, "\n%s\n", t.paint(bold, text)) }

// block writes text of several lines, each after lead.
func (t textWriter) block(lead, text string) {
	for line := range strings.Lines(text) {
		foreign.Printf(t, "%s\n", foreign.Own(strings.TrimRight(lead+line, " \n")))
	}
}

// WriteText writes the methods, or their common parts when there are none.
func (b *Book) WriteText(w io.Writer, methods []Method, coloured bool) error {
	t := textWriter{w, coloured}
	if len(methods) == 0 {
		return b.overview(t)
	}
	for i, m := range methods {
		if i > 0 {
			foreign.Println(t)
		}
		if err := b.writeMethod(t, m); err != nil {
			return err
		}
	}
	return nil
}

func (b *Book) overview(t textWriter) error {
	foreign.Printf(t, "%s\n\n%s\n\n", t.paint(bold, "The custom destination protocol"), command.Indent(introduction))
	t.block("  ", diagram)
	foreign.Println(t)
	t.block("  ", sequence)
	t.head("Every call")
	foreign.Printf(t, "%s\n\n", command.Indent(b.Description))
	exchanges, err := exchangesOf(b.Methods[0], 76)
	if err != nil {
		return err
	}
	t.exchange(httpRequest+exchanges[0].request, httpResponse+exchanges[0].response)
	foreign.Printf(t, "\n%s\n", command.Indent(envelope))
	refused, err := layoutExchange(refusedRequest, refusedResponse, 76)
	if err != nil {
		return err
	}
	t.exchange(refused.request, refused.response)
	t.head("Errors")
	for _, e := range b.Errors {
		foreign.Printf(t, "  %s  %s\n", t.paint(dim, strconv.Itoa(e.Code)), e.Message)
	}
	t.head("Methods")
	for _, m := range b.Methods {
		foreign.Printf(t, "  %-21s %s\n", m.Name, m.Summary)
	}
	t.writeRules(b.rules(""))
	foreign.Printf(t, "\n'destkit protocol METHOD' explains a method, 'destkit explain ID' a rule.\n")
	return nil
}

func (b *Book) writeMethod(t textWriter, m Method) error {
	foreign.Printf(t, "%s  %s\n\n%s\n", t.paint(bold, m.Name), t.paint(dim, m.Phase), command.Indent(m.Summary+" "+m.Description))
	t.writeMembers("Params", m.Params)
	t.writeMembers("Result", m.Result)
	exchanges, err := exchangesOf(m, 76)
	if err != nil {
		return err
	}
	for _, e := range exchanges {
		t.head("Example: " + e.name)
		if e.description != "" {
			foreign.Printf(t, "%s\n", command.Indent(e.description))
		}
		t.exchange(e.request, e.response)
	}
	t.writeRules(b.rules(m.Name))
	return nil
}

// exchange writes a request and its response in a form that is fit for copying.
func (t textWriter) exchange(request, response string) {
	foreign.Printf(t, "  %s\n", t.paint(dim, "request"))
	t.block("    ", request)
	foreign.Printf(t, "  %s\n", t.paint(dim, "response"))
	t.block("    ", response)
}

func (t textWriter) writeMembers(title string, members []Member) {
	t.head(title)
	if len(members) == 0 {
		foreign.Printf(t, "  an empty object: {}\n")
	}
	for _, m := range members {
		need := "optional"
		if m.Required {
			need = "required"
		}
		rest := m.Type + ", " + need
		if len(m.Path)+len(rest) > command.TextWidth-2 {
			foreign.Printf(t, "  %s\n      %s\n", m.Path, t.paint(dim, rest))
		} else {
			foreign.Printf(t, "  %s  %s\n", m.Path, t.paint(dim, rest))
		}
		if m.Description != "" {
			foreign.Printf(t, "%s\n", command.Indent("    "+m.Description))
		}
	}
}

func (t textWriter) writeRules(rules []*conformance.Check) {
	t.head("Rules and usual mistakes")
	for _, c := range rules {
		foreign.Printf(t, "  %s %s  %s\n", t.paint(dim, c.ID), t.paint(dim, string(c.Level)), c.Title)
		foreign.Printf(t, "%s\n", command.Indent("    mistake: "+c.Cause))
	}
}

// layoutJSON writes JSON for people: a value that fits into width stays on one line,
// a longer one has its members on separate lines, in the order of the text.
func layoutJSON(text []byte, width int) (string, error) { return layout(text, width, 0, 0) }

// oneLine joins the lines of json.Indent; no string has a line break.
var oneLine = strings.NewReplacer("{\n", "{", "[\n", "[", "\n}", "}", "\n]", "]", ",\n", ", ")

// layout lays a value out; used columns of its first line are taken, and further lines
// are indented.
func layout(text []byte, width, indent, used int) (string, error) {
	var lines bytes.Buffer
	if err := json.Indent(&lines, bytes.TrimSpace(text), "", ""); err != nil {
		return "", err
	}
	flat := oneLine.Replace(lines.String())
	last := len(flat) - 1
	if used+len(flat) <= width || last < 2 || flat[0] != '{' && flat[0] != '[' {
		return flat, nil
	}
	d := json.NewDecoder(&lines)
	open, err := d.Token()
	var items []string
	for err == nil && d.More() {
		key := ""
		if open == json.Delim('{') {
			name, _ := d.Token() // it is valid
			key = strconv.Quote(name.(string)) + ": "
		}
		var item json.RawMessage
		if err = d.Decode(&item); err != nil {
			break
		}
		comma := 0
		if d.More() {
			comma = 1
		}
		laid, err := layout(item, width, indent+2, indent+2+len(key)+comma)
		if err != nil {
			return "", err
		}
		items = append(items, key+laid)
	}
	lead := "\n" + strings.Repeat(" ", indent)
	return flat[:1] + lead + "  " + strings.Join(items, ","+lead+"  ") + lead + flat[last:], err
}
