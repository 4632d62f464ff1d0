package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
)

// HARWriter writes a HAR of any length. Its methods are not safe for parallel use.
type HARWriter struct {
	w     io.Writer
	tool  c.Tool
	begun bool
}

// NewHARWriter gives a writer that names the program.
func NewHARWriter(w io.Writer, tool c.Tool) *HARWriter { return &HARWriter{w: w, tool: tool} }

// Add writes one exchange; comment may be "".
func (h *HARWriter) Add(x c.Exchange, comment string) error {
	entry, err := newHAREntry(x, comment).MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode exchange %d: %w", x.ID, err)
	}
	return h.write(",\n", string(entry))
}

// Close ends the file; the writer beneath stays open.
func (h *HARWriter) Close() error { return h.write("", "\n]}}\n") }

// write writes a text after a separator, which is the head of the file where there is none.
func (h *HARWriter) write(separator, text string) error {
	if !h.begun {
		h.begun = true
		creator, err := json.Marshal(h.tool)
		if err != nil {
			return err
		}
		separator = fmt.Sprintf("{\"log\":{\"version\":\"1.2\",\"creator\":%s,\"entries\":[\n", creator)
	}
	_, err := io.WriteString(h.w, separator+text)
	return err
}

// writeHAR writes the exchanges of all findings, each once, in the order in which they were sent.
func writeHAR(w io.Writer, r *c.Report, _ Options) error {
	var exchanges []c.Exchange
	checks := map[int][]string{} // by exchange: one may be the evidence of several
	for _, check := range slices.Concat(r.Checks, r.Own) {
		for _, x := range exchangesOf(check) {
			if checks[x.ID] == nil {
				exchanges = append(exchanges, x)
			}
			checks[x.ID] = append(checks[x.ID], check.ID)
		}
	}
	slices.SortStableFunc(exchanges, func(a, b c.Exchange) int { return cmp.Compare(a.ID, b.ID) })
	entries := lists.Of(exchanges, func(x c.Exchange) jsonObject { return newHAREntry(x, strings.Join(checks[x.ID], ", ")) })
	return encode(w, jsonObject{{"log", jsonObject{
		{"version", "1.2"}, {"creator", r.Tool}, {"comment,omitempty", r.Summary}, {"entries", list(entries)},
	}}})
}

// exchangesOf are the exchanges of all findings of a check, each once.
func exchangesOf(check c.CheckResult) (all []c.Exchange) {
	seen := map[int]bool{}
	for _, f := range check.Findings {
		for _, x := range f.Exchanges {
			if !seen[x.ID] {
				seen[x.ID] = true
				all = append(all, x)
			}
		}
	}
	return all
}

// newHAREntry is an entry of HAR 1.2. Sizes that are not known are -1, and names with an
// underscore are our own. The format demands a response: where none came it is empty.
func newHAREntry(x wire.Exchange, comment string) jsonObject {
	response := wire.Response{Body: wire.Body{Size: -1}}
	if x.Response != nil {
		response = *x.Response
	}
	encoding := map[bool]string{true: "base64"} // of bodies that are no text
	var post jsonObject
	if b := x.Request.Body; b.Size > 0 {
		// The format has no place for the encoding of a request.
		post = jsonObject{{"mimeType", mediaType(x.Request.Header)}, {"params", []wire.Header{}}, {"text", bodyText(b)},
			{"_encoding,omitempty", encoding[b.Base64 != ""]}, {"comment,omitempty", bodyNote(b)}}
	}
	return jsonObject{
		{"startedDateTime", x.Started.UTC().Format(time.RFC3339Nano)},
		{"time", x.DurationMS},
		{"_caller_left_ms,omitempty", x.CallerLeftMS},
		{"request", jsonObject{
			{"method", x.Request.Method}, {"url", x.Request.URL}, {"httpVersion", "HTTP/1.1"}, {"cookies", []wire.Header{}},
			{"headers", list(x.Request.Header)}, {"queryString", harQuery(x.Request.URL)}, {"postData,omitempty", post},
			{"headersSize", -1}, {"bodySize", x.Request.Body.Size},
		}},
		{"response", jsonObject{
			{"status", response.Status}, {"statusText", http.StatusText(response.Status)}, {"httpVersion", response.Proto},
			{"cookies", []wire.Header{}}, {"headers", list(response.Header)},
			{"content", jsonObject{
				{"size", max(response.Body.Size, 0)}, {"mimeType", mediaType(response.Header)}, {"text,omitempty", bodyText(response.Body)},
				{"encoding,omitempty", encoding[response.Body.Base64 != ""]}, {"comment,omitempty", bodyNote(response.Body)},
			}},
			{"redirectURL", headerValue(response.Header, "Location")}, {"headersSize", -1}, {"bodySize", response.Body.Size},
		}},
		{"cache", jsonObject{}},
		// The recorder keeps one duration, which is the wait for the reply.
		{"timings", jsonObject{{"send", 0}, {"wait", x.DurationMS}, {"receive", 0}}},
		{"comment,omitempty", comment},
		{"_exchange", x.ID},
		{"_rpc_method,omitempty", x.RPC},
		{"_reused_connection,omitempty", x.ReusedConnection},
		{"_retried,omitempty", x.Retried},
		{"_kind,omitempty", x.Kind},
		{"_error,omitempty", x.Error},
	}
}

// harQuery splits the query of a URL; a redacted URL is a placeholder and has none.
func harQuery(raw string) []wire.Header {
	out := []wire.Header{}
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery == "" {
		return out
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		out = append(out, wire.Header{Name: name, Value: value})
	}
	return out
}

// mediaType is required for every body; the format defines x-unknown for none.
func mediaType(h []wire.Header) string { return orWord(headerValue(h, "Content-Type"), "x-unknown") }

// headerValue returns the first header of a name, in any case of letters.
func headerValue(h []wire.Header, name string) string {
	i := slices.IndexFunc(h, func(l wire.Header) bool { return strings.EqualFold(l.Name, name) })
	if i < 0 {
		return ""
	}
	return h[i].Value
}
