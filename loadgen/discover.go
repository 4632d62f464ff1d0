package loadgen

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/failure"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// declared is what the target says of itself.
type declared struct {
	objects map[string]records.Object
	speed   rpc.Speed
	limit   int64 // X-RateLimit-Limit, or the default of the service
	stated  bool  // the header was there
}

const (
	// serviceLimit is the connection-wide limit of the service without the header
	// (spec 8).
	serviceLimit = 50_000
	// serviceParallel is where the service caps maximum_parallel_batches.
	serviceParallel = 50
)

// limitWatch reads X-RateLimit-Limit off the planning replies.
type limitWatch struct {
	http.RoundTripper
	limit int64
}

func (w *limitWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	if err == nil {
		if n, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Limit"), 10, 64); err == nil && n > 0 {
			w.limit = n
		}
	}
	return resp, err
}

// planner makes the client of the planning calls.
func planner(e *wire.Endpoint, token string, headers map[string]string) (*rpc.Client, *limitWatch, func()) {
	transport, close := e.RoundTripper()
	watch := &limitWatch{RoundTripper: transport}
	h := http.Header{}
	for name, value := range headers {
		h.Set(name, value)
	}
	return &rpc.Client{URL: e.URL.String(), Token: token, Header: h, MaxReply: wire.MostPlanning, HTTP: &http.Client{
		Transport: watch, Timeout: e.Transport.PlanningTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, watch, close
}

// discover asks the target for its objects, their fields and its speed, in the
// order of the service. The error says what was asked, never the URL.
func discover(ctx context.Context, e *wire.Endpoint, t Target, names []string) (*declared, error) {
	client, watch, done := planner(e, t.Token, t.Headers)
	defer done()
	all, err := client.ListObjects(ctx)
	if err != nil {
		return nil, planningError(e, err)
	}
	d := &declared{objects: map[string]records.Object{}}
	for _, name := range names {
		at := slices.IndexFunc(all, func(o rpc.Object) bool { return o.APIName == name })
		if at < 0 {
			known := make([]string, len(all))
			for i, o := range all {
				known[i] = o.APIName
			}
			return nil, failure.Usagef("the endpoint has no object %q; it has %s", name, strings.Join(known, ", "))
		}
		o := records.Object{Object: all[at]}
		if o.Fields, err = client.ListFields(ctx, o.Ref()); err != nil {
			return nil, planningError(e, err)
		}
		if o.Operations, err = client.SupportedOperations(ctx, o.Ref()); err != nil {
			return nil, planningError(e, err)
		}
		d.objects[name] = o
	}
	if d.speed, err = client.GetSyncSpeed(ctx); err != nil {
		return nil, planningError(e, err)
	}
	s := d.speed
	if s.MaximumBatchSize < 1 || s.MaximumParallelBatches < 1 || s.MaximumRecordsPerSecond < 1 {
		return nil, fmt.Errorf("call get_sync_speed: the three numbers must be 1 or more, not %d, %d and %d", s.MaximumBatchSize, s.MaximumParallelBatches, s.MaximumRecordsPerSecond)
	}
	if d.limit, d.stated = watch.limit, watch.limit > 0; !d.stated {
		d.limit = serviceLimit
	}
	return d, nil
}
