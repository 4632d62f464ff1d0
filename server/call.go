package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// call is one request on its way through the service.
type call struct {
	s        *Server
	ctx      context.Context
	r        *http.Request
	op       *operation
	who      principal
	began    time.Time
	body     []byte
	sent     []byte // as it came, where body was put right
	unread   error  // why there is no body
	present  map[string]json.RawMessage
	warnings []string
}

// The clamps of spec 8.
const (
	defaultPerPage = 25
	maxPerPage     = 100
)

// id is an integer of the path; the document's check came before.
func (c *call) id(name string) int64 {
	n, err := strconv.ParseInt(c.r.PathValue(name), 10, 64)
	if err != nil {
		return 0 // no row has it
	}
	return n
}

// arrived is the body as the client has sent it.
func (c *call) arrived() []byte {
	if c.sent != nil {
		return c.sent
	}
	return c.body
}

// flag reads a boolean of the query; the document's check came before.
func (c *call) flag(name string) bool {
	value, _ := openapi.ParseBoolean(c.r.URL.Query().Get(name))
	return value
}

// page reads page, per_page and order (spec 8): 0 is page 1, per_page above 100
// is 100, newest first unless asked.
func (c *call) page() store.Page {
	query := c.r.URL.Query()
	number := func(name string, missing int64) int64 {
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil || n < 1 {
			return missing
		}
		return n
	}
	return store.Page{
		Number:    number("page", 1),
		PerPage:   min(number("per_page", defaultPerPage), maxPerPage),
		Ascending: query.Get("order") == "asc",
	}
}

// decode fills v from the body. The document's check came before, so an error
// is a number too large for its field or the like.
func (c *call) decode(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	body := c.body
	if len(c.warnings) > 0 { // some of its fields are unknown
		body = strictjson.ExactKeys(body, reflect.TypeOf(v))
	}
	if err := json.Unmarshal(body, v); err != nil {
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) {
			return problem.InvalidField(typed.Field, "does not fit: %s", typed.Value)
		}
		return problem.InvalidField("", "the body cannot be read: %v", err)
	}
	return nil
}

// has reports whether the body holds a key at its top level.
func (c *call) has(key string) bool {
	if c.present == nil {
		c.present = map[string]json.RawMessage{}
		_ = json.Unmarshal(c.body, &c.present) // a body that is no object has no keys
	}
	_, ok := c.present[key]
	return ok
}

// keys are the keys of the body's top level, as a set.
func (c *call) keys() map[string]bool {
	c.has("")
	keys := make(map[string]bool, len(c.present))
	for key := range c.present {
		keys[key] = true
	}
	return keys
}

// view runs fn on one consistent state of the store.
func (c *call) view(fn func(*store.Tx) error) error { return c.s.store.View(c.ctx, fn) }

// update stores all of what fn does or, on an error, nothing.
func (c *call) update(fn func(*store.Tx) error) error {
	if before := c.s.config.before; before != nil {
		before()
	}
	return c.s.store.Update(c.ctx, fn)
}

// The envelopes of spec 2.1 by what was done: ok is for reading, and for what
// the specification gives no word of its own.
func ok(data any) (*reply, error) {
	return &reply{code: http.StatusOK, body: api.Reply{Status: api.StatusSuccess, Data: data}}, nil
}

func created(data any) (*reply, error) {
	return &reply{code: http.StatusCreated, body: api.Reply{Status: api.StatusCreated, Data: data}}, nil
}

func updated(data any) (*reply, error) {
	return &reply{code: http.StatusOK, body: api.Reply{Status: api.StatusUpdated, Data: data}}, nil
}

func deleted() (*reply, error) {
	return &reply{code: http.StatusOK, body: api.Reply{Status: api.StatusDeleted}}, nil
}

// list answers one page (spec 2.1). data must be a slice that is not nil.
func (c *call) list(page store.Page, total int64, data any) (*reply, error) {
	envelope := api.List{Status: api.StatusSuccess, Pagination: paginate(page, total), Data: data}
	// spec 2.1 shows next for users only.
	if c.op.ID != "listUsers" && !c.s.dialect.NextInEveryList {
		return &reply{code: http.StatusOK, body: envelope}, nil
	}
	return &reply{code: http.StatusOK, body: struct {
		api.List
		Next *string `json:"next"`
	}{envelope, c.next(page, envelope.Pagination)}}, nil
}

// paginate computes the envelope's numbers: a page past the end is echoed and
// has no next one; an empty list has last page 0.
func paginate(page store.Page, total int64) api.Pagination {
	p := api.Pagination{TotalRecords: total, PerPage: page.PerPage, Page: page.Number}
	p.LastPage = (total + page.PerPage - 1) / page.PerPage
	if page.Number > 1 && page.Number <= p.LastPage {
		p.PrevPage = api.Ptr(page.Number - 1)
	}
	if page.Number < p.LastPage {
		p.NextPage = api.Ptr(page.Number + 1)
	}
	return p
}

// next is the legacy URL of the next page, or nil (spec 2.1).
func (c *call) next(page store.Page, p api.Pagination) *string {
	if p.NextPage == nil {
		return nil
	}
	// What chooses the rows, such as the names of a table, chooses those of the next
	// page too.
	query := c.r.URL.Query()
	maps.DeleteFunc(query, func(name string, _ []string) bool { return !c.op.TakesQuery(name) })
	query.Set("page", fmt.Sprint(*p.NextPage))
	query.Set("per_page", fmt.Sprint(page.PerPage))
	if query.Get("order") != "asc" {
		query.Del("order")
	}
	base := c.base()
	// Only the path below the base: a service behind a proxy has another one.
	address := base + c.r.URL.EscapedPath()[len(BasePath):] + "?" + query.Encode()
	return &address
}

// base is the address of the API as clients have it. A service behind a proxy is
// told its address; elsewhere it is the one that the client has used.
func (c *call) base() string {
	if c.s.config.BaseURL != "" {
		return c.s.config.BaseURL
	}
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + c.r.Host + BasePath
}

// site is the address of the service, below which its pages are.
func (c *call) site() string { return strings.TrimSuffix(strings.TrimSuffix(c.base(), "/"), BasePath) }
