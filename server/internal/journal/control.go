package journal

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/problem"
)

// journalRoutes read, filter and empty the journals.
func (j *Journal) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/journal/requests", "?id=&organization=&workspace=&operation=&method=&path=&status=&fault=&text=&after=&limit= lists requests of the API, oldest first; ?newest=true&before= newest first", j.controlRequests),
		call.Route("DELETE", "/journal/requests", "forgets them", forget(&j.Requests)),
		call.Route("GET", "/journal/calls", "?id=&organization=&destination=&sync=&sync_run=&method=&outcome=&status=&text=&after=&limit= lists calls of destinations, oldest first; ?newest=true&before= newest first", j.controlCalls),
		call.Route("DELETE", "/journal/calls", "forgets them", forget(&j.Calls)),
		call.Route("GET", "/journal/webhooks", "?organization=&workspace=&webhook=&sync=&sync_run=&event=&status=&after=&limit= lists calls of webhooks, each attempt, oldest first; ?newest=true&before= newest first", j.controlWebhookCalls),
		call.Route("DELETE", "/journal/webhooks", "forgets them", forget(&j.webhooks)),
		call.Route("POST", "/journal", "bodies: whether the bodies of requests and replies are kept (they are by default)", j.controlJournal),
	}
}

// forget empties one journal.
func forget[T any](b *book[T]) func(*call.Control) (any, error) {
	return func(*call.Control) (any, error) {
		b.clear()
		return call.Done, nil
	}
}

// journalPage is what the journals answer. Next is the value for after that
// gives the following page, null at the end.
type journalPage[T any] struct {
	Entries []T    `json:"entries"`
	Total   int64  `json:"total"`   // since the start or the last deletion
	Dropped int64  `json:"dropped"` // of these, forgotten for want of room
	Next    *int64 `json:"next"`
}

// statusFilter takes 404 or 4xx; 0 is a dropped connection.
func statusFilter(text string) (func(int) bool, error) {
	if text == "" {
		return func(int) bool { return true }, nil
	}
	if class, ok := strings.CutSuffix(text, "xx"); ok && len(class) == 1 && class >= "1" && class <= "5" {
		return func(status int) bool { return status/100 == int(class[0]-'0') }, nil
	}
	wanted, err := strconv.Atoi(text)
	if err != nil || wanted != 0 && (wanted < 100 || wanted > 599) {
		return nil, problem.InvalidField("status", "must be a status such as 404, a class such as 4xx, or 0")
	}
	return func(status int) bool { return status == wanted }, nil
}

// journalFilter reads what all journals have in common.
type journalFilter struct {
	organization, limit, after, before int64
	newest                             bool
	status                             func(int) bool
	text                               foreign.Search
}

// common are the parameters that journalFilter reads, besides after.
var common = []string{"organization", "status", "after", "limit", "newest", "before"}

// filter refuses values that no entry can have: they would find nothing, and a
// test would take that for an answer.
func (j *Journal) filter(query url.Values) (f journalFilter, err error) {
	if f.organization, err = call.Integer(query, "organization", 0, 1, 1<<62); err != nil {
		return f, err
	}
	if f.limit, err = call.Integer(query, "limit", 1000, 1, mostOnPage); err != nil {
		return f, err
	}
	if f.before, err = call.Integer(query, "before", 0, 1, 1<<62); err != nil {
		return f, err
	}
	switch newest := query.Get("newest"); newest {
	case "true":
		f.newest = true
	case "", "false":
		if f.before > 0 {
			return f, problem.InvalidField("before", "goes with newest=true; after is for the other direction")
		}
	default:
		return f, problem.InvalidField("newest", "must be true or false")
	}
	if f.newest && query.Get("after") != "" {
		return f, problem.InvalidField("after", "goes from the oldest on; with newest=true use before")
	}
	f.text = foreign.NewSearch(query.Get("text"))
	f.status, err = statusFilter(query.Get("status"))
	return f, err
}

// read gives one page of a journal, in the direction that the filter wants.
func read[T any](b *book[T], f *journalFilter, pass func(*T) bool) journalPage[T] {
	if f.newest {
		return b.pageBack(f.before, f.limit, pass)
	}
	return b.page(f.after, f.limit, pass)
}

// controlRequests lists requests of the API.
func (j *Journal) controlRequests(c *call.Control) (any, error) {
	query, err := c.Query(append([]string{"id", "workspace", "operation", "method", "path", "fault", "text"}, common...)...)
	if err != nil {
		return nil, err
	}
	return j.requests(query)
}

