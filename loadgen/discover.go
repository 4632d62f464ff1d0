package loadgen

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// targetWords is what the target says of itself.
type targetWords struct {
	Objects map[string]records.Object
	Speed   rpc.Speed
	Limit   int64 // X-RateLimit-Limit, or the default of the service
	Stated  bool  // the header was there
}

const (
	// serviceLimit is the connection-wide limit of the service without the header
	// (spec 8).
	serviceLimit = 50_000
	// ServiceParallel is where the service caps maximum_parallel_batches.
	ServiceParallel = 50
)

// limitWatch reads X-RateLimit-Limit off the planning replies.
type limitWatch struct {
	http.RoundTripper
	Limit int64
}

func (w *limitWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	if err == nil {
		if n, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Limit"), 10, 64); err == nil && n > 0 {
			w.Limit = n
		}
	}
	return resp, err
}

// planningClient makes the client of the planning calls.
func planningClient(e *wire.Endpoint, token string, headers map[string]string) (*rpc.Client, *limitWatch, func()) {
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

// discover fetches the target's objects, their fields and its speed, in the
// order of the service. The error names the call, never the URL.
func discover(ctx context.Context, e *wire.Endpoint, token string, headers map[string]string, names []string) (*targetWords, error) {
	client, watch, done := planningClient(e, token, headers)
	defer done()
	all, err := client.ListObjects(ctx)
	if err != nil {
		return nil, explainPlanning(e, err)
	}
	d := &targetWords{Objects: map[string]records.Object{}}
	for _, name := range names {
		at := slices.IndexFunc(all, func(o rpc.Object) bool { return o.APIName == name })
		if at < 0 {
			known := make([]string, len(all))
			for i, o := range all {
				known[i] = o.APIName
			}
			return nil, wire.Usagef("the endpoint has no object %q; it has %s", name, strings.Join(known, ", "))
		}
		o := records.Object{Object: all[at]}
		if o.Fields, err = client.ListFields(ctx, o.Ref()); err != nil {
			return nil, explainPlanning(e, err)
		}
		if o.Operations, err = client.SupportedOperations(ctx, o.Ref()); err != nil {
			return nil, explainPlanning(e, err)
		}
		d.Objects[name] = o
	}
	if d.Speed, err = client.GetSyncSpeed(ctx); err != nil {
		return nil, explainPlanning(e, err)
	}
	s := d.Speed
	if s.MaximumBatchSize < 1 || s.MaximumParallelBatches < 1 || s.MaximumRecordsPerSecond < 1 {
		return nil, fmt.Errorf("call get_sync_speed: the three numbers must be 1 or more, not %d, %d and %d", s.MaximumBatchSize, s.MaximumParallelBatches, s.MaximumRecordsPerSecond)
	}
	if d.Limit, d.Stated = watch.Limit, watch.Limit > 0; !d.Stated {
		d.Limit = serviceLimit
	}
	return d, nil
}
