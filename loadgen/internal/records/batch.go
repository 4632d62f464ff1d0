package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/destkit/destkit/destsim/rpc"
)

// Shape is one kind of batch: an object, an operation and a size. It is shared
// by all connections and never changed.
type Shape struct {
	Object    Object
	Operation string
	Size      int
	Plan      []byte // the sync plan as JSON
	identify  bool   // records hold the identifier only: deletes
}

// Sync is the sync that batches belong to, and its run: each object has its own, as
// every sync of the service writes into one object (spec 4).
type Sync struct{ ID, Run int64 }

// NewShape encodes the plan of a batch.
func NewShape(o Object, operation string, size int, as Sync) (*Shape, error) {
	plan := rpc.SyncPlan{
		Object: rpc.ObjectRef{APIName: o.APIName, Label: o.Label}, Operation: operation,
		SyncRunID: as.Run, SyncID: as.ID, Schema: map[string]rpc.SchemaField{},
	}
	for _, f := range o.Mapped {
		plan.Schema[f.APIName] = rpc.SchemaField{ActiveIdentifier: f.APIName == o.Identifier.APIName, Field: f}
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("encode plan of %s: %w", o.APIName, err)
	}
	return &Shape{Object: o, Operation: operation, Size: size, Plan: text, identify: operation == rpc.OperationDelete}, nil
}

// IDDigits is the length of an id; the last idCounter digits count the requests
// of a connection, those before identify the connection.
const (
	IDDigits  = 32
	IDCounter = 12
)

// HeadRoom is the place before a body where the head of its request is put, so
// that both go out in one write.
const HeadRoom = 512

// Batch is one prepared request of a connection. Its records stay; keys and id
// are patched in place before every send.
type Batch struct {
	shape *Shape
	buf   []byte
	start int // of the request in buf; the body is at room
	room  int
	idAt  int
	marks []Mark // in the order of the records
	keys  []span // the active identifier of each record, as it travels
	// Where the digits are in every key, the rest of which is the same; none in
	// keys that are otherwise. counted: now they are so many numbers in a row.
	digits  span
	counted bool
	From    int   // the row of the first record in its pool
	First   int64 // the number of its key, which the others follow but for those moved
	Moved   []Moved
}

type span struct{ from, to int }

// NewBatch makes an empty batch for an endpoint, whose requests begin with head.
func NewBatch(s *Shape, head []byte) *Batch {
	return &Batch{shape: s, room: max(HeadRoom, len(head)+32)}
}

// Fill writes the whole request for some rows. id has idDigits digits.
func (b *Batch) Fill(head []byte, rows []Row, id string) {
	buf := b.buf[:0]
	if cap(buf) < b.room {
		buf = make([]byte, 0, b.room+len(b.shape.Plan)+128+len(rows)*(len(rows[0].Text)+16))
	}
	buf = buf[:b.room]
	b.marks, b.keys = b.marks[:0], b.keys[:0]
	buf = append(buf, `{"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":`...)
	buf = append(buf, b.shape.Plan...)
	buf = append(buf, `,"records":[`...)
	for i := range rows {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = b.add(buf, &rows[i])
	}
	buf = append(buf, `]},"id":"`...)
	b.idAt = len(buf)
	buf = append(append(buf, id...), `"}`...)
	b.buf = buf
	b.putHead(head)
	b.digits, b.counted = b.findDigits(), false
}

// findDigits looks whether the keys differ in the digits of one mark alone, which
// is at the same place in all of them.
func (b *Batch) findDigits() span {
	if len(b.keys) == 0 || len(b.marks)%len(b.keys) != 0 {
		return span{}
	}
	perRow, first := len(b.marks)/len(b.keys), b.keys[0]
	for j, m := range b.marks[:perRow] {
		if m.At < first.from || m.At+m.Width > first.to {
			continue
		}
		d := span{m.At - first.from, m.At - first.from + m.Width}
		head, tail := b.buf[first.from:m.At], b.buf[m.At+m.Width:first.to]
		for i, k := range b.keys {
			own := b.marks[i*perRow+j]
			key := b.buf[k.from:k.to]
			if own.At != k.from+d.from || own.Width != m.Width || own.Base != m.Base || len(key) != d.to+len(tail) ||
				!bytes.Equal(key[:d.from], head) || !bytes.Equal(key[d.to:], tail) {
				return span{}
			}
		}
		return d
	}
	return span{}
}

