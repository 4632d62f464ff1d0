package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/openapi"
)

// entry is one of GET /_control/journal.
type entry struct {
	Seq        int64     `json:"seq"`
	Received   time.Time `json:"received"`
	DurationMS float64   `json:"duration_ms"`
	Verb       string    `json:"verb"`
	Method     string    `json:"method"`
	Object     string    `json:"object"`
	Operation  string    `json:"operation"`
	SyncID     int64     `json:"sync_id"`
	SyncRunID  int64     `json:"sync_run_id"`
	Records    int       `json:"records"`
	Succeeded  int       `json:"succeeded"`
	Failed     int       `json:"failed"`
	Status     int       `json:"status"`
	ErrorCode  int64     `json:"error_code"`
	BytesIn    int64     `json:"bytes_in"`
	BytesOut   int64     `json:"bytes_out"`
	Denied     bool      `json:"denied"`
	Faults     []string  `json:"faults"`
}

func (e *entry) exchange() console.Exchange {
	x := console.Exchange{
		Link: fmt.Sprintf("/requests/%d", e.Seq),
		ID:   fmt.Sprint(e.Seq), At: e.Received, Method: e.Method, Target: e.Object, Status: e.Status, DurationMS: e.DurationMS, Sent: e.BytesIn, Received: e.BytesOut,
	}
	if x.Method == "" {
		x.Method = e.Verb
	}
	if e.Records > 0 {
		x.Target = fmt.Sprintf("%s: %s of %d, %d succeeded, %d failed", e.Object, e.Operation, e.Records, e.Succeeded, e.Failed)
		x.Tags = append(x.Tags, fmt.Sprintf("sync %d", e.SyncID), fmt.Sprintf("run %d", e.SyncRunID))
	}
	if e.ErrorCode != 0 {
		x.Outcome = fmt.Sprintf("error %d", e.ErrorCode)
	}
	if e.Denied {
		x.Tags = append(x.Tags, "denied")
	}
	x.Tags = append(x.Tags, e.Faults...)
	return x
}

func (s *site) requests(r *console.Request) (any, error) {
	query := url.Values{"newest": {"true"}, "limit": {"50"}}
	for _, name := range []string{"method", "object", "operation", "status", "fault", "sync", "before"} {
		if value := r.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	got, err := get[struct {
		Entries []entry `json:"entries"`
		Total   int64   `json:"total"`
		Dropped int64   `json:"dropped"`
		Next    *int64  `json:"next"`
		Bodies  bool    `json:"bodies"`
	}](r.Context(), s, "/journal", query)
	if err != nil {
		return nil, err
	}
	l := console.Exchanges{Total: got.Total, Dropped: got.Dropped, Newest: r.Query("before") == "", Empty: "No call fits. What a service or a judge sends shows here as it comes."}
	for i := range got.Entries {
		l.Items = append(l.Items, got.Entries[i].exchange())
	}
	if got.Next != nil {
		l.Older = *got.Next
	}
	return struct {
		Methods   []string
		Exchanges console.Exchanges
		Bodies    bool
	}{[]string{"test_connection", "list_objects", "list_fields", "supported_operations", "get_sync_speed", "sync_batch"}, l, got.Bodies}, nil
}

// keepBodies switches whether the bodies of calls are kept.
func (s *site) keepBodies(r *console.Request) (string, error) {
	keep := r.Form("keep") == "on"
	note := "No bodies are kept any more; those that were are forgotten."
	if keep {
		note = "The bodies of calls are kept from now on."
	}
	return s.does(r, http.MethodPost, "/journal", map[string]any{"bodies": keep}, note, "/requests")
}

// request is one call in full.
func (s *site) request(r *console.Request) (any, error) {
	got, err := get[struct {
		Entry    entry           `json:"entry"`
		Bodies   string          `json:"bodies"`
		Request  json.RawMessage `json:"request"`
		Response json.RawMessage `json:"response"`
	}](r.Context(), s, "/journal/"+url.PathEscape(r.Value("seq")), nil)
	if err != nil {
		return nil, err
	}
	e := &got.Entry
	full := console.Full{Exchange: e.exchange(), Rules: "the OpenRPC document"}
	full.Request = console.Message{Body: known(got.Request), Bytes: e.BytesIn, Missing: missing(got.Bodies, e.BytesIn)}
	full.Response = console.Message{Body: known(got.Response), Bytes: e.BytesOut, Missing: missing(got.Bodies, e.BytesOut)}
	full.Broken, full.Checked = rules(e.Method, full.Request.Body, full.Response.Body)
	full.Facts = []console.Fact{{Name: "Call", Value: fmt.Sprint(e.Seq)}, {Name: "HTTP method", Value: e.Verb}}
	if e.Object != "" {
		full.Facts = append(full.Facts, console.Fact{Name: "Object", Value: e.Object, Link: "/records?" + url.Values{"object": {e.Object}}.Encode()})
	}
	if e.ErrorCode != 0 {
		full.Facts = append(full.Facts, console.Fact{Name: "JSON-RPC error", Value: fmt.Sprint(e.ErrorCode)})
	}
	for _, fault := range e.Faults {
		full.Facts = append(full.Facts, console.Fact{Name: "Touched by", Value: fault, Link: "/faults"})
	}
	if body := full.Request.Body; len(body) > 0 && body[0] != '"' {
		full.Snippets = console.Snippets(console.HTTPRequest{Method: e.Verb, URL: origin(r), Secret: "DESTINATION_TOKEN", Body: body, Status: e.Status})
	}
	return full, nil
}

// origin is the address under which the browser sees the endpoint. The path of a call,
// which may be secret, is not kept.
func origin(r *console.Request) string {
	if r.HTTP.TLS != nil {
		return "https://" + r.HTTP.Host + "/"
	}
	return "http://" + r.HTTP.Host + "/"
}

// known is a body that is there.
func known(body json.RawMessage) json.RawMessage {
	if string(body) == "null" {
		return nil
	}
	return body
}

// missing returns why there is no body.
func missing(bodies string, bytes int64) string {
	switch {
	case bytes == 0:
		return "No body."
	case bodies == "off":
		return fmt.Sprintf("A body of %d bytes, which was not kept: bodies were switched off when the call came.", bytes)
	case bodies == "forgotten":
		return fmt.Sprintf("A body of %d bytes, which is forgotten: newer ones fill the memory for bodies.", bytes)
	}
	return fmt.Sprintf("A body of %d bytes, which was not kept: it is too large.", bytes)
}

// rules holds params and result against the OpenRPC document.
func rules(method string, request, response json.RawMessage) (broken []string, checked bool) {
	var asked struct{ Params json.RawMessage }
	if json.Unmarshal(request, &asked) == nil && len(asked.Params) > 0 {
		checked = true
		if err := openapi.ValidateParams(method, asked.Params); err != nil {
			broken = append(broken, "params: "+err.Error())
		}
	}
	var answered struct{ Result json.RawMessage }
	if json.Unmarshal(response, &answered) == nil && len(answered.Result) > 0 {
		checked = true
		if err := openapi.ValidateResult(method, answered.Result); err != nil {
			broken = append(broken, "result: "+err.Error())
		}
	}
	return broken, checked
}
