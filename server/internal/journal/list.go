package journal

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"

	"github.com/destkit/destkit/server/internal/controlapi"
)

// Filter selects the listed entries of a journal. Zero values do not restrict.
type Filter struct {
	OrganizationID int64
	WorkspaceID    int64 // of requests
	DestinationID  int64 // of calls, as are the next two
	SyncID         int64
	SyncRunID      int64
	Operation      string // of requests: an id of the OpenAPI document
	Method         string
	Path           string // of requests: a text that path and query hold
	Outcome        string // of calls
	Status         string // a status such as 404, a class such as 4xx, or 0: none
	Text           string // that the entry holds
	After          int64  // only entries with a higher number
	Limit          int64  // 1 to 10,000; 1,000 when zero
}

// query is the filter as the control API takes it.
func (f *Filter) query() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"operation": f.Operation, "method": f.Method, "path": f.Path, "outcome": f.Outcome, "status": f.Status, "text": f.Text,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, value := range map[string]int64{
		"organization": f.OrganizationID, "workspace": f.WorkspaceID, "destination": f.DestinationID, "sync": f.SyncID,
		"sync_run": f.SyncRunID, "after": f.After, "limit": f.Limit,
	} {
		if value != 0 {
			query.Set(name, strconv.FormatInt(value, 10))
		}
	}
	return query
}

// ListRequests gives requests of the API, oldest first.
func (j *Journal) ListRequests(f Filter) ([]controlapi.RequestEntry, error) {
	page, err := j.requests(f.query())
	return page.Entries, err
}

// ListCalls gives calls of destinations, oldest first.
func (j *Journal) ListCalls(ctx context.Context, f Filter) ([]CallEntry, error) {
	page, err := j.calls(ctx, f.query())
	return page.Entries, err
}

// requestIDs gives the ids of requests. They count, so that the same calls get the
// same ids.
type requestIDs struct{ last atomic.Int64 }

// Next is the number of the next request.
func (r *requestIDs) Next() int64 { return r.last.Add(1) }

// At is the last id, for a snapshot.
func (r *requestIDs) At() int64 { return r.last.Load() }

// Restore lets ids go on as they did in a snapshot.
func (r *requestIDs) Restore(last int64) { r.last.Store(last) }

// requestID has a fixed width, so that ids sort as they were given.
func requestID(number int64) string { return fmt.Sprintf("req_%012d", number) }
