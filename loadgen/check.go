package loadgen

import (
	"bytes"
	"errors"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/failure"
	"github.com/destkit/destkit/loadgen/internal/records"
)

// verdict is what a reply says about the records of its batch.
type verdict struct {
	acknowledged int
	failed       int // records refused, without a result or with several
}

// checker judges replies (spec 7.2): the envelope, the id, and one result with
// success for every identifier that was sent. Nothing of it can be left out.
//
// Replies of one target have one form: what stands between its identifiers is
// the same every time. A reply that was scanned whole teaches the form; the next
// one is compared with it piece by piece and is then valid by construction. What
// differs is scanned again, one entry or all of it.
type checker struct {
	note   func(kind string, message, identifier []byte)
	form   form
	answer rpc.Answer
	entry  rpc.Entry

	b       *batch
	seen    []bool // by record, while a reply is scanned
	next    int
	index   map[string]int // of the identifiers, once they come out of order
	indexed bool
	v       verdict
	places  places    // of the reply, for its form
	clean   bool      // in order, byte for byte, one result each
	refused []refusal // noted once the reply has been seen to its end
	bad     []bad     // records of the latest reply that are not acknowledged
	piece   []byte    // an entry as it is expected next
	result  func(*rpc.Entry) error
}

// places are where entries stand in a reply.
type places struct {
	entries    int
	first, end int // of all entries
	second     int
	firstEnd   int
	good       rpc.Entry // one with success, 0 without
	goodAt     int       // its number
}

// refusal is a result without success in a reply that has the form.
type refusal struct {
	record  int
	message []byte
}

// form is the text around the identifiers of a reply. head ends before the
// first entry; id tells where the id stands in head, or in tail where it comes
// last.
type form struct {
	known              bool
	head, tail         []byte
	idInHead, idInTail int // -1: not there
	before, after      []byte
	between            []byte // the text between two entries, with a comma
	glue               []byte // after, between and before in one piece
	single             bool   // learnt from one record: between is not known
}

// check judges one reply with status 200 or an error object. The error is a
// *Failure, and then the whole batch is lost.
func (c *checker) check(b *batch, body []byte) (verdict, error) {
	c.b, c.bad = b, c.bad[:0]
	if v, ok := c.same(b, body); ok {
		return v, nil
	}
	return c.scan(b, body)
}

// same compares a reply with the form. It is not ok where only a scan can tell.
func (c *checker) same(b *batch, body []byte) (verdict, bool) {
	v, ok := c.compare(b, body)
	if !ok {
		return verdict{}, false
	}
	for _, r := range c.refused {
		c.note(failure.KindRecordRefused, r.message, b.key(r.record))
		c.bad = append(c.bad, bad{r.record, refused})
	}
	return v, true
}

// fits is same without counting anything.
func (c *checker) fits(b *batch, body []byte) bool {
	_, ok := c.compare(b, body)
	return ok
}

