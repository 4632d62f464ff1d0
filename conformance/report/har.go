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
)

// The objects of HAR 1.2. Sizes that are not known are -1; names with an
// underscore are our own, which the format permits.
type (
	harFile struct {
		Log harLog `json:"log"`
	}
	harLog struct {
		Version string     `json:"version"`
		Creator harCreator `json:"creator"`
		Comment string     `json:"comment,omitempty"`
		Entries []harEntry `json:"entries"`
	}
	harCreator struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	harEntry struct {
		Started  string      `json:"startedDateTime"`
		Time     float64     `json:"time"`
		Left     float64     `json:"_caller_left_ms,omitempty"`
		Request  harRequest  `json:"request"`
		Response harResponse `json:"response"`
		Cache    struct{}    `json:"cache"`
		Timings  harTimings  `json:"timings"`
		Comment  string      `json:"comment,omitempty"`
		ID       int         `json:"_exchange"`
		RPC      string      `json:"_rpc_method,omitempty"`
		Reused   bool        `json:"_reused_connection,omitempty"`
		Retried  bool        `json:"_retried,omitempty"`
		Kind     string      `json:"_kind,omitempty"`
		Error    string      `json:"_error,omitempty"`
	}
	harPair    = wire.Header
	harRequest struct {
		Method      string    `json:"method"`
		URL         string    `json:"url"`
		Version     string    `json:"httpVersion"`
		Cookies     []harPair `json:"cookies"`
		Headers     []harPair `json:"headers"`
		Query       []harPair `json:"queryString"`
		PostData    *harPost  `json:"postData,omitempty"`
		HeadersSize int       `json:"headersSize"`
		BodySize    int64     `json:"bodySize"`
	}
	harPost struct {
		MimeType string    `json:"mimeType"`
		Params   []harPair `json:"params"`
		Text     string    `json:"text"`
		Encoding string    `json:"_encoding,omitempty"`
		Comment  string    `json:"comment,omitempty"`
	}
	harResponse struct {
		Status      int        `json:"status"`
		StatusText  string     `json:"statusText"`
		Version     string     `json:"httpVersion"`
		Cookies     []harPair  `json:"cookies"`
		Headers     []harPair  `json:"headers"`
		Content     harContent `json:"content"`
		RedirectURL string     `json:"redirectURL"`
		HeadersSize int        `json:"headersSize"`
		BodySize    int64      `json:"bodySize"`
	}
	harContent struct {
		Size     int64  `json:"size"`
		MimeType string `json:"mimeType"`
		Text     string `json:"text,omitempty"`
		Encoding string `json:"encoding,omitempty"`
		Comment  string `json:"comment,omitempty"`
	}
	harTimings struct {
		Send    float64 `json:"send"`
		Wait    float64 `json:"wait"`
		Receive float64 `json:"receive"`
	}
)

// HARWriter writes exchanges one after the other, as a HAR of any length. Its methods
// are not safe for parallel use.
type HARWriter struct {
	w       io.Writer
	entries int
	begun   bool
	tool    c.Tool
}

// NewHARWriter gives a writer that names the program.
func NewHARWriter(w io.Writer, tool c.Tool) *HARWriter { return &HARWriter{w: w, tool: tool} }

// Add writes one exchange; comment may be "".
func (h *HARWriter) Add(x c.Exchange, comment string) error {
	if err := h.begin(); err != nil {
		return err
	}
	e := newHAREntry(x)
	e.Comment = comment
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode exchange %d: %w", x.ID, err)
	}
	if h.entries > 0 {
		line = append([]byte(",\n"), line...)
	}
	h.entries++
	_, err = h.w.Write(line)
	return err
}

func (h *HARWriter) begin() error {
	if h.begun {
		return nil
	}
	h.begun = true
	creator, err := json.Marshal(harCreator{h.tool.Name, h.tool.Version})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(h.w, "{\"log\":{\"version\":\"1.2\",\"creator\":%s,\"entries\":[\n", creator)
	return err
}

// Close ends the file; the writer beneath stays open.
func (h *HARWriter) Close() error {
	if err := h.begin(); err != nil {
		return err
	}
	_, err := io.WriteString(h.w, "\n]}}\n")
	return err
}

