package loads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/build"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen"
)

// otlpPush sends the figures of every interval to an OpenTelemetry collector, as
// OTLP over HTTP in its JSON form. It never holds up the load: while one push is
// under way, intervals are left out.
type otlpPush struct {
	url    string
	screen io.Writer
	client *http.Client
	begin  time.Time
	next   chan loadgen.Moment
	failed error // the first push that did not work
	ended  chan struct{}
}

func newOTLPPush(to *url.URL, screen io.Writer) *otlpPush {
	if to.Path = strings.TrimSuffix(to.Path, "/"); !strings.HasSuffix(to.Path, "/v1/metrics") {
		to = to.JoinPath("v1/metrics")
	}
	// A redirect is an answer of another place than the one that was named: the key
	// in the URL would go there, and a push that became a GET pass for one.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p := &otlpPush{
		url: to.String(), screen: screen, client: &http.Client{Timeout: 5 * time.Second, CheckRedirect: stay}, begin: time.Now(),
		next: make(chan loadgen.Moment, 1), ended: make(chan struct{}),
	}
	go p.run()
	return p
}

func (p *otlpPush) take(m loadgen.Moment) {
	if p == nil {
		return
	}
	select {
	case p.next <- m:
	default:
	}
}

func (p *otlpPush) stop() {
	if p == nil {
		return
	}
	close(p.next)
	<-p.ended
	if p.failed != nil {
		foreign.Printf(p.screen, "note: --otlp: %v\n", p.failed)
	}
}

func (p *otlpPush) run() {
	defer close(p.ended)
	for m := range p.next {
		if err := p.send(m, time.Now()); err != nil && p.failed == nil {
			p.failed = err
		}
	}
}

func (p *otlpPush) send(m loadgen.Moment, now time.Time) error {
	body, err := json.Marshal(otlpMetrics(m, p.begin, now))
	if err != nil {
		return fmt.Errorf("encode metrics: %w", err)
	}
	resp, err := p.client.Post(p.url, "application/json", bytes.NewReader(body))
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the URL may hold a key
		}
		return fmt.Errorf("push metrics: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("push metrics: HTTP status %d", resp.StatusCode)
	}
	return nil
}

// object is JSON that is written down in the shape of the wire.
type object = map[string]any

// otlpMetrics is one ExportMetricsServiceRequest.
func otlpMetrics(m loadgen.Moment, begin, now time.Time) object {
	nanos := func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
	text := func(key, value string) object {
		return object{"key": key, "value": object{"stringValue": value}}
	}
	point := func(v float64, more ...object) object {
		return object{"timeUnixNano": nanos(now), "asDouble": v, "attributes": append([]object{text("phase", m.Phase)}, more...)}
	}
	gauge := func(name, unit string, points ...object) object {
		return object{"name": name, "unit": unit, "gauge": object{"dataPoints": points}}
	}
	sum := func(name, unit string, v int64) object {
		return object{"name": name, "unit": unit, "sum": object{
			"aggregationTemporality": 2, "isMonotonic": true,
			"dataPoints": []object{{
				"startTimeUnixNano": nanos(begin), "timeUnixNano": nanos(now), "asInt": strconv.FormatInt(v, 10),
				"attributes": []object{text("phase", m.Phase)},
			}},
		}}
	}
	at := func(q string, ms float64) object { return point(ms/1000, text("quantile", q)) }
	l := m.Latest
	metrics := []object{
		sum("destkit.load.requests", "{request}", m.Requests),
		sum("destkit.load.records", "{record}", m.Records),
		sum("destkit.load.errors", "{error}", m.Errors),
		gauge("destkit.load.requests_per_second", "{request}/s", point(l.RequestsPerSecond)),
		gauge("destkit.load.records_per_second", "{record}/s", point(l.RecordsPerSecond)),
		gauge("destkit.load.in_flight", "{request}", point(float64(m.InFlight))),
		gauge("destkit.load.latency", "s", at("0.5", l.P50), at("0.95", l.P95), at("0.99", l.P99), at("1", l.Max)),
		gauge("destkit.load.service_time", "s", at("0.5", l.ServiceP50), at("0.99", l.ServiceP99)),
	}
	return object{"resourceMetrics": []object{{
		"resource":     object{"attributes": []object{text("service.name", "destkit-load"), text("service.version", build.Read().Version)}},
		"scopeMetrics": []object{{"scope": object{"name": "destkit/loadgen"}, "metrics": metrics}},
	}}}
}
