package call

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// Reply is what a handler answers. Raw, when set, is the finished body, and
// release gives its memory back once it was written and kept.
type Reply struct {
	Code       int
	Body       any
	Raw        []byte
	Release    func()
	Deprecated bool
}

// The envelopes of spec 2.1 by operation: ok is for reading, and where the
// specification names no word.
func OK(data any) (*Reply, error) {
	return &Reply{Code: http.StatusOK, Body: api.Reply{Status: api.StatusSuccess, Data: data}}, nil
}

func Created(data any) (*Reply, error) {
	return &Reply{Code: http.StatusCreated, Body: api.Reply{Status: api.StatusCreated, Data: data}}, nil
}

func Updated(data any) (*Reply, error) {
	return &Reply{Code: http.StatusOK, Body: api.Reply{Status: api.StatusUpdated, Data: data}}, nil
}

func Deleted() (*Reply, error) {
	return &Reply{Code: http.StatusOK, Body: api.Reply{Status: api.StatusDeleted}}, nil
}

// List answers one page (spec 2.1). data must be a slice that is not nil.
func (c *Call) List(page store.Page, total int64, data any) (*Reply, error) {
	envelope := api.List{Status: api.StatusSuccess, Pagination: Paginate(page, total), Data: data}
	// spec 2.1 shows next for users only.
	if c.Op.ID != "listUsers" && !c.Shared.Dialect.NextInEveryList {
		return &Reply{Code: http.StatusOK, Body: envelope}, nil
	}
	return &Reply{Code: http.StatusOK, Body: struct {
		api.List
		Next *string `json:"next"`
	}{envelope, c.Next(page, envelope.Pagination)}}, nil
}

// Paginate computes the envelope's numbers: a page past the end is echoed and
// has no next one; an empty list has last page 0.
func Paginate(page store.Page, total int64) api.Pagination {
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

// Next is the legacy URL of the next page, or nil (spec 2.1).
func (c *Call) Next(page store.Page, p api.Pagination) *string {
	if p.NextPage == nil {
		return nil
	}
	// Parameters that choose the rows, such as the names of a table, choose those of
	// the next page too.
	query := c.R.URL.Query()
	maps.DeleteFunc(query, func(name string, _ []string) bool { return !c.Op.TakesQuery(name) })
	query.Set("page", fmt.Sprint(*p.NextPage))
	query.Set("per_page", fmt.Sprint(page.PerPage))
	if query.Get("order") != "asc" {
		query.Del("order")
	}
	base := c.base()
	// Only the path below the base: a service behind a proxy has another one.
	address := base + c.R.URL.EscapedPath()[len(api.BasePath):] + "?" + query.Encode()
	return &address
}

// base is the address of the API as clients have it. A service behind a proxy is
// configured with it; elsewhere it is the one that the client used.
func (c *Call) base() string {
	if c.Shared.BaseURL != "" {
		return c.Shared.BaseURL
	}
	scheme := "http"
	if c.R.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + c.R.Host + api.BasePath
}

// Site is the address of the service, below which its pages are.
func (c *Call) Site() string {
	return strings.TrimSuffix(strings.TrimSuffix(c.base(), "/"), api.BasePath)
}