// requests returns one page of the requests that match a query.
func (j *Journal) requests(query url.Values) (none journalPage[controlapi.RequestEntry], err error) {
	f, err := j.filter(query)
	if err != nil {
		return none, err
	}
	workspace, err := call.Integer(query, "workspace", 0, 1, 1<<62)
	if err != nil {
		return none, err
	}
	// Clients know the id of a reply and not its number here, so both go on from
	// the request.
	if id := query.Get("after"); strings.HasPrefix(id, "req_") {
		if f.after, err = j.requestAt(id); err != nil {
			return none, err
		}
	} else if f.after, err = call.Integer(query, "after", 0, 0, 1<<62); err != nil {
		return none, err
	}
	id, operation, method, fault := query.Get("id"), query.Get("operation"), query.Get("method"), query.Get("fault")
	path, text := foreign.NewSearch(query.Get("path")), &f.text
	return read(&j.Requests, &f, func(e *controlapi.RequestEntry) bool {
		return is(id, e.ID) && is(f.organization, e.OrganizationID) && is(workspace, e.WorkspaceID) && f.status(e.Status) &&
			is(operation, e.Operation) && is(method, e.Method) && (fault == "" || slices.Contains(e.Faults, fault)) &&
			(path.Empty() || path.In(e.Path+"?"+e.Query)) &&
			(text.InBytes(e.Response) || text.InBytes(e.Request) || text.In(e.Path) || text.In(e.Query) || text.In(e.Operation) || text.In(e.ID))
	}), nil
}

// requestAt is the number of the request with an id.
func (j *Journal) requestAt(id string) (int64, error) {
	entry := j.Requests.Find(id)
	if entry == nil {
		return 0, problem.InvalidField("after", "the journal has no request %s", foreign.Clip(id, 40))
	}
	return entry.Number, nil
}

// is reports whether a filter is not given or names the value of an entry.
func is[V comparable](wanted, value V) bool {
	var none V
	return wanted == none || wanted == value
}

// Fits reports whether a filter is not given or names one of the values.
func Fits(query url.Values, name string, values ...string) bool {
	wanted := query.Get(name)
	return wanted == "" || slices.Contains(values, wanted)
}

// controlCalls lists calls of destinations.
func (j *Journal) controlCalls(c *call.Control) (any, error) {
	query, err := c.Query(append([]string{"id", "destination", "sync", "sync_run", "method", "outcome", "text"}, common...)...)
	if err != nil {
		return nil, err
	}
	return j.calls(c.R.Context(), query)
}

// calls returns one page of the calls of destinations that match a query.
func (j *Journal) calls(ctx context.Context, query url.Values) (none journalPage[CallEntry], err error) {
	f, err := j.filter(query)
	if err != nil {
		return none, err
	}
	if f.after, err = call.Integer(query, "after", 0, 0, 1<<62); err != nil {
		return none, err
	}
	var destination, sync, run int64
	for name, into := range map[string]*int64{"destination": &destination, "sync": &sync, "sync_run": &run} {
		if *into, err = call.Integer(query, name, 0, 1, 1<<62); err != nil {
			return none, err
		}
	}
	// An exchange knows its destination only. Calls of one that was deleted since
	// belong to no organization any more.
	var owned map[int64]bool
	if f.organization != 0 {
		if owned, err = j.owned(ctx, f.organization); err != nil {
			return none, err
		}
	}
	id, method, outcome, text := query.Get("id"), query.Get("method"), query.Get("outcome"), &f.text
	return read(&j.Calls, &f, func(e *CallEntry) bool {
		return (is(id, e.ID) || id == e.RequestID) && (owned == nil || owned[e.Destination]) && is(destination, e.Destination) && is(sync, e.SyncID) && is(run, e.SyncRunID) &&
			f.status(e.Status) && is(method, e.Method) && is(outcome, e.Outcome) &&
			(text.In(e.Method) || text.In(e.Endpoint) || text.In(e.RequestID) || text.In(e.Error) || text.In(e.Type) ||
				text.InBytes(e.Request) || text.InBytes(e.Response) || e.Mentions(text))
	}), nil
}

// show takes the secrets out of the bodies when they leave the memory: that is
// seldom, and calls are many.
func (e *CallEntry) show() { e.Request, e.Response = e.Bodies() }

// controlJournal switches bodies, for measurements and for very large replies.
func (j *Journal) controlJournal(c *call.Control) (any, error) {
	var body struct {
		Bodies *bool `json:"bodies"`
	}
	if err := c.Body(&body); err != nil {
		return nil, err
	}
	if body.Bodies != nil {
		j.bodies.Store(*body.Bodies)
	}
	return map[string]any{"bodies": j.bodies.Load(), "entries": mostEntries, "bytes": journalBytes}, nil
}
