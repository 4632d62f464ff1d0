package destsim

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// envelope is a reply as a list of members, so that a violation can drop,
// repeat and reorder them. The clean order is jsonrpc, id, result or error.
type envelope struct {
	members []envelopeMember
}

type envelopeMember struct {
	key string
	raw []byte
}

// get gives the raw value of the first member of that name, nil if there is none.
func (e *envelope) get(key string) []byte {
	if i := e.index(key); i >= 0 {
		return e.members[i].raw
	}
	return nil
}

func (e *envelope) index(key string) int {
	return slices.IndexFunc(e.members, func(m envelopeMember) bool { return m.key == key })
}

// set replaces the value of a member or adds the member at the end.
func (e *envelope) set(key string, value any) {
	if i := e.index(key); i >= 0 {
		e.members[i].raw = encode(value)
		return
	}
	e.add(key, value)
}

// add adds a member at the end, a second one of its name too.
func (e *envelope) add(key string, value any) {
	e.members = append(e.members, envelopeMember{key, encode(value)})
}

// drop removes every member of that name.
func (e *envelope) drop(key string) {
	e.members = slices.DeleteFunc(e.members, func(m envelopeMember) bool { return m.key == key })
}

func (e *envelope) bytes() []byte {
	b := []byte{'{'}
	for i, m := range e.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendString(b, m.key), ':')
		b = append(b, m.raw...)
	}
	return append(b, '}')
}

// encode makes the JSON reply (spec 4.2: jsonrpc, id, and result or error).
func (c *call) encode() []byte {
	h := c.sim.chain()
	var b []byte
	switch {
	case c.encoded != nil && c.err == nil:
		b = c.encoded // nothing is armed that could change it
	case len(h.envelope) == 0 && c.err != nil:
		b = rpc.AppendError(nil, c.id, c.err)
	case len(h.envelope) == 0:
		b = rpc.AppendResponse(make([]byte, 0, len(c.result)+len(c.id)+40), c.id, c.result)
	default:
		b = c.encodeEnvelope()
	}
	for _, f := range h.reply {
		b = f(c, b)
	}
	return b
}

func (c *call) encodeEnvelope() []byte {
	id := c.id
	if id == nil {
		id = store.Null
	}
	e := &envelope{members: []envelopeMember{{"jsonrpc", []byte(`"2.0"`)}, {"id", id}}}
	if c.err == nil {
		e.members = append(e.members, envelopeMember{"result", c.result})
	} else {
		const before = `{"jsonrpc":"2.0","id":null,"error":` // the bytes are those of a reply without any seam
		whole := rpc.AppendError(nil, nil, c.err)
		e.members = append(e.members, envelopeMember{"error", whole[len(before) : len(whole)-1]})
	}
	for _, f := range c.sim.chain().envelope {
		f(c, e)
	}
	return e.bytes()
}

// chooseCoding picks a content coding that the client has offered;
// want is "", gzip, deflate or auto.
func chooseCoding(want string, offers []string) string {
	if want == "" {
		return ""
	}
	best, bestQ := "", 0.0
	for _, offer := range strings.Split(strings.Join(offers, ","), ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(offer), ";")
		name = strings.ToLower(strings.TrimSpace(name))
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			q, _ = strconv.ParseFloat(v, 64)
		}
		if (name == "gzip" || name == "deflate") && (want == "auto" || want == name) && q > bestQ {
			best, bestQ = name, q
		}
	}
	return best
}

