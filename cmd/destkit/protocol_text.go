package main

import (
	"io"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/openapi"
)

// protocolText writes for a terminal of 80 columns.
type protocolText struct {
	io.Writer
	coloured bool
}

// The codes of the colours that are used here.
const (
	bold = "1"
	dim  = "2"
)

func (t protocolText) paint(code, text string) foreign.Own {
	if !t.coloured {
		return foreign.Own(text)
	}
	return foreign.Own("\x1b[" + code + "m" + text + "\x1b[0m")
}

// head writes a headline after an empty line.
func (t protocolText) head(text string) { foreign.Printf(t, "\n%s\n", t.paint(bold, text)) }

// block writes text of several lines, each after lead.
func (t protocolText) block(lead, text string) {
	for line := range strings.Lines(text) {
		foreign.Printf(t, "%s\n", foreign.Own(strings.TrimRight(lead+line, " \n")))
	}
}

// writeText writes the methods, or what they have in common when there are none.
func (b *protocolBook) writeText(w io.Writer, methods []openapi.RPCMethod, coloured bool) error {
	t := protocolText{w, coloured}
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

func (b *protocolBook) overview(t protocolText) error {
	foreign.Printf(t, "%s\n\n%s\n\n", t.paint(bold, "The custom destination protocol"), indent(protocolIntroduction))
	t.block("  ", protocolDiagram)
	foreign.Println(t)
	t.block("  ", protocolSequence)
	t.head("Every call")
	foreign.Printf(t, "%s\n\n", indent(b.Description))
	exchanges, err := exchangesOf(b.Methods[0], 76)
	if err != nil {
		return err
	}
	t.exchange(protocolHTTPRequest+exchanges[0].request, protocolHTTPResponse+exchanges[0].response)
	foreign.Printf(t, "\n%s\n", indent(protocolEnvelope))
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

func (b *protocolBook) writeMethod(t protocolText, m openapi.RPCMethod) error {
	foreign.Printf(t, "%s  %s\n\n%s\n", t.paint(bold, m.Name), t.paint(dim, m.Phase), indent(m.Summary+" "+m.Description))
	t.writeMembers("Params", m.Params)
	t.writeMembers("Result", m.Result)
	exchanges, err := exchangesOf(m, 76)
	if err != nil {
		return err
	}
	for _, e := range exchanges {
		t.head("Example: " + e.name)
		if e.description != "" {
			foreign.Printf(t, "%s\n", indent(e.description))
		}
		t.exchange(e.request, e.response)
	}
	t.writeRules(b.rules(m.Name))
	return nil
}

// exchange writes a request and its response in a form that is fit for copying.
func (t protocolText) exchange(request, response string) {
	foreign.Printf(t, "  %s\n", t.paint(dim, "request"))
	t.block("    ", request)
	foreign.Printf(t, "  %s\n", t.paint(dim, "response"))
	t.block("    ", response)
}

func (t protocolText) writeMembers(title string, members []openapi.RPCMember) {
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
		if len(m.Path)+len(rest) > textWidth-2 {
			foreign.Printf(t, "  %s\n      %s\n", m.Path, t.paint(dim, rest))
		} else {
			foreign.Printf(t, "  %s  %s\n", m.Path, t.paint(dim, rest))
		}
		if m.Description != "" {
			foreign.Printf(t, "%s\n", indent("    "+m.Description))
		}
	}
}

func (t protocolText) writeRules(rules []*conformance.Check) {
	t.head("Rules and usual mistakes")
	for _, c := range rules {
		foreign.Printf(t, "  %s %s  %s\n", t.paint(dim, c.ID), t.paint(dim, string(c.Level)), c.Title)
		foreign.Printf(t, "%s\n", indent("    mistake: "+c.Cause))
	}
}
