package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/foreign"
)

// Sight is an exchange between two others, as a proxy or a recording saw it. Its bytes are
// not changed and not kept by the judge.
type Sight struct {
	// Number is that of the exchange, from 1 in the order of the requests.
	Number int
	Timing
	// CallerLeft is when the caller ended its side of the connection, counted from
	// Started; 0 where it stayed to the end.
	CallerLeft time.Duration
	// Reused reports whether the connection had carried a call before.
	Reused bool
	// Peer distinguishes connections of the caller; "" where it is not known.
	Peer string
	// Opened is when the caller had its connection; zero where it is not known.
	Opened time.Time
	// Ended is set once the endpoint has ended the connection, or made it useless, while
	// the caller still had it; nil where that is not known.
	Ended *atomic.Bool
	Asked

	// Raw are the bytes of the response as they were on the wire, from the status
	// line on. Nil where only its parts are known: then Status, Proto, Header and
	// Body, which is without framing and, where Decoded, without Content-Encoding.
	Raw     []byte
	Status  int
	Proto   string
	Header  []Header
	Body    []byte
	Decoded bool

	// Err is what ended the exchange before the response was complete; nil when
	// the connection lasted, or ended in good order.
	Err error
}

// Asked is the request of an exchange. Method, Target and RequestHeader are those of the request
// line and its header; URL is the address as a report can show it, before redaction; RequestBody is
// without the framing of HTTP.
type Asked struct {
	Method, Target, URL string
	RequestHeader       []Header
	RequestBody         []byte
}

// Viewer makes replies of what others exchanged.
type Viewer struct{ client *Client }

// NewViewer gives a viewer whose records hold no secret of the redactor; spare is that of Options.
func NewViewer(secrets *Redactor, spare func()) *Viewer {
	c := &Client{opts: Options{MaxBody: DefaultMaxBody}, redact: secrets}
	c.budget.max, c.budget.spare, c.budget.alone = memoryBudget, spare, true
	return &Viewer{client: c}
}

// Reply reads the response of a sight as strictly as a client's own: Kind and Err of the reply
// report its faults. It shares the memory of s.
func (v *Viewer) Reply(s *Sight) *Reply {
	r := &Reply{
		Request: s.RequestBody, Timing: s.Timing, Carrier: Carrier{Reused: s.Reused}, Received: int64(len(s.Raw)), budget: &v.client.budget,
	}
	q := &request{method: s.Method, header: s.RequestHeader}
	switch {
	case s.Status > 0:
		r.Status, r.Proto, r.RawHeaders, r.Header = s.Status, s.Proto, s.Header, canonical(s.Header)
		r.Raw, r.Body, r.Received = s.Body, s.Body, int64(len(s.Body))+1
		r.Framing, r.Err = FramingLength, s.Err
	case s.Raw != nil:
		r.Err = v.read(s, q, r)
	case s.Err != nil:
		r.Err = s.Err
	default:
		r.Err = &Error{Kind: KindClosed, Op: "read response head", Err: io.EOF}
	}
	if r.Err == nil && !s.Decoded {
		r.Err = v.decode(q, r)
	}
	r.Kind = Classify(r.Err, r.Received)
	r.record = sync.OnceValue(func() Exchange { return v.Recording(s, r, recordedRequest, recordedResponse) })
	return r
}

// read parses the bytes of the wire.
func (v *Viewer) read(s *Sight, q *request, r *Reply) error {
	end := cmp.Or(s.Err, io.EOF)
	br := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(s.Raw), endReader{end}), max(16, min(len(s.Raw)+1, 16<<10)))
	if err := v.client.readResponse(br, q, r, nil, func() {}); err != nil {
		return err
	}
	rest, _ := br.Discard(len(s.Raw))
	return surplus(rest)
}

