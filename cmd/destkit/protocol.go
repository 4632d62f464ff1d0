package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/terminal"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/openapi"
)

// newProtocol teaches the protocol to those who have never seen it.
func newProtocol() *cobra.Command {
	var asMarkdown, noColor bool
	cmd := &cobra.Command{
		Use:   "protocol [METHOD]...",
		Short: "Explain the protocol: who calls whom, methods, usual mistakes",
		Long: `Explain the custom destination protocol. Without METHOD: who calls whom, what
every call has in common, and the six methods with one line each. With METHOD:
when the service calls it, its params and its result, examples, the rules that
'destkit conform' checks, and the usual mistakes.

The text is made from the OpenRPC document and the checks of this program.
docs/protocol.md is the same on one page.`,
		Example: "  destkit protocol\n  destkit protocol sync_batch\n  destkit protocol --markdown > protocol.md",
		RunE: func(cmd *cobra.Command, names []string) error {
			book, err := newProtocolBook()
			if err != nil {
				return err
			}
			methods, err := book.choose(names)
			if err != nil {
				return err
			}
			var page bytes.Buffer
			switch {
			case asMarkdown && len(names) > 0:
				return exit.Usagef("--markdown prints the whole page: leave out %s", strings.Join(names, ", "))
			case asMarkdown:
				err = book.writePage(&page)
			default:
				err = book.writeText(&page, methods, terminal.Colourful(cmd.OutOrStdout(), noColor))
			}
			if err != nil {
				return exit.Untested(err)
			}
			foreign.Print(cmd.OutOrStdout(), page.String())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "print the whole page as Markdown")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "no colours, also when standard output is a terminal")
	return cmd
}

// protocolBook is what the page and the command show.
type protocolBook struct {
	*openapi.Protocol
	checks   []*conformance.Check // without those that only note something
	sections []specSection
}

func newProtocolBook() (*protocolBook, error) {
	catalogue, err := conformance.LoadCatalogue()
	if err != nil {
		return nil, exit.Untested(err)
	}
	sections, err := citedSections(catalogue.Checks)
	if err != nil {
		return nil, exit.Untested(err)
	}
	checks := slices.DeleteFunc(catalogue.Checks, func(c *conformance.Check) bool { return c.Level == conformance.Info })
	slices.SortStableFunc(checks, func(a, b *conformance.Check) int { return levelRank(a) - levelRank(b) })
	return &protocolBook{openapi.ReadProtocol(), checks, sections}, nil
}

// levelRank puts what is required before what is advised.
func levelRank(c *conformance.Check) int {
	if c.Level == conformance.Must {
		return 0
	}
	return 1
}

// choose returns the methods of these names, none without names.
func (b *protocolBook) choose(names []string) ([]openapi.RPCMethod, error) {
	var all []string
	for _, m := range b.Methods {
		all = append(all, m.Name)
	}
	var chosen []openapi.RPCMethod
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
func (b *protocolBook) rules(method string) []*conformance.Check {
	var rules []*conformance.Check
	for _, c := range b.checks {
		if c.Method() == method {
			rules = append(rules, c)
		}
	}
	return rules
}

// rpcExchange is a request and its response as JSON on the wire.
type rpcExchange struct {
	name, description, request, response string
}

// exchangesOf are the examples of a method, with their envelopes.
func exchangesOf(m openapi.RPCMethod, width int) ([]rpcExchange, error) {
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
