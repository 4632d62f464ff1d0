package records

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/destkit/destkit/destsim/rpc"
)

// Bare is what the generator does for itself, without a network: keys into a
// prepared batch, and the check of its reply.
type Bare struct {
	rows  []Row
	batch *Batch
	check Checker
	reply []byte
	first int64
	calls int64
}

// NewBare prepares batches of a size for an object with ten fields. One record
// in refused is answered without success; 0: none.
func NewBare(size, refused int) (*Bare, error) {
	o, err := bareObject().ForOperation(rpc.OperationUpsert, "", nil)
	if err != nil {
		return nil, err
	}
	keys, err := NewKeys("", "ba5e00", 0, 0)
	if err != nil {
		return nil, err
	}
	s, err := NewShape(o, rpc.OperationUpsert, size, Sync{1, 1})
	if err != nil {
		return nil, err
	}
	b := &Bare{batch: NewBatch(s, bareHead)}
	m := &Maker{Object: o, Keys: keys, Random: rand.New(rand.NewPCG(1, 1))}
	for range size {
		b.rows = append(b.rows, m.Row())
	}
	b.batch.Fill(bareHead, b.rows, "00000000000000000000000000000000")
	b.check.Note = func(string, []byte, []byte) {}
	b.Prepare()
	return b, b.answer(refused)
}

// bareHead is the head of a request, as that of an endpoint.
var bareHead = []byte("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nAccept-Encoding: identity\r\nContent-Type: application/json\r\nUser-Agent: destkit\r\nContent-Length: ")

// bareObject has a field of every type and a few more.
func bareObject() Object {
	o := Object{Object: rpc.Object{APIName: "contact", Label: "Contact"}, Operations: []string{rpc.OperationUpsert}}
	for i, name := range []string{"email", "first_name", "last_name", "age", "score", "balance", "birthday", "seen_at", "active", "city"} {
		types := []string{rpc.TypeString, rpc.TypeString, rpc.TypeString, rpc.TypeInteger, rpc.TypeFloat, rpc.TypeDecimal, rpc.TypeDate, rpc.TypeDateTime, rpc.TypeBoolean, rpc.TypeString}
		o.Fields = append(o.Fields, rpc.Field{
			APIName: name, Label: name, Identifier: i == 0, Required: i == 0, Createable: true, Updateable: true, Type: types[i],
		})
	}
	return o
}

// answer writes the reply to the batch.
func (b *Bare) answer(refused int) error {
	var results []rpc.RecordResult
	for i := range b.batch.Size() {
		r := rpc.RecordResult{Identifier: b.batch.key(i), Success: true}
		if refused > 0 && i%refused == refused-1 {
			r.Success, r.ErrorMessage = false, "refused"
		}
		results = append(results, r)
	}
	result, _ := json.Marshal(rpc.BatchResult{RecordResults: results})
	b.reply = rpc.AppendResponse(nil, b.batch.ID(), result)
	if _, err := b.Check(); err != nil {
		return fmt.Errorf("check a reply: %w", err)
	}
	return nil
}

// Prepare puts new keys and a new id into the batch, the same as before, so that
// the reply fits.
func (b *Bare) Prepare() {
	b.batch.Stamp(b.first)
	b.batch.SetID(b.calls)
}

// Check judges the reply; it returns how many records were acknowledged.
func (b *Bare) Check() (int, error) {
	v, err := b.check.Check(b.batch, b.reply)
	return v.Acknowledged, err
}
