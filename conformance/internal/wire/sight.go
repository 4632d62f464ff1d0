package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/foreign"
)

// Sight is an exchange between two others, as a third party between them saw it: a
// proxy, or a recording. Its bytes are not changed and not kept by the judge.
type Sight struct {
	// Number is that of the exchange, from 1 in the order of the requests.
	Number int
	Timing
	// CallerLeft is when the caller ended its side of the connection, counted from
	// Started; 0 where it stayed to the end.
	CallerLeft time.Duration
	// Reused reports whether the connection had carried a call before.
	Reused bool
	// Peer tells connections of the caller apart; "" where it is not known.
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

// Asked is the request of an exchange. Method, Target and RequestHeader are those of the
// request line and its header; URL is the address as a report may show it, before
// redaction; RequestBody is without the framing of HTTP.
type Asked struct {
	Method, Target, URL string
	RequestHeader       []Header
	RequestBody         []byte
}

// Viewer makes replies of what others exchanged.
type Viewer struct{ client *Client }

// NewViewer gives a viewer whose records hold no secret of the redactor. Where the
// replies in use need more memory than there is for them, spare is called first, which
// gives up what is kept of them for speed alone; nil: nothing is.
func NewViewer(secrets *Redactor, spare func()) *Viewer {
	c := &Client{opts: Options{MaxBody: DefaultMaxBody}, redact: secrets}
	c.budget.max, c.budget.spare, c.budget.alone = memoryBudget, spare, true
	return &Viewer{client: c}
}

// Reply reads the response of a sight as strictly as a client's own: what is
// wrong with it is the Kind and the Err of the reply. It shares the memory of s.
func (v *Viewer) Reply(s *Sight) *Reply {
	r := &Reply{
		Request: s.RequestBody, Timing: s.Timing, Carrier: Carrier{Reused: s.Reused}, Received: int64(len(s.Raw)), budget: &v.client.budget,
	}
	q := &request{call: &Call{}, method: s.Method}
	for _, h := range s.RequestHeader {
		if strings.EqualFold(h.Name, "Accept-Encoding") {
			q.sent = true
			q.offered += "," + h.Value
		}
	}
	switch {
	case s.Status > 0:
		r.Err = v.known(s, q, r)
	case s.Raw != nil:
		r.Err = v.read(s, q, r)
	case s.Err != nil:
		r.Err = s.Err
	default:
		r.Err = &Error{Kind: KindClosed, Op: "read response head", Err: io.EOF}
	}
	r.Kind = Classify(r.Err, r.Received)
	r.record = sync.OnceValue(func() Exchange { return v.exchange(s, r, recordedRequest, recordedResponse) })
	return r
}

// Recording is the record of a reply of this viewer with up to so many bytes of each
// body.
func (v *Viewer) Recording(s *Sight, r *Reply, most int) Exchange {
	return v.exchange(s, r, most, most)
}

// known takes the parts of a response over.
func (v *Viewer) known(s *Sight, q *request, r *Reply) error {
	r.Status, r.Proto, r.RawHeaders = s.Status, s.Proto, s.Header
	r.Header = canonical(s.Header)
	r.Raw, r.Body, r.Received = s.Body, s.Body, int64(len(s.Body))+1
	r.Framing = FramingLength
	if s.Err != nil {
		return s.Err
	}
	if s.Decoded {
		return nil
	}
	return v.decode(q, r)
}

// read parses the bytes of the wire.
func (v *Viewer) read(s *Sight, q *request, r *Reply) error {
	end := cmp.Or(s.Err, io.EOF)
	br := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(s.Raw), endReader{end}), max(16, min(len(s.Raw)+1, 16<<10)))
	err := v.client.readResponse(&headReader{br: br, left: maxHead}, q, r, make(chan struct{}, 1), func() {})
	r.CloseAnnounced = r.Status > 0 && closeAnnounced(r)
	if err != nil {
		return err
	}
	rest, _ := br.Discard(len(s.Raw))
	if err := surplus(rest); err != nil {
		return err
	}
	return v.decode(q, r)
}

