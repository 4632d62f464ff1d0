package destination

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// permission decides which requests of a report may be sent again. The report is a
// file: what it says beside a request (its method, its check, its run) is a label.
// What a request does is read from its body, and only what this program itself
// sends is sent.
type permission struct {
	s       *session
	report  *conformance.Report
	write   bool
	objects []string // those of the caller; else those of the report
	owns    *discover.Ownership
	records int // written so far

	catalog *write.Catalog // of the target, once it was asked
}

// asks says what an endpoint would do for a body.
type asks struct {
	method  string // as the body has it, "" when it has none
	records int    // that it would write
	refused string // why it is not sent
}

// read reads a body that is about to be sent, secrets included.
func (p *permission) read(ctx context.Context, httpMethod string, body []byte) asks {
	n, err := wire.Parse(body)
	method := n.Get("method")
	switch {
	case err == nil && n.Is(wire.Object) && method.Is(wire.String) && ambiguous(n) == "":
		a := asks{method: method.Text}
		switch {
		case a.method == rpc.MethodSyncBatch:
			return p.batch(ctx, httpMethod, n)
		case slices.Contains(judge.UnknownMethods, a.method) || slices.Contains(rpc.Methods(), a.method):
			return a
		}
	case len(body) == 0 && httpMethod == http.MethodGet: // the call was in the query
		return asks{}
	}
	for _, known := range oddBodies() {
		if known.Match(body) {
			return asks{}
		}
	}
	if err == nil && ambiguous(n) != "" {
		return asks{refused: "the member " + ambiguous(n) + " stands twice in its body, so that two readers may take it for two calls"}
	}
	return asks{refused: "its body is none that this program sends"}
}

// ambiguous names a member that stands twice in its object, in any case of its
// letters: readers disagree on which of them counts. "" when there is none.
func ambiguous(n *wire.Node) string {
	if len(n.Duplicates) > 0 {
		return n.Duplicates[0]
	}
	seen := map[string]bool{}
	for _, m := range n.Members {
		low := strings.ToLower(m.Name)
		if seen[low] {
			return m.Name
		}
		seen[low] = true
		if odd := ambiguous(m.Value); odd != "" {
			return odd
		}
	}
	for _, item := range n.Items {
		if odd := ambiguous(item); odd != "" {
			return odd
		}
	}
	return ""
}

// batch permits a sync_batch that writes keys of the run and nothing else.
func (p *permission) batch(ctx context.Context, httpMethod string, n *wire.Node) asks {
	a := asks{method: rpc.MethodSyncBatch}
	params, records := n.Get("params"), n.Get("params", "records")
	a.records = len(itemsOf(records))
	switch {
	case httpMethod != http.MethodPost:
		a.refused = fmt.Sprintf("it writes records, and its HTTP method is %s", foreign.Clip(httpMethod, 20))
	case !p.write:
		a.refused = "it calls sync_batch, which writes records: add --write to send it"
	case !has(n, "jsonrpc", "method", "params", "id") || !has(params, "sync_plan", "records"):
		a.refused = "it calls sync_batch with a member that this program does not send"
	case params.Get("sync_plan").Is(wire.Object):
		a.refused = p.plan(ctx, params.Get("sync_plan"), records)
	case a.records > 0:
		a.refused = "it writes records without a plan, so that their keys cannot be told"
	}
	if a.refused == "" && p.records+a.records > p.s.Opts.MaxRecords {
		a.refused = fmt.Sprintf("with its %s more than %d would be written", quantity.Count(a.records, "record"), p.s.Opts.MaxRecords)
	}
	if a.refused == "" {
		p.records += a.records
	}
	return a
}

// has reports whether an object has no other members than these. A value that is
// no object has none.
func has(n *wire.Node, names ...string) bool {
	if n == nil {
		return true
	}
	return !slices.ContainsFunc(n.Members, func(m wire.Member) bool { return !slices.Contains(names, m.Name) })
}

// plan says why the records of a plan may not be written, "" when they may.
func (p *permission) plan(ctx context.Context, plan, records *wire.Node) string {
	operation, name := plan.Get("operation"), plan.Get("object", "object_api_name")
	switch {
	case !has(plan, "object", "operation", "sync_run_id", "sync_id", "schema") || !has(plan.Get("object"), "object_api_name", "label"):
		return "its plan has a member that this program does not send"
	case !operation.Is(wire.String) || !slices.Contains(batchOperations, operation.Text):
		return "the operation of its plan is none that this program sends"
	case len(itemsOf(records)) == 0:
		return ""
	case !name.Is(wire.String):
		return "its plan names no object"
	case !slices.Contains(p.objects, name.Text):
		return fmt.Sprintf("it writes into %q, which is none of the objects of the run: name it with --object", foreign.Clip(name.Text, 60))
	}
	if p.owns == nil {
		var err error
		if p.owns, err = p.ownership(); err != nil {
			return err.Error()
		}
	}
	o, why := p.object(ctx, name.Text)
	if o == nil {
		return why
	}
	return p.keys(o, plan.Get("schema"), records)
}

