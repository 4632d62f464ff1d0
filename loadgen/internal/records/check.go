package records

import (
	"bytes"
	"errors"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Verdict is the result of a reply about the records of its batch.
type Verdict struct {
	Acknowledged int
	Failed       int // records refused, without a result or with several
}

// Checker judges replies (spec 7.2): the envelope, the id, and one result with
// success for every identifier that was sent. Nothing of it can be left out.
//
// Replies of one target have one form: the text between its identifiers is the
// same every time. A reply that was scanned whole teaches the form; the next one
// is compared with it piece by piece and is then valid by construction.
// Differing parts are scanned again, one entry or all of it.
type Checker struct {
	Note   func(kind string, message, identifier []byte)
	form   form
	answer codec.Answer
	entry  codec.Entry

	Batch   *Batch
	seen    []bool // by record, while a reply is scanned
	next    int
	index   map[string]int // of the identifiers, once they come out of order
	indexed bool
	v       Verdict
	places  places    // of the reply, for its form
	clean   bool      // in order, byte for byte, one result each
	refused []refusal // noted once the reply has been seen to its end
	Bad     []Bad     // records of the latest reply that are not acknowledged
	piece   []byte    // an entry as it is expected next
	result  func(*codec.Entry) error
}

// places are the places of entries in a reply.
type places struct {
	entries    int
	first, end int // of all entries
	second     int
	firstEnd   int
	good       codec.Entry // one with success, 0 without
}

// refusal is a result without success in a reply that has the form.
type refusal struct {
	record  int
	message []byte
}

// form is the text around the identifiers of a reply. head ends before the
// first entry; id is where the id is in head, or in tail where it comes last.
type form struct {
	known              bool
	head, tail         []byte
	idInHead, idInTail int // -1: not there
	before, after      []byte
	between            []byte // the text between two entries, with a comma
	glue               []byte // after, between and before in one piece
	single             bool   // learnt from one record: between is not known
}

// Check judges one reply with status 200 or an error object. The error is a
// *Failure, and then the whole batch is lost.
func (c *Checker) Check(b *Batch, body []byte) (Verdict, error) {
	c.Batch, c.Bad = b, c.Bad[:0]
	if v, ok := c.same(b, body); ok {
		return v, nil
	}
	return c.scan(b, body)
}

// same compares a reply with the form. It is not ok where only a scan can decide.
func (c *Checker) same(b *Batch, body []byte) (Verdict, bool) {
	v, ok := c.compare(b, body)
	if !ok {
		return Verdict{}, false
	}
	for _, r := range c.refused {
		c.Note(wire.KindRecordRefused, r.message, b.key(r.record))
		c.Bad = append(c.Bad, Bad{r.record, Refused})
	}
	return v, true
}

// compare looks at one entry after the other.
func (c *Checker) compare(b *Batch, body []byte) (v Verdict, ok bool) {
	f := &c.form
	if !f.known || f.single && b.Size() > 1 || !b.hasID(body, f.head, f.idInHead) {
		return v, false
	}
	c.refused = c.refused[:0]
	i, last := len(f.head), b.Size()-1
	for k := 0; ; k++ {
		// body[i:] is the entry of record k.
		var good int
		if b.counted {
			good, i = c.countedRun(body, i, k, last)
		} else {
			good, i = c.run(body, i, k, last)
		}
		v.Acknowledged += good
		k += good
		if i, ok = c.one(&v, body, i, k); !ok {
			return v, false
		}
		if k == last {
			break
		}
		if end := i + len(f.between); end > len(body) || string(body[i:end]) != string(f.between) {
			return v, false
		}
		i += len(f.between)
	}
	if len(body)-i != len(f.tail) || !b.hasID(body[i:], f.tail, f.idInTail) {
		return v, false
	}
	return v, true
}

// run counts the records from k on, the last one not among them, that are
// acknowledged one after the other. The text between two identifiers is one
// piece. It returns where the next entry begins.
func (c *Checker) run(body []byte, i, k, last int) (good, at int) {
	f := &c.form
	opened := false // the text before the identifier was compared already
	for ; k < last; k++ {
		key := c.Batch.key(k)
		at := i + len(f.before)
		end := at + len(key)
		if end+len(f.glue) > len(body) || string(body[at:end]) != string(key) ||
			string(body[end:end+len(f.glue)]) != string(f.glue) || !opened && string(body[i:at]) != string(f.before) {
			break
		}
		good, i, opened = good+1, end+len(f.after)+len(f.between), true
	}
	return good, i
}

// countedRun is run for keys that count up: an entry and what follows it are one
// piece, and the batch itself, long gone from the cache, is not looked at.
func (c *Checker) countedRun(body []byte, i, k, last int) (good, at int) {
	if k >= last {
		return 0, i
	}
	f := &c.form
	c.piece = append(append(c.piece[:0], f.before...), c.Batch.key(k)...)
	c.piece = append(append(c.piece, f.after...), f.between...)
	from := len(f.before) + c.Batch.digits.from
	piece, digits := c.piece, c.piece[from:len(f.before)+c.Batch.digits.to]
	for ; k < last && i+len(piece) <= len(body) && string(body[i:i+len(piece)]) == string(piece); k++ {
		good, i = good+1, i+len(piece)
		if n := len(digits) - 1; digits[n] != '9' {
			digits[n]++
		} else {
			NextDigits(digits, digits)
		}
	}
	return good, i
}

// one compares a single entry, or reads it: a refusal, mostly, in the middle
// of others. It returns where the entry ends.
func (c *Checker) one(v *Verdict, body []byte, i, k int) (end int, ok bool) {
	f, key := &c.form, c.Batch.key(k)
	at := i + len(f.before)
	from := at + len(key)
	end = from + len(f.after)
	if end <= len(body) && string(body[i:at]) == string(f.before) && string(body[at:from]) == string(key) && string(body[from:end]) == string(f.after) {
		v.Acknowledged++
		return end, true
	}
	if !codec.ScanEntry(body, i, &c.entry) || !bytes.Equal(c.entry.Identifier, key) {
		return i, false
	}
	if c.entry.Success {
		v.Acknowledged++
	} else {
		c.refused = append(c.refused, refusal{k, c.entry.Message})
		v.Failed++
	}
	return c.entry.End, true
}

// hasID compares text with a piece of the form, in which the id of this request
// is at a place (-1: nowhere).
func (b *Batch) hasID(text, piece []byte, at int) bool {
	if len(text) < len(piece) {
		return false
	}
	if at < 0 {
		return string(text[:len(piece)]) == string(piece)
	}
	end := at + IDDigits + 2
	return string(text[:at]) == string(piece[:at]) && string(text[at:end]) == string(b.ID()) && string(text[end:len(piece)]) == string(piece[end:])
}

// scan reads a reply whole.
func (c *Checker) scan(b *Batch, body []byte) (Verdict, error) {
	n := b.Size()
	if cap(c.seen) < n {
		c.seen = make([]bool, n)
	}
	c.seen, c.next, c.indexed = c.seen[:n], 0, false
	clear(c.seen)
	c.v, c.clean, c.places = Verdict{}, true, places{}
	if c.result == nil {
		c.result = c.take
	}
	if err := codec.ScanAnswer(body, &c.answer, c.result); err != nil {
		return Verdict{}, answerFailure(err)
	}
	switch {
	case c.answer.Error != nil:
		return Verdict{}, wire.Newf(wire.KindRPC, "error %d: %s", c.answer.Error.Code, c.answer.Error.Message)
	case !bytes.Equal(c.answer.ID, b.ID()):
		return Verdict{}, wire.Newf(wire.KindEnvelope, "the id of the reply is not that of the request")
	}
	for i, seen := range c.seen {
		if !seen {
			c.Note(wire.KindMissing, nil, b.key(i))
			c.Bad = append(c.Bad, Bad{i, Unknown})
			c.v.Failed++
		}
	}
	if c.clean && c.places.entries == n && c.places.good.End > 0 {
		c.learn(body)
	}
	return c.v, nil
}

// take takes one entry of a reply that is scanned.
func (c *Checker) take(e *codec.Entry) error {
	c.places.add(e)
	i := c.find(e.Identifier)
	switch {
	case i < 0:
		c.clean = false
		c.Note(wire.KindUnknown, nil, e.Identifier)
		c.v.Failed++
	case c.seen[i]:
		c.clean = false
		c.Note(wire.KindRepeated, nil, e.Identifier)
		c.Bad = append(c.Bad, Bad{i, Unknown})
		c.v.Failed++
	case e.Success:
		c.seen[i] = true
		c.v.Acknowledged++
	default:
		c.seen[i] = true
		c.Note(wire.KindRecordRefused, e.Message, e.Identifier)
		c.Bad = append(c.Bad, Bad{i, Refused})
		c.v.Failed++
	}
	return nil
}

// find gives the record that a result is about: the next one mostly, by its
// identifier otherwise; of records with one identifier the first without a
// result. -1: none.
func (c *Checker) find(identifier []byte) int {
	n := c.Batch.Size()
	if c.next < n && bytes.Equal(c.Batch.key(c.next), identifier) && !c.seen[c.next] {
		c.next++
		return c.next - 1
	}
	c.clean = false
	if !c.indexed {
		c.indexed = true
		c.index = make(map[string]int, n)
		for i := n - 1; i >= 0; i-- {
			c.index[Canonical(c.Batch.key(i))] = i
		}
	}
	at, ok := c.index[Canonical(identifier)]
	if !ok {
		return -1
	}
	for i := at; i < n; i++ {
		if !c.seen[i] && Canonical(c.Batch.key(i)) == Canonical(identifier) {
			c.next = i + 1
			return i
		}
	}
	return at
}

// Canonical makes equal identifiers equal texts: escapes of a string are undone.
// A number that is answered as a text stays another value.
func Canonical(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' && bytes.IndexByte(raw, '\\') >= 0 {
		if text, err := rawjson.StringText(raw); err == nil {
			return string(rawjson.AppendString(nil, text))
		}
	}
	return string(raw)
}

// answerFailure sorts an error of the codec.
func answerFailure(err error) *wire.Failure {
	switch {
	case errors.Is(err, rpc.ErrEnvelope):
		return wire.Newf(wire.KindEnvelope, "%v", err)
	case errors.Is(err, rpc.ErrResults):
		return wire.Newf(wire.KindResults, "%v", err)
	}
	return wire.Newf(wire.KindJSON, "%v", err)
}