// decode undoes the Content-Encoding. A coding that the caller offered and that this
// program does not know, such as br, leaves the body unread.
func (v *Viewer) decode(q *request, r *Reply) error {
	for _, coding := range contentCodings(r.Header["Content-Encoding"]) {
		if !decodes(coding) && strings.Contains(strings.Join(q.offered(), ","), coding) {
			r.Unread = true
			return nil
		}
	}
	return v.client.decodeBody(q, r, time.Now().Add(time.Second))
}

// endReader is what comes behind the last byte.
type endReader struct{ err error }

func (e endReader) Read([]byte) (int, error) { return 0, e.err }

func canonical(lines []Header) http.Header {
	out := make(http.Header, len(lines))
	for _, f := range lines {
		name := textproto.CanonicalMIMEHeaderKey(f.Name)
		out[name] = append(out[name], f.Value)
	}
	return out
}

// Recording is the record of a reply of this viewer with up to so many bytes of each body.
func (v *Viewer) Recording(s *Sight, r *Reply, request, response int) Exchange {
	c := v.client
	e := Exchange{
		ID: s.Number, Started: s.Started.UTC(), ReusedConnection: s.Reused,
		DurationMS: milliseconds(s.Total), CallerLeftMS: milliseconds(s.CallerLeft),
		Request: Message{
			Method: c.redact.String(s.Method), URL: HideQuery(c.redact.String(s.URL)), Header: HideHeader(c.redact, s.RequestHeader),
			Body: recordBody(c.redact, s.RequestBody, int64(len(s.RequestBody)), request),
		},
	}
	c.recordEnd(&e, r, HideHeader(c.redact, r.RawHeaders), response)
	return e
}

// HideHeader hides what the redactor knows, and the values of headers that are secret by name.
func HideHeader(secrets *Redactor, lines []Header) []Header {
	out := (&Client{redact: secrets}).redactHeader(lines)
	for i, h := range lines {
		if out[i].Value == h.Value && foreign.SecretName(h.Name) && h.Value != "" {
			out[i].Value = "$DESTKIT_HEADER_" + foreign.VariableName(h.Name)
		}
	}
	return out
}

// AddHeaderSecrets makes the secrets in a header known.
func AddHeaderSecrets(secrets *Redactor, lines []Header) {
	for _, h := range lines {
		if !foreign.SecretName(h.Name) || h.Value == "" || foreign.PlainWord(h.Value) {
			continue
		}
		placeholder := "$DESTKIT_HEADER_" + foreign.VariableName(h.Name)
		value := h.Value
		if strings.EqualFold(h.Name, "Authorization") {
			placeholder = tokenPlaceholder
			if _, rest, ok := strings.Cut(value, " "); ok {
				value = strings.TrimSpace(rest)
			}
		}
		if !hidden(value) { // of a recording
			secrets.AddAnother(value, placeholder)
		}
	}
}

// AddURLSecrets makes the user information and the query of a URL known (spec 5.2.3).
func AddURLSecrets(secrets *Redactor, raw string) error {
	if _, err := parseTarget(raw); err != nil {
		return fmt.Errorf("read the URL: %w", err)
	}
	(&Client{opts: Options{URL: raw}, redact: secrets}).seedRedactor()
	return nil
}

// HideQuery puts placeholders in place of all values in the query of a URL or a request
// target, also of those that are too short to be looked for elsewhere (spec 5.2.3).
func HideQuery(raw string) string {
	return hideQuery(raw, func(string) bool { return true })
}

func hideQuery(raw string, hide func(value string) bool) string {
	path, query, _ := strings.Cut(raw, "?")
	if query == "" {
		return raw
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case part == "" || hidden(part) || hidden(value) || !hide(value):
		case strings.Trim(value, "=") == "": // a value without a name, which base64 may end
			parts[i] = "$DESTKIT_QUERY_" + strconv.Itoa(i)
		default:
			parts[i] = name + "=$DESTKIT_QUERY_" + foreign.VariableName(name)
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// hidden reports whether a text is a placeholder and nothing else.
func hidden(text string) bool { return text != "" && foreign.Variable.FindString(text) == text }
