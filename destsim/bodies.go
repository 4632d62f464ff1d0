package destsim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/internal/foreign"
)

// The bounds of the bodies that the journal keeps.
const (
	largestBody = 64 << 10 // of a longer one only the length is known
	bodyBytes   = 16 << 20 // of all bodies; the oldest go first
)

// callBodies keeps the bodies of the last calls while it is switched on. While it is
// off, a call looks at one switch and nothing else. The lock of the journal guards
// everything but the switch.
type callBodies struct {
	on         atomic.Bool
	configured bool      // the setting after a reset
	secrets    []string  // of the configuration
	kept       []twoBody // by seq
	size       int
}

// twoBody has the bodies of a call, nil where there was none or a longer one.
type twoBody struct {
	seq               int64
	request, response []byte
	secrets           []string // that held when it was made
}

func (b *twoBody) size() int { return 256 + len(b.request) + len(b.response) }

// configure takes the switch and the secrets of a configuration.
func (b *callBodies) configure(c *Config) {
	b.configured, b.secrets = c.KeepBodies, []string{c.Token, c.ControlToken, c.URLSecret.Value}
	b.on.Store(b.configured)
}

// copied takes the bodies of a call; nil while they are not kept. The caller's buffers
// are used again.
func (b *callBodies) copied(c *call) *twoBody {
	if !b.on.Load() {
		return nil
	}
	given := strings.TrimPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	two := &twoBody{secrets: []string{*c.sim.token.Load(), given}}
	if len(c.body) <= largestBody {
		two.request = bytes.Clone(c.body)
	}
	if answered := c.reply.plain(); len(answered) <= largestBody {
		two.response = bytes.Clone(answered)
	}
	return two
}

// plain is the body that was sent, before its coding.
func (h *httpReply) plain() []byte {
	if h.coding != "" {
		return h.body
	}
	return h.sent
}

// add keeps the bodies of the call with a number. The journal is locked.
func (b *callBodies) add(seq int64, two *twoBody) {
	two.seq = seq
	b.kept = append(b.kept, *two)
	b.size += two.size()
	for b.size > bodyBytes || len(b.kept) > journalSize {
		b.size -= b.kept[0].size()
		b.kept[0] = twoBody{}
		b.kept = b.kept[1:]
	}
}

// clear forgets the bodies. The journal is locked.
func (b *callBodies) clear() { b.kept, b.size = nil, 0 }

// find gives the bodies of a call; nil where none are kept. The journal is locked.
func (b *callBodies) find(seq int64) *twoBody {
	at, is := slices.BinarySearchFunc(b.kept, seq, func(two twoBody, seq int64) int { return cmp.Compare(two.seq, seq) })
	if !is {
		return nil
	}
	two := b.kept[at]
	return &two
}

// journalExchange is one call with its bodies, without secrets. Bodies is "kept" or
// why there are none: "off" when the call came, or "forgotten" since.
type journalExchange struct {
	Entry    JournalEntry    `json:"entry"`
	Bodies   string          `json:"bodies"`
	Request  json.RawMessage `json:"request"`  // null: none, or longer than 64 KiB; a string where it is no JSON
	Response json.RawMessage `json:"response"` // the same
}

// errNoCall means that the journal does not have a call.
var errNoCall = errors.New("the journal has no call with this number; it keeps the newest 10,000")

// exchange gives one call in full.
func (j *callJournal) exchange(seq int64) (journalExchange, error) {
	j.mu.Lock()
	if seq < 1 || seq > j.total || seq <= j.total-int64(len(j.ring)) {
		j.mu.Unlock()
		return journalExchange{}, errNoCall
	}
	x := journalExchange{Entry: j.ring[(seq-1)%journalSize].entry(), Bodies: "off"}
	two := j.bodies.find(seq)
	if two == nil && len(j.bodies.kept) > 0 && seq < j.bodies.kept[0].seq {
		x.Bodies = "forgotten"
	}
	j.mu.Unlock()
	if two == nil {
		return x, nil
	}
	hide := foreign.New()
	for _, secret := range append(two.secrets, j.bodies.secrets...) {
		hide.Add(secret, "[hidden]")
	}
	x.Bodies, x.Request, x.Response = "kept", shownBody(hide, two.request), shownBody(hide, two.response)
	return x, nil
}

// shownBody is a body as JSON: itself, or a text where it is none.
func shownBody(hide *foreign.Redactor, body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	text := hide.String(string(body))
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return encode(strings.ToValidUTF8(text, "\uFFFD"))
}

// keepBodies switches bodies on or off; switching off drops the kept bodies.
func (j *callJournal) keepBodies(keep bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.bodies.on.Store(keep)
	if !keep {
		j.bodies.clear()
	}
}
