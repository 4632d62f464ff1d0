package destsim

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"slices"
	"strconv"
	"strings"

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
