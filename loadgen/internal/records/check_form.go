package records

import (
	"bytes"

	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// add keeps the place of an entry.
func (p *places) add(e *codec.Entry) {
	switch p.entries {
	case 0:
		p.first, p.firstEnd = e.Start, e.End
	case 1:
		p.second = e.Start
	}
	if e.Success && p.good.End == 0 {
		p.good = *e
	}
	p.end = e.End
	p.entries++
}

// learn takes the form of a reply that answered every record once, in the order
// of the batch and with the very bytes of its identifier. The reply has been
// validated, and a piece begins and ends where a token does: other identifiers
// of the same kind between the same pieces are valid, too.
func (c *Checker) learn(body []byte) {
	p, f := c.places, &c.form
	f.known = false
	e := p.good
	f.before = append(f.before[:0], body[e.Start:e.IdentifierAt]...)
	f.after = append(f.after[:0], body[e.IdentifierAt+len(e.Identifier):e.End]...)
	if bytes.Contains(f.after, e.Identifier) || bytes.Contains(f.before, e.Identifier) {
		return // the entry repeats it elsewhere: it is not the same every time
	}
	f.single, f.between = p.entries == 1, f.between[:0]
	if !f.single {
		f.between = append(f.between, body[p.firstEnd:p.second]...)
	}
	f.glue = append(append(append(f.glue[:0], f.after...), f.between...), f.before...)
	f.head = append(f.head[:0], body[:p.first]...)
	f.tail = append(f.tail[:0], body[p.end:]...)
	f.idInHead, f.idInTail = -1, -1
	if at := c.answer.IDAt; at < p.first {
		f.idInHead = at
	} else {
		f.idInTail = at - p.end
	}
	if f.idInTail >= 0 && f.idInTail+IDDigits+2 > len(f.tail) {
		return
	}
	f.known = true
	// The form must give this very reply: entries may differ in their white space
	// or their further members.
	_, f.known = c.compare(c.Batch, body)
}

// Message is the target's message, or the problem.
func Message(kind string, raw []byte) string {
	switch kind {
	case wire.KindMissing:
		return "a record has no result"
	case wire.KindUnknown:
		return "a result is for an identifier that was not sent"
	case wire.KindRepeated:
		return "a record has more than one result"
	}
	if text := rawjson.MessageText(raw); text != "" {
		return foreign.Clip(text, 2*wire.LongestMessage) // who shows it takes secrets out, then cuts it
	}
	return "success is not true, and there is no error_message"
}