// batchOperations are those that batches of the judge carry.
var batchOperations = []string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationDelete}

func (p *permission) ownership() (*discover.Ownership, error) {
	checks := lists.Of(slices.Concat(p.report.Checks, p.report.Own), func(c conformance.CheckResult) string { return c.ID })
	return discover.NewOwnership(p.report.RunID, p.s.Opts, checks)
}

// object asks the target what it knows of an object: which of its fields are
// identifiers is not for the report to say.
func (p *permission) object(ctx context.Context, name string) (*write.Object, string) {
	if p.catalog == nil {
		c, err := p.s.Discover(ctx)
		if err != nil {
			return nil, "the endpoint could not be asked for its objects: " + err.Error()
		}
		p.catalog = c
	}
	o := p.catalog.Object(name)
	if o == nil || len(o.Fields) == 0 {
		return nil, fmt.Sprintf("the endpoint does not list the fields of %q, so that its identifiers cannot be told", foreign.Clip(name, 60))
	}
	return o, ""
}

// keys says which record has an identifier that the run did not make. Whatever the
// plan or the endpoint calls an identifier must be the run's own, or absent.
func (p *permission) keys(o *write.Object, schema, records *wire.Node) string {
	names := lists.Of(o.Identifiers(), func(f rpc.Field) string { return f.APIName })
	for _, m := range membersOf(schema) {
		active, _ := m.Value.Get("active_identifier").Bool()
		identifier, _ := m.Value.Get("field", "identifier").Bool()
		if active || identifier {
			names = append(names, m.Name)
		}
	}
	for i, r := range itemsOf(records) {
		if !r.Is(wire.Object) {
			return fmt.Sprintf("its record %d is no object", i+1)
		}
		for _, m := range r.Members {
			own := m.Value.Is(wire.Null) || p.owns.OwnsNode(m.Value)
			if !own && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, m.Name) }) {
				return fmt.Sprintf("the %s %s of its record %d is no key of the run %s: give --key-template or --key-range if the run had one, else the report was changed",
					foreign.Clip(m.Name, 60), foreign.Clip(p.s.Redactor.String(string(m.Value.Raw)), 80), i+1, foreign.Clip(p.owns.Run, 40))
			}
		}
	}
	return ""
}

// replayed are the headers of a report that are sent again. All others are those of
// the connection, which the caller gives, or could make another request of it.
var replayed = []string{"Accept", "Accept-Encoding", "Content-Type"}

// header takes the headers of a request over. why says that it is not sent.
func (p *permission) header(x conformance.Exchange) (h http.Header, why string) {
	h = http.Header{}
	for _, line := range x.Request.Header {
		name := http.CanonicalHeaderKey(line.Name)
		if !slices.Contains(replayed, name) {
			continue
		}
		if name == "Content-Type" {
			kind, rest, err := mime.ParseMediaType(line.Value)
			if charset := rest["charset"]; err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
				return nil, "its Content-Type is not that of JSON"
			}
		}
		h.Add(name, line.Value)
	}
	return h, ""
}

// oddBodies are the bodies outside the protocol that the checks send, as patterns.
var oddBodies = sync.OnceValue(func() []*regexp.Regexp {
	texts := append([]string{"this is no JSON"}, judge.DeadlyBodies...)
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	if err != nil { // its own tests would fail long before
		return nil
	}
	for _, c := range cat.Checks {
		for _, row := range c.Rows("each of the bodies:") {
			texts = append(texts, row[0])
		}
	}
	var out []*regexp.Regexp
	for _, text := range texts {
		if n, err := wire.Parse([]byte(text)); err == nil && n.Get("method").Is(wire.String) && n.Get("method").Text == rpc.MethodSyncBatch {
			continue // a call of sync_batch, and read as one
		}
		pattern := strings.NewReplacer(`\{id\}`, `[0-9a-f]{32}`, `\{uuid\}`, `[0-9a-f-]{36}`, `\{300\}`, `[0-9a-f]{300}`).Replace(regexp.QuoteMeta(text))
		out = append(out, regexp.MustCompile(`^`+pattern+`$`))
	}
	return out
})

func itemsOf(n *wire.Node) []*wire.Node {
	if n.Is(wire.Array) {
		return n.Items
	}
	return nil
}

func membersOf(n *wire.Node) []wire.Member {
	if n.Is(wire.Object) {
		return n.Members
	}
	return nil
}