// compare looks at one entry after the other.
func (c *checker) compare(b *batch, body []byte) (v verdict, ok bool) {
	f := &c.form
	if !f.known || f.single && b.size() > 1 || !b.hasID(body, f.head, f.idInHead) {
		return v, false
	}
	c.refused = c.refused[:0]
	i, last := len(f.head), b.size()-1
	for k := 0; ; k++ {
		// body[i:] is the entry of record k.
		var good int
		if b.counted {
			good, i = c.countedRun(body, i, k, last)
		} else {
			good, i = c.run(body, i, k, last)
		}
		v.acknowledged += good
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
// acknowledged one after the other. What stands between two identifiers is one
// piece. It returns where the next entry begins.
func (c *checker) run(body []byte, i, k, last int) (good, at int) {
	f := &c.form
	opened := false // what comes before the identifier was compared already
	for ; k < last; k++ {
		key := c.b.key(k)
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
func (c *checker) countedRun(body []byte, i, k, last int) (good, at int) {
	if k >= last {
		return 0, i
	}
	f := &c.form
	c.piece = append(append(c.piece[:0], f.before...), c.b.key(k)...)
	c.piece = append(append(c.piece, f.after...), f.between...)
	from := len(f.before) + c.b.digits.from
	piece, digits := c.piece, c.piece[from:len(f.before)+c.b.digits.to]
	for ; k < last && i+len(piece) <= len(body) && string(body[i:i+len(piece)]) == string(piece); k++ {
		good, i = good+1, i+len(piece)
		if n := len(digits) - 1; digits[n] != '9' {
			digits[n]++
		} else {
			records.NextDigits(digits, digits)
		}
	}
	return good, i
}

// one compares a single entry, or reads it: a refusal, mostly, that stands in
// the middle of others. It returns where the entry ends.
func (c *checker) one(v *verdict, body []byte, i, k int) (end int, ok bool) {
	f, key := &c.form, c.b.key(k)
	at := i + len(f.before)
	from := at + len(key)
	end = from + len(f.after)
	if end <= len(body) && string(body[i:at]) == string(f.before) && string(body[at:from]) == string(key) && string(body[from:end]) == string(f.after) {
		v.acknowledged++
		return end, true
	}
	if !rpc.ScanEntry(body, i, &c.entry) || !bytes.Equal(c.entry.Identifier, key) {
		return i, false
	}
	if c.entry.Success {
		v.acknowledged++
	} else {
		c.refused = append(c.refused, refusal{k, c.entry.Message})
		v.failed++
	}
	return c.entry.End, true
}

// hasID compares text with a piece of the form, in which the id of this request
// stands at a place (-1: nowhere).
func (b *batch) hasID(text, piece []byte, at int) bool {
	if len(text) < len(piece) {
		return false
	}
	if at < 0 {
		return string(text[:len(piece)]) == string(piece)
	}
	end := at + idDigits + 2
	return string(text[:at]) == string(piece[:at]) && string(text[at:end]) == string(b.id()) && string(text[end:len(piece)]) == string(piece[end:])
}

// scan reads a reply whole.
func (c *checker) scan(b *batch, body []byte) (verdict, error) {
	n := b.size()
	if cap(c.seen) < n {
		c.seen = make([]bool, n)
	}
	c.seen, c.next, c.indexed = c.seen[:n], 0, false
	clear(c.seen)
	c.v, c.clean, c.places = verdict{}, true, places{}
	if c.result == nil {
		c.result = c.take
	}
	if err := rpc.ScanAnswer(body, &c.answer, c.result); err != nil {
		return verdict{}, answerFailure(err)
	}
	switch {
	case c.answer.Error != nil:
		return verdict{}, failure.Newf(failure.KindRPC, "error %d: %s", c.answer.Error.Code, c.answer.Error.Message)
	case !bytes.Equal(c.answer.ID, b.id()):
		return verdict{}, failure.Newf(failure.KindEnvelope, "the id of the reply is not that of the request")
	}
	for i, seen := range c.seen {
		if !seen {
			c.note(failure.KindMissing, nil, b.key(i))
			c.bad = append(c.bad, bad{i, unknown})
			c.v.failed++
		}
	}
	if c.clean && c.places.entries == n && c.places.good.End > 0 {
		c.learn(body)
	}
	return c.v, nil
}

// take takes one entry of a reply that is scanned.
func (c *checker) take(e *rpc.Entry) error {
	c.places.add(e)
	i := c.find(e.Identifier)
	switch {
	case i < 0:
		c.clean = false
		c.note(failure.KindUnknown, nil, e.Identifier)
		c.v.failed++
	case c.seen[i]:
		c.clean = false
		c.note(failure.KindRepeated, nil, e.Identifier)
		c.bad = append(c.bad, bad{i, unknown})
		c.v.failed++
	case e.Success:
		c.seen[i] = true
		c.v.acknowledged++
	default:
		c.seen[i] = true
		c.note(failure.KindRecordRefused, e.Message, e.Identifier)
		c.bad = append(c.bad, bad{i, refused})
		c.v.failed++
	}
	return nil
}

// find gives the record that a result is about: the next one mostly, by its
// identifier otherwise; of records with one identifier the first without a
// result. -1: none.
func (c *checker) find(identifier []byte) int {
	n := c.b.size()
	if c.next < n && bytes.Equal(c.b.key(c.next), identifier) && !c.seen[c.next] {
		c.next++
		return c.next - 1
	}
	c.clean = false
	if !c.indexed {
		c.indexed = true
		c.index = make(map[string]int, n)
		for i := n - 1; i >= 0; i-- {
			c.index[canonical(c.b.key(i))] = i
		}
	}
	at, ok := c.index[canonical(identifier)]
	if !ok {
		return -1
	}
	for i := at; i < n; i++ {
		if !c.seen[i] && canonical(c.b.key(i)) == canonical(identifier) {
			c.next = i + 1
			return i
		}
	}
	return at
}

// canonical makes equal identifiers equal texts: escapes of a string are undone.
// A number that is answered as a text stays another value.
func canonical(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' && bytes.IndexByte(raw, '\\') >= 0 {
		if text, err := rpc.StringText(raw); err == nil {
			return string(rpc.AppendString(nil, text))
		}
	}
	return string(raw)
}

// answerFailure sorts an error of the codec.
func answerFailure(err error) *failure.Failure {
	switch {
	case errors.Is(err, rpc.ErrEnvelope):
		return failure.Newf(failure.KindEnvelope, "%v", err)
	case errors.Is(err, rpc.ErrResults):
		return failure.Newf(failure.KindResults, "%v", err)
	}
	return failure.Newf(failure.KindJSON, "%v", err)
}
