package restload

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// envelope is every reply (spec 2.1).
type envelope struct {
	Status, Pagination, Data json.RawMessage
}

// pagination is the position in a list, as it travels.
type pagination struct {
	Total   *int64          `json:"total_records"`
	PerPage *int64          `json:"per_page"`
	Prev    json.RawMessage `json:"prev_page"`
	Page    *int64
	Next    json.RawMessage `json:"next_page"`
	Last    *int64          `json:"last_page"`
}

// Item holds the fields read of a sync, a run or any item of a list.
type Item struct {
	ID, sync int64 // sync: -1 without one
	status   string
	canceled bool
	message  string
}

// ListPage is a page of a list; prev and next are 0 for null.
type ListPage struct {
	Items                   []Item
	total, page, Next, last int64
}

// CheckStatus looks at the status of a reply. Every call here succeeds with 200.
func CheckStatus(rep wire.Reply) error {
	switch {
	case rep.Status == http.StatusOK:
		return nil
	case rep.Throttled(false):
		return wire.Newf(wire.KindThrottled, "%s", rep.ThrottleText())
	}
	var says struct{ Message string }
	if json.Unmarshal(rep.Body, &says) == nil && says.Message != "" {
		return wire.Newf(wire.KindStatus, "HTTP status %d: %s", rep.Status, foreign.Clip(says.Message, 2*wire.LongestMessage))
	}
	return wire.Newf(wire.KindStatus, "%s", wire.StatusText(rep.Status, rep.Body))
}

// open reads the envelope of a reply.
func open(body []byte) (e envelope, err error) {
	if !json.Valid(body) {
		return e, wire.Newf(wire.KindJSON, "the body is no JSON")
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, wire.Newf(wire.KindEnvelope, "the reply is not an object")
	}
	if string(e.Status) != `"success"` {
		return e, wire.Newf(wire.KindEnvelope, `the status of the reply is not "success"`)
	}
	if len(e.Data) == 0 || string(e.Data) == "null" {
		return e, wire.Newf(wire.KindEnvelope, "the reply has no data")
	}
	return e, nil
}

// decodeItem reads one item.
func decodeItem(data json.RawMessage) (Item, error) {
	var v struct {
		ID       *int64
		SyncID   *int64 `json:"sync_id"`
		Status   json.RawMessage
		Canceled bool
		Message  *string `json:"error_message"`
	}
	if err := json.Unmarshal(data, &v); err != nil || v.ID == nil {
		return Item{}, wire.Newf(wire.KindItem, "an item is no object with an id that is an integer")
	}
	item := Item{ID: *v.ID, sync: -1, canceled: v.Canceled}
	if v.SyncID != nil {
		item.sync = *v.SyncID
	}
	if v.Message != nil {
		item.message = *v.Message
	}
	_ = json.Unmarshal(v.Status, &item.status) // not every item has one that is a word
	item.status = strings.ToLower(item.status) // dialects differ in capitals
	return item, nil
}

