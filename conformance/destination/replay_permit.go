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
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// permission decides which requests of a report may be sent again. The body alone decides, not the
// labels next to it in the file, and only what this program itself sends is sent.
type permission struct {
	s       *session
	report  *conformance.Report
	write   bool
	objects []string // those of the caller; else those of the report
	owns    *discover.Ownership
	records int // written so far

	catalog *write.Catalog // of the target, once it was requested
}

// read adds what the body of a request, secrets included, would do; why holds why it is not sent.
func (p *permission) read(ctx context.Context, req *line.Request) (why string) {
	n, err := wire.Parse(req.Body)
	twice := ""
	if err == nil {
		twice = ambiguous(n)
	}
	method := n.Get("method")
	switch {
	case err == nil && twice == "" && n.Is(wire.Object) && method.Is(wire.String):
		if method.Text == rpc.MethodSyncBatch {
			req.Method = method.Text
			return p.batch(ctx, req, n)
		}
		if slices.Contains(judge.UnknownMethods, method.Text) || slices.Contains(rpc.Methods(), method.Text) {
			req.Method = method.Text
			return ""
		}
	case len(req.Body) == 0 && req.HTTPMethod == http.MethodGet: // the call was in the query
		return ""
	}
	switch {
	case slices.ContainsFunc(oddBodies(), func(known *regexp.Regexp) bool { return known.Match(req.Body) }):
		return ""
	case twice != "":
		return "the member " + twice + " occurs twice in its body, so that two readers may take it for two calls"
	}
	return "its body is none that this program sends"
}

// ambiguous names a member that occurs twice in its object, ignoring case, "" without one.
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
func (p *permission) batch(ctx context.Context, req *line.Request, n *wire.Node) (why string) {
	params := n.Get("params")
	var records []*wire.Node
	if list := params.Get("records"); list.Is(wire.Array) {
		records = list.Items
	}
	req.Records = len(records)
	switch {
	case req.HTTPMethod != http.MethodPost:
		return fmt.Sprintf("it writes records, and its HTTP method is %s", foreign.Clip(req.HTTPMethod, 20))
	case !p.write:
		return "it calls sync_batch, which writes records: add --write to send it"
	case !has(n, "jsonrpc", "method", "params", "id") || !has(params, "sync_plan", "records"):
		return "it calls sync_batch with a member that this program does not send"
	case params.Get("sync_plan").Is(wire.Object):
		if why := p.plan(ctx, params.Get("sync_plan"), records); why != "" {
			return why
		}
	case len(records) > 0:
		return "it writes records without a plan, so that their keys cannot be told"
	}
	if p.records+len(records) > p.s.Opts.MaxRecords {
		return fmt.Sprintf("with its %s more than %d would be written", quantity.Count(len(records), "record"), p.s.Opts.MaxRecords)
	}
	p.records += len(records)
	return ""
}

// has reports whether an object has no other members than these; no object has none.
func has(n *wire.Node, names ...string) bool {
	if n == nil {
		return true
	}
	return !slices.ContainsFunc(n.Members, func(m wire.Member) bool { return !slices.Contains(names, m.Name) })
}

// plan returns why the records of a plan may not be written, "" when they may.
func (p *permission) plan(ctx context.Context, plan *wire.Node, records []*wire.Node) string {
	operation, name := plan.Get("operation"), plan.Get("object", "object_api_name")
	switch {
	case !has(plan, "object", "operation", "sync_run_id", "sync_id", "schema") || !has(plan.Get("object"), "object_api_name", "label"):
		return "its plan has a member that this program does not send"
	case !operation.Is(wire.String) || !slices.Contains([]string{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationDelete}, operation.Text):
		return "the operation of its plan is none that this program sends"
	case len(records) == 0:
		return ""
	case !name.Is(wire.String):
		return "its plan names no object"
	case !slices.Contains(p.objects, name.Text):
		return fmt.Sprintf("it writes into %q, which is none of the objects of the run: name it with --object", foreign.Clip(name.Text, 60))
	}
	if p.owns == nil {
		checks := lists.Of(slices.Concat(p.report.Checks, p.report.Own), func(c conformance.CheckResult) string { return c.ID })
		var err error
		if p.owns, err = discover.NewOwnership(p.report.RunID, p.s.Opts, checks); err != nil {
			return err.Error()
		}
	}
	// The target defines its identifiers, not the report.
	if p.catalog == nil {
		c, err := p.s.Discover(ctx)
		if err != nil {
			return "the endpoint could not be asked for its objects: " + err.Error()
		}
		p.catalog = c
	}
	o := p.catalog.Object(name.Text)
	if o == nil || len(o.Fields) == 0 {
		return fmt.Sprintf("the endpoint does not list the fields of %q, so that its identifiers cannot be told", foreign.Clip(name.Text, 60))
	}
	return p.keys(o, plan.Get("schema"), records)
}

// keys names the record with an identifier, of the plan or the endpoint, that the run did not make.
func (p *permission) keys(o *write.Object, schema *wire.Node, records []*wire.Node) string {
	names := lists.Of(o.Identifiers(), func(f rpc.Field) string { return f.APIName })
	if schema.Is(wire.Object) {
		for _, m := range schema.Members {
			active, _ := m.Value.Get("active_identifier").Bool()
			identifier, _ := m.Value.Get("field", "identifier").Bool()
			if active || identifier {
				names = append(names, m.Name)
			}
		}
	}
	for i, r := range records {
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

// replayed are the headers that are sent again; all others are those of the connection.
var replayed = []string{"Accept", "Accept-Encoding", "Content-Type"}

// header copies the headers of a request. why is the reason not to send it.
func (p *permission) header(x conformance.Exchange) (h http.Header, why string) {
	h = http.Header{}
	for _, sent := range x.Request.Header {
		name := http.CanonicalHeaderKey(sent.Name)
		if !slices.Contains(replayed, name) {
			continue
		}
		if name == "Content-Type" {
			kind, rest, err := mime.ParseMediaType(sent.Value)
			if charset := rest["charset"]; err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
				return nil, "its Content-Type is not that of JSON"
			}
		}
		h.Add(name, sent.Value)
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