// compress codes a body; deflate on the wire is the zlib format.
func compress(coding string, body []byte) []byte {
	var b bytes.Buffer
	var z io.WriteCloser = zlib.NewWriter(&b)
	if coding == "gzip" {
		z = gzip.NewWriter(&b)
	}
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

// httpReply is the reply on the wire. Everything below coding is zero for a
// clean reply. stall and drip keep the connection usable; the others make the
// simulator write the reply by hand on the hijacked connection and close it
// afterwards.
type httpReply struct {
	status int
	header http.Header
	body   []byte // before content coding
	coding string // gzip, deflate or "": how body is coded and labelled

	sent    []byte        // the bytes of the body as they are written, set by send
	stall   time.Duration // pause after the head and stallAt bytes of the body
	stallAt int
	stalled func(gone bool) // reports after the pause whether the client has gone
	drip    time.Duration   // pause between pieces of dripBy bytes (1 when zero)
	dripBy  int

	length int    // announce this Content-Length instead, when > 0
	cut    int    // write so many bytes of the body and close, when > 0; -1: none
	reset  bool   // abort the connection instead of closing it
	raw    []byte // these bytes are the whole answer, head and body
}

// set sets a header of the reply.
func (h *httpReply) set(name, value string) {
	if h.header == nil {
		h.header = http.Header{}
	}
	h.header.Set(name, value)
}

// broken reports whether the reply must be written by hand.
func (h *httpReply) broken() bool {
	return h.length > 0 || h.cut != 0 || h.reset || h.raw != nil
}

// send writes the reply.
func (c *call) send(body []byte) {
	s, h := c.sim, &c.reply
	h.status, h.body = c.status, body
	if c.w == nil && h.status == http.StatusOK && h.header == nil && !s.dressed {
		h.sent = body // its head needs no map
		return
	}
	if h.header == nil {
		h.header = make(http.Header, 4)
	}
	h.header.Set("Content-Type", "application/json")
	if limit := s.rateLimit.Load(); limit > 0 {
		h.header.Set("X-RateLimit-Limit", strconv.FormatInt(limit, 10)) // spec 8
	}
	if h.status == http.StatusMethodNotAllowed {
		h.header.Set("Allow", http.MethodPost)
	}
	for name, value := range s.config.Headers {
		h.header.Set(name, value)
	}
	h.coding = chooseCoding(s.config.Compress, c.r.Header.Values("Accept-Encoding"))
	for _, f := range s.chain().write {
		f(c, h)
	}
	if c.gone {
		return
	}
	h.sent = h.body
	if h.coding != "" {
		h.sent = compress(h.coding, h.body)
		h.header.Set("Content-Encoding", h.coding)
		h.header.Set("Vary", "Accept-Encoding")
	}
	if c.w == nil {
		return // who has called sends it
	}
	if h.broken() {
		h.writeByHand(c)
		return
	}
	header := c.w.Header()
	for name, values := range h.header {
		header[name] = values
	}
	header.Set("Content-Length", strconv.Itoa(len(h.sent)))
	c.w.WriteHeader(h.status)
	if h.stall > 0 || h.drip > 0 {
		h.writeSlowly(c, flusher{c.w, http.NewResponseController(c.w)})
		return
	}
	_, _ = c.w.Write(h.sent) // a client that has gone is no error of ours
}

// flusher sends every piece at once.
type flusher struct {
	w  http.ResponseWriter
	at *http.ResponseController
}

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if flushErr := f.at.Flush(); err == nil {
		err = flushErr
	}
	return n, err
}

// writeByHand writes a reply that no proper server would send.
func (h *httpReply) writeByHand(c *call) {
	conn := c.hijack()
	defer func() {
		if h.reset {
			abort(conn)
			return
		}
		_ = conn.Close()
	}()
	if h.raw != nil {
		_, _ = conn.Write(h.raw)
		return
	}
	if _, err := conn.Write(h.head(c)); err != nil {
		return
	}
	if h.cut != 0 && h.cut < len(h.sent) {
		h.sent = h.sent[:max(h.cut, 0)]
	}
	h.writeSlowly(c, conn)
}

// head is the status line and the headers.
func (h *httpReply) head(c *call) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", h.status, http.StatusText(h.status))
	header := h.header.Clone()
	header.Set("Date", c.sim.clock().UTC().Format(http.TimeFormat))
	header.Set("Content-Length", strconv.Itoa(len(h.sent)))
	if h.length > 0 {
		header.Set("Content-Length", strconv.Itoa(h.length))
	}
	header.Set("Connection", "close")
	_ = header.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

// writeSlowly writes the reply with the requested pauses. It stops when the
// client has gone.
func (h *httpReply) writeSlowly(c *call, w io.Writer) {
	body := h.sent
	if h.stall > 0 {
		at := min(h.stallAt, len(body))
		_, err := w.Write(body[:at])
		slept := err == nil && c.sleep(h.stall)
		if h.stalled != nil {
			h.stalled(err != nil || c.r.Context().Err() != nil)
		}
		if !slept {
			return
		}
		body = body[at:]
	}
	if h.drip == 0 {
		_, _ = w.Write(body)
		return
	}
	for len(body) > 0 {
		piece := body[:min(max(h.dripBy, 1), len(body))]
		if _, err := w.Write(piece); err != nil {
			return
		}
		if body = body[len(piece):]; len(body) > 0 && !c.sleep(h.drip) {
			return
		}
	}
}