// writeHAR writes the exchanges of all findings, each once, in the order in
// which they were sent.
func writeHAR(w io.Writer, r *c.Report) error {
	log := harLog{Version: "1.2", Creator: harCreator{r.Tool.Name, r.Tool.Version}, Comment: r.Summary, Entries: []harEntry{}}
	seen := map[int]int{} // exchange id -> index of its entry
	for _, check := range slices.Concat(r.Checks, r.Own) {
		for _, f := range check.Findings {
			for _, x := range f.Exchanges {
				i, ok := seen[x.ID]
				if !ok {
					i = len(log.Entries)
					seen[x.ID] = i
					log.Entries = append(log.Entries, newHAREntry(x))
				}
				// One exchange may be the evidence of several checks.
				if e := &log.Entries[i]; !slices.Contains(strings.Split(e.Comment, ", "), check.ID) {
					e.Comment = strings.TrimPrefix(e.Comment+", "+check.ID, ", ")
				}
			}
		}
	}
	slices.SortStableFunc(log.Entries, func(a, b harEntry) int { return cmp.Compare(a.ID, b.ID) })
	return encode(w, harFile{log})
}

// newHAREntry turns an exchange into an entry. The format demands a response
// for each; where none came it is empty and _error says why.
func newHAREntry(x wire.Exchange) harEntry {
	e := harEntry{
		Started: x.Started.UTC().Format(time.RFC3339Nano), Time: x.DurationMS, Left: x.CallerLeftMS,
		// The recorder keeps one duration, which is the wait for the reply.
		Timings: harTimings{Wait: x.DurationMS},
		ID:      x.ID, RPC: x.RPC, Reused: x.ReusedConnection, Retried: x.Retried, Kind: x.Kind, Error: x.Error,
		Request: harRequest{
			Method: x.Request.Method, URL: x.Request.URL, Version: "HTTP/1.1", Cookies: []harPair{},
			Headers: list(x.Request.Header), Query: harQuery(x.Request.URL),
			HeadersSize: -1, BodySize: x.Request.Body.Size,
		},
		// A status of 0 means that no response came.
		Response: harResponse{Cookies: []harPair{}, Headers: []harPair{}, HeadersSize: -1, BodySize: -1,
			Content: harContent{MimeType: "x-unknown"}},
	}
	if b := x.Request.Body; b.Size > 0 {
		e.Request.PostData = &harPost{MimeType: mediaType(x.Request.Header), Params: []harPair{},
			Text: bodyText(b), Encoding: bodyEncoding(b), Comment: bodyNote(b)}
	}
	if p := x.Response; p != nil {
		e.Response = harResponse{
			Status: p.Status, StatusText: http.StatusText(p.Status), Version: p.Proto,
			Cookies: []harPair{}, Headers: list(p.Header), RedirectURL: headerValue(p.Header, "Location"),
			HeadersSize: -1, BodySize: p.Body.Size,
			Content: harContent{Size: p.Body.Size, MimeType: mediaType(p.Header), Text: bodyText(p.Body),
				Encoding: bodyEncoding(p.Body), Comment: bodyNote(p.Body)},
		}
	}
	return e
}

// harQuery splits the query of a URL that may be shown; a redacted URL is a
// placeholder and has none.
func harQuery(raw string) []harPair {
	out := []harPair{}
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery == "" {
		return out
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		out = append(out, harPair{Name: name, Value: value})
	}
	return out
}

// bodyEncoding marks bodies that are no text. For requests the format has no
// place for it, so that it stands under a name of our own.
func bodyEncoding(b wire.Body) string {
	if b.Base64 != "" {
		return "base64"
	}
	return ""
}

// mediaType is demanded for every body; x-unknown is what the format says for
// an endpoint that sends none.
func mediaType(h []wire.Header) string {
	return orWord(headerValue(h, "Content-Type"), "x-unknown")
}

// headerValue returns the first header of a name, in any case of letters.
func headerValue(h []wire.Header, name string) string {
	for _, l := range h {
		if strings.EqualFold(l.Name, name) {
			return l.Value
		}
	}
	return ""
}