// decode undoes the Content-Encoding. A coding that the caller offered and that this
// program does not know, such as br, leaves the body unread.
func (v *Viewer) decode(q *request, r *Reply) error {
	for _, coding := range contentCodings(r.Header["Content-Encoding"]) {
		if coding != "gzip" && coding != "deflate" && strings.Contains(strings.ToLower(q.offered), coding) {
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

// exchange is what a report keeps.
func (v *Viewer) exchange(s *Sight, r *Reply, request, response int) Exchange {
	c := v.client
	e := Exchange{
		ID: s.Number, Started: s.Started.UTC(), DurationMS: float64(s.Total.Microseconds()) / 1000, CallerLeftMS: float64(s.CallerLeft.Microseconds()) / 1000, ReusedConnection: s.Reused,
		Request: Message{Method: c.redact.String(s.Method), URL: HideQuery(c.redact.String(s.URL)), Header: v.header(s.RequestHeader), Body: recordBody(c.redact, s.RequestBody, int64(len(s.RequestBody)), request)},
	}
	c.recordEnd(&e, r, v.header(r.RawHeaders), response)
	return e
}

// header hides what the redactor knows, and the values of headers that carry
// secrets by their name.
func (v *Viewer) header(lines []Header) []Header {
	out := v.client.redactHeader(lines)
	for i, h := range lines {
		if out[i].Value == h.Value && SecretHeader(h.Name) && h.Value != "" {
			out[i].Value = "$DESTKIT_HEADER_" + shellName(h.Name)
		}
	}
	return out
}

// SecretHeader reports whether headers of a name usually carry a secret.
func SecretHeader(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		return true
	}
	return slices.ContainsFunc([]string{"token", "secret", "api-key", "apikey", "password", "signature", "credential"}, func(mark string) bool { return strings.Contains(name, mark) })
}

// AddHeaderSecrets makes the secrets in the header of a request known, so that
// they are found wherever they stand. It returns how many there were.
func AddHeaderSecrets(secrets *Redactor, lines []Header) int {
	n := 0
	for _, h := range lines {
		if !SecretHeader(h.Name) || h.Value == "" || foreign.PlainWord(h.Value) {
			continue
		}
		placeholder := "$DESTKIT_HEADER_" + shellName(h.Name)
		value := h.Value
		if strings.EqualFold(h.Name, "Authorization") {
			placeholder = tokenPlaceholder
			if _, rest, ok := strings.Cut(value, " "); ok {
				value = strings.TrimSpace(rest)
			}
		}
		secrets.Add(value, placeholder)
		n++
	}
	return n
}

// AddURLSecrets makes the secrets of a URL known: user information and the values
// of its query (spec 5.2.3).
func AddURLSecrets(secrets *Redactor, raw string) error {
	t, err := parseTarget(raw)
	if err != nil {
		return fmt.Errorf("read the URL: %w", err)
	}
	c := &Client{opts: Options{URL: raw}, redact: secrets, target: t}
	c.seedRedactor()
	return nil
}

// AddQuerySecrets makes the values in the query of a request known, and returns how
// many it has.
func AddQuerySecrets(secrets *Redactor, target string) int {
	_, query, found := strings.Cut(target, "?")
	if !found {
		return 0
	}
	(&Client{redact: secrets}).seedQuery(query)
	return strings.Count(query, "&") + 1
}

// HideQuery puts placeholders in place of all values in the query of a URL or a request
// target, also of those that are too short to be looked for elsewhere (spec 5.2.3).
func HideQuery(raw string) string {
	path, query, found := strings.Cut(raw, "?")
	if !found || query == "" {
		return raw
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case part == "" || hidden(part) || hidden(value):
		case strings.Trim(value, "=") == "": // a value without a name, which base64 may end
			parts[i] = "$DESTKIT_QUERY_" + strconv.Itoa(i)
		default:
			parts[i] = name + "=$DESTKIT_QUERY_" + shellName(name)
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// hidden reports whether a text is a placeholder and nothing else.
func hidden(text string) bool { return text != "" && placeholderName.FindString(text) == text }
