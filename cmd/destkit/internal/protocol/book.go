// Package protocol explains the custom destination protocol: it makes the text that
// destkit protocol shows on a terminal, and docs/protocol.md, from the OpenRPC document
// and the catalogue of checks. It sends nothing.
package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/suggest"
)

// Book is what the page and the command show: the contract with the rules of each
// method.
type Book struct {
	*Document
	checks   []*conformance.Check // without those that only note something
	sections []citedSection
}

// NewBook reads the contract and the catalogue that this program embeds.
func NewBook() (*Book, error) {
	catalogue, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	if err != nil {
		return nil, exit.Untested(err)
	}
	sections, err := citedSections(catalogue.Checks)
	if err != nil {
		return nil, exit.Untested(err)
	}
	checks := slices.DeleteFunc(catalogue.Checks, func(c *conformance.Check) bool { return c.Level == conformance.Info })
	slices.SortStableFunc(checks, func(a, b *conformance.Check) int { return levelRank(a) - levelRank(b) })
	return &Book{ReadDocument(), checks, sections}, nil
}

// levelRank puts required checks before advised ones.
func levelRank(c *conformance.Check) int {
	if c.Level == conformance.Must {
		return 0
	}
	return 1
}

// Choose returns the methods of these names, none without names.
func (b *Book) Choose(names []string) ([]Method, error) {
	all := lists.Of(b.Methods, func(m Method) string { return m.Name })
	var chosen []Method
	for _, name := range names {
		i := slices.Index(all, name)
		if i < 0 {
			if near := suggest.Word(strings.ReplaceAll(strings.ToLower(name), "-", "_"), all); near != "" {
				return nil, exit.Usagef("unknown method %q, did you mean %q?", name, near)
			}
			return nil, exit.Usagef("unknown method %q; methods are %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, b.Methods[i])
	}
	return chosen, nil
}

// rules are the checks about a method, "" for those about every call.
func (b *Book) rules(method string) []*conformance.Check {
	return lists.Where(b.checks, func(c *conformance.Check) bool { return c.Method() == method })
}

// rpcExchange is a request and its response as JSON on the wire.
type rpcExchange struct {
	name, description, request, response string
}

// exchangesOf are the examples of a method, with their envelopes.
func exchangesOf(m Method, width int) ([]rpcExchange, error) {
	exchanges := make([]rpcExchange, len(m.Examples))
	for i, e := range m.Examples {
		laid, err := layoutExchange(`{"jsonrpc":"2.0","method":"`+m.Name+`","params":`+string(e.Params)+`,"id":"1"}`,
			`{"jsonrpc":"2.0","id":"1","result":`+string(e.Result)+`}`, width)
		if err != nil {
			return nil, fmt.Errorf("example %q of %s: %w", e.Name, m.Name, err)
		}
		laid.name, laid.description = e.Name, e.Description
		exchanges[i] = laid
	}
	return exchanges, nil
}

func layoutExchange(request, response string, width int) (e rpcExchange, err error) {
	if e.request, err = layoutJSON([]byte(request), width); err != nil {
		return e, err
	}
	e.response, err = layoutJSON([]byte(response), width)
	return e, err
}