// add appends one record.
func (b *Batch) add(buf []byte, r *Row) []byte {
	at := len(buf)
	if !b.shape.identify {
		buf = append(buf, r.Text...)
	} else {
		// The identifier is the first member of every row.
		buf = append(append(buf, r.Text[:r.To]...), '}')
	}
	for _, m := range r.Marks {
		if m.At < len(buf)-at {
			b.marks = append(b.marks, Mark{At: m.At + at, Width: m.Width, Base: m.Base})
		}
	}
	b.keys = append(b.keys, span{r.From + at, r.To + at})
	return buf
}

// putHead writes the head so that it ends where the body begins.
func (b *Batch) putHead(head []byte) {
	var digits [20]byte
	length := strconv.AppendInt(digits[:0], int64(len(b.buf)-b.room), 10)
	b.start = b.room - len(head) - len(length) - 4
	at := b.start + copy(b.buf[b.start:], head)
	at += copy(b.buf[at:], length)
	copy(b.buf[at:], "\r\n\r\n")
}

// Stamp puts the keys first, first+1, … into the records. Rows with several
// marks have the same number in all of them.
func (b *Batch) Stamp(first int64) {
	b.counted = b.digits.to > 0
	b.First, b.Moved = first, b.Moved[:0]
	perRow := 0
	if len(b.keys) > 0 {
		perRow = len(b.marks) / len(b.keys)
	}
	for j := range perRow {
		last := b.marks[j]
		if last.Width == KeyDigits {
			b.stampText(j, perRow, first)
			continue
		}
		PutDigits(b.buf[last.At:last.At+last.Width], last.Base+first)
		for i := j + perRow; i < len(b.marks); i += perRow {
			m := b.marks[i]
			NextDigits(b.buf[m.At:m.At+m.Width], b.buf[last.At:last.At+last.Width])
			last = m
		}
	}
}

// stampText is stamp for keys of keyDigits digits: copies of a known length are
// a few instructions.
func (b *Batch) stampText(from, step int, first int64) {
	var digits [KeyDigits]byte
	PutDigits(digits[:], first)
	for i := from; i < len(b.marks); i += step {
		*(*[KeyDigits]byte)(b.buf[b.marks[i].At:]) = digits
		if digits[KeyDigits-1]++; digits[KeyDigits-1] > '9' {
			digits[KeyDigits-1] = '9'
			NextDigits(digits[:], digits[:])
		}
	}
}

// StampOne puts one key into one record.
func (b *Batch) StampOne(record int, n int64) {
	b.counted = false
	b.Moved = append(b.Moved, Moved{record, n})
	perRow := len(b.marks) / len(b.keys)
	for _, m := range b.marks[record*perRow : (record+1)*perRow] {
		PutDigits(b.buf[m.At:m.At+m.Width], m.Base+n)
	}
}

// SetID puts the number of the request into its id.
func (b *Batch) SetID(n int64) {
	PutDigits(b.buf[b.idAt+IDDigits-IDCounter:b.idAt+IDDigits], n)
}

// ID is the id of the request, quotes included.
func (b *Batch) ID() []byte { return b.buf[b.idAt-1 : b.idAt+IDDigits+1] }

// Wire is the whole request.
func (b *Batch) Wire() []byte { return b.buf[b.start:] }

// Body is the request without its head.
func (b *Batch) Body() []byte { return b.buf[b.room:] }

// Size is the number of records.
func (b *Batch) Size() int { return len(b.keys) }

// key is the identifier of a record as it travels.
func (b *Batch) key(i int) []byte { k := b.keys[i]; return b.buf[k.from:k.to] }

// State is what a reply said of a record.
type State uint8

const (
	Acked   State = iota
	Refused       // one result without success
	Unknown       // no reply, or none that shows what happened
)

// Moved is a record of a batch whose key is not the next one after that before it.
type Moved struct {
	Record int
	Key    int64
}

// Bad is a record that a reply did not acknowledge.
type Bad struct {
	Record int
	State  State
}