// DecodePage reads a page of a list and checks that its numbers fit each other and the
// request.
func DecodePage(body []byte, page int64, perPage int) (*ListPage, error) {
	e, err := open(body)
	if err != nil {
		return nil, err
	}
	var data []json.RawMessage
	if json.Unmarshal(e.Data, &data) != nil {
		return nil, wire.Newf(wire.KindEnvelope, "the data of a list is no array")
	}
	var p pagination
	if json.Unmarshal(e.Pagination, &p) != nil || p.Total == nil || p.PerPage == nil || p.Page == nil || p.Last == nil {
		return nil, wire.Newf(wire.KindPagination, "pagination does not have total_records, per_page, page and last_page as integers")
	}
	list := &ListPage{total: *p.Total, page: *p.Page, last: *p.Last}
	prev, okPrev := pageNumber(p.Prev)
	next, okNext := pageNumber(p.Next)
	list.Next = next
	per, last := int64(perPage), (list.total+int64(perPage)-1)/int64(perPage)
	switch {
	case !okPrev || !okNext:
		return nil, wire.Newf(wire.KindPagination, "prev_page and next_page are not both a page or null")
	case *p.PerPage != per || list.page != page:
		return nil, wire.Newf(wire.KindPagination, "the reply has another page or per_page than was asked for")
	case list.total < 0 || list.last != last:
		return nil, wire.Newf(wire.KindPagination, "last_page is not total_records divided by per_page, rounded up")
	case next != 0 && next != page+1 || (next != 0) != (page < last):
		return nil, wire.Newf(wire.KindPagination, "next_page is neither the page that follows nor, on the last one, null")
	case prev != 0 && prev != page-1 || (prev != 0) != (page > 1):
		return nil, wire.Newf(wire.KindPagination, "prev_page is neither the page before nor, on the first one, null")
	case int64(len(data)) > per:
		return nil, wire.Newf(wire.KindPagination, "a page has more items than per_page")
	}
	if want := min(per, max(list.total-(page-1)*per, 0)); int64(len(data)) < want {
		return nil, wire.Newf(wire.KindItemMissing, "a page has fewer items than total_records and per_page leave for it")
	} else if int64(len(data)) > want {
		return nil, wire.Newf(wire.KindPagination, "a page has more items than total_records leaves for it")
	}
	for _, text := range data {
		item, err := decodeItem(text)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

// pageNumber reads a page or null, which is 0; a member that is not there is wrong.
func pageNumber(text json.RawMessage) (n int64, ok bool) {
	if string(text) == "null" {
		return 0, true
	}
	return n, json.Unmarshal(text, &n) == nil && n > 0
}

// walk is the way through a list, page by page.
type walk struct {
	seen   map[int64]bool
	total  int64
	shrunk bool // something was deleted meanwhile: what is missing is unknown
}

// add takes a page and checks the whole list behind the last one.
func (w *walk) add(p *ListPage) error {
	w.shrunk = w.shrunk || p.total < w.total
	w.total = p.total
	for _, item := range p.Items {
		if w.seen[item.ID] {
			return wire.Newf(wire.KindItemRepeated, "an item stands in a list twice")
		}
		w.seen[item.ID] = true
	}
	if n := int64(len(w.seen)); p.Next == 0 && n < w.total && !w.shrunk {
		return wire.Newf(wire.KindItemMissing, "a list has ended with fewer items than its total_records")
	}
	return nil
}

// CheckSync checks the reply to GET /syncs/{id}.
func CheckSync(body []byte, id int64) error {
	e, err := open(body)
	if err != nil {
		return err
	}
	item, err := decodeItem(e.Data)
	switch {
	case err != nil:
		return err
	case item.ID != id:
		return wire.Newf(wire.KindItem, "the reply is about another sync than was asked for")
	}
	switch item.status {
	case "ready", "up to date", "failing":
		return nil
	}
	return wire.Newf(wire.KindItem, "the status of a sync is none of ready, up to date and failing")
}

// decodeRun reads the reply to GET /sync_runs/{id}.
func decodeRun(body []byte, id, sync int64) (Item, error) {
	e, err := open(body)
	if err != nil {
		return Item{}, err
	}
	run, err := decodeItem(e.Data)
	if err == nil {
		err = run.check(id, sync)
	}
	return run, err
}

// check looks whether a run is the requested one, -1: any, and in a state that the
// service documents.
func (r Item) check(id, sync int64) error {
	switch {
	case id >= 0 && r.ID != id:
		return wire.Newf(wire.KindItem, "the reply is about another run than was asked for")
	case r.sync != sync:
		return wire.Newf(wire.KindItem, "a run is shown for a sync that it is not of")
	case !r.over() && r.status != "queued" && r.status != "working":
		return wire.Newf(wire.KindRunState, "the status of a run is none of queued, working, completed, failed and skipped")
	}
	return nil
}

// over reports whether nothing more happens to a run. Clients were seen to meet a status
// for cancelled ones.
func (r Item) over() bool {
	switch r.status {
	case "completed", "failed", "skipped", "cancelled", "canceled":
		return true
	}
	return false
}

// decodeTriggered reads the reply to POST /syncs/{id}/trigger.
func decodeTriggered(body []byte) (int64, error) {
	e, err := open(body)
	if err != nil {
		return 0, err
	}
	var data struct {
		Run *int64 `json:"sync_run_id"`
	}
	if json.Unmarshal(e.Data, &data) != nil || data.Run == nil {
		return 0, wire.Newf(wire.KindItem, "the reply to a trigger has no sync_run_id that is an integer")
	}
	return *data.Run, nil
}
