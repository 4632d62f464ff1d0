package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Batch is what became of the records of one call.
type Batch struct {
	Operation              string    // of the call: insert, update, upsert, delete, append
	Calls                  []string  // ids of the calls that were made for it, the last one gave the verdicts
	StartedAt, CompletedAt time.Time // kept in microseconds, in UTC
	Records                []Record
	// Skipped counts invalid rows that are in no Record, because only a sample
	// of them is kept.
	Skipped int64
	// Fresh means that this run has nothing of these keys yet, in ascending
	// order of the keys. Append looks for none of them then, and fills in the
	// Place of each record, by which its next verdict is not looked for either.
	Fresh bool
}

// Place is where an open run keeps its data of a key; the zero Place is not
// known.
type Place struct {
	number     uint64 // of the record
	generation uint32
	at         uint32 // in the index of that generation
}

// Record is one record's verdict.
type Record struct {
	Key     []byte // canonical JSON text of the identifier; only an Invalid record may have none
	Print   Fingerprint
	Verdict Verdict
	Delete  bool   // the record was to be removed
	Message string // of the destination, or why the record is invalid
	Payload []byte // the JSON that was sent; nil when it is not kept
	Place   Place  // of the key's refusal that this verdict follows, from the same open run
	// Keep carries the Payload into the state, as Entry.Row.
	Keep bool
}

// Counters are sums over the log of a run. A key counts once, with its last
// verdict; invalid rows are no part of Updated and Failed.
type Counters struct {
	Updated int64 // acknowledged, deletes included
	Deleted int64 // acknowledged deletes
	Failed  int64 // refused
	Invalid int64 // rows that could not be sent
}

func (b *Batch) check() error {
	if b.Skipped < 0 {
		return fmt.Errorf("skipped rows: %d is less than 0", b.Skipped)
	}
	for i := range b.Records {
		switch r := &b.Records[i]; {
		case r.Verdict < Acknowledged || r.Verdict > Invalid:
			return fmt.Errorf("record %d: no verdict", i)
		case len(r.Key) == 0 && r.Verdict != Invalid:
			return fmt.Errorf("record %d: no key", i)
		}
	}
	return nil
}

// logged is a record as the log has it.
type logged struct {
	Record
	number   uint64 // its place in the log, from 1
	replaces uint64 // the number of the key's record before; 0: the key is new in this run
	was      outcome
}

// outcome is what a replaced record was counted as.
type outcome struct {
	verdict Verdict
	delete  bool
}

// count adds a record, and takes back the one that it replaces.
func (c *Counters) count(r *logged) {
	c.add(outcome{r.Verdict, r.Delete}, 1)
	if r.replaces > 0 {
		c.add(r.was, -1)
	}
}

func (c *Counters) add(o outcome, n int64) {
	switch o.verdict {
	case Acknowledged:
		c.Updated += n
		if o.delete {
			c.Deleted += n
		}
	case Rejected:
		c.Failed += n
	case Invalid:
		c.Invalid += n
	}
}

// The first byte of a record: its verdict, and what follows.
const (
	verdictBits = 3
	hasDelete   = 1 << 2
	hasPrint    = 1 << 3
	hasMessage  = 1 << 4
	hasPayload  = 1 << 5
	hasReplaced = 1 << 6
	hasKeep     = 1 << 7
)

func appendBatchHead(dst []byte, b *Batch) []byte {
	dst = appendOperation(dst, b)
	dst = binary.AppendVarint(dst, b.StartedAt.UnixMicro())
	dst = binary.AppendVarint(dst, b.CompletedAt.UnixMicro())
	dst = binary.AppendUvarint(dst, uint64(b.Skipped))
	return binary.AppendUvarint(dst, uint64(len(b.Records)))
}

func appendRecord(dst []byte, r *logged) []byte {
	head := len(dst)
	dst = append(dst, byte(r.Verdict))
	if r.Delete {
		dst[head] |= hasDelete
	}
	dst = appendBytes(dst, r.Key)
	if r.Print != (Fingerprint{}) {
		dst[head] |= hasPrint
		dst = append(dst, r.Print[:]...)
	}
	if r.Message != "" {
		dst[head] |= hasMessage
		dst = appendBytes(dst, r.Message)
	}
	if r.Payload != nil {
		dst[head] |= hasPayload
		if r.Keep {
			dst[head] |= hasKeep
		}
		dst = appendBytes(dst, r.Payload)
	}
	if r.replaces > 0 {
		dst[head] |= hasReplaced
		dst = binary.AppendUvarint(dst, r.number-r.replaces)
		was := byte(r.was.verdict)
		if r.was.delete {
			was |= hasDelete
		}
		dst = append(dst, was)
	}
	return dst
}

var errRecord = errors.New("a record of the log is not readable")

// cutBatchHead reads a batch without its records, and how many follow.
func cutBatchHead(src []byte, b *Batch) (records uint64, rest []byte, err error) {
	operation, src, ok := cutBytes(src)
	if !ok {
		return 0, nil, errRecord
	}
	b.Operation, b.Calls = cutOperation(string(operation))
	for _, at := range []*time.Time{&b.StartedAt, &b.CompletedAt} {
		micro, width := binary.Varint(src)
		if width <= 0 {
			return 0, nil, errRecord
		}
		*at, src = time.UnixMicro(micro).UTC(), src[width:]
	}
	skipped, src, ok := cutNumber(src)
	if !ok || skipped > 1<<62 {
		return 0, nil, errRecord
	}
	b.Skipped = int64(skipped)
	if records, src, ok = cutNumber(src); !ok || records > uint64(len(src)) {
		return 0, nil, errRecord
	}
	return records, src, nil
}

// cutRecord reads a record; its key and payload point into src.
func cutRecord(src []byte, r *logged) (rest []byte, err error) {
	if len(src) == 0 || src[0]&verdictBits == 0 || src[0]&(hasKeep|hasPayload) == hasKeep {
		return nil, errRecord
	}
	head, ok := src[0], false
	*r = logged{number: r.number, Record: Record{
		Verdict: Verdict(head & verdictBits), Delete: head&hasDelete != 0, Keep: head&hasKeep != 0,
	}}
	if r.Key, src, ok = cutBytes(src[1:]); !ok || (len(r.Key) == 0 && r.Verdict != Invalid) {
		return nil, errRecord
	}
	if head&hasPrint != 0 {
		if len(src) < len(r.Print) {
			return nil, errRecord
		}
		src = src[copy(r.Print[:], src):]
	}
	if head&hasMessage != 0 {
		var message []byte
		if message, src, ok = cutBytes(src); !ok {
			return nil, errRecord
		}
		r.Message = string(message)
	}
	if head&hasPayload != 0 {
		if r.Payload, src, ok = cutBytes(src); !ok {
			return nil, errRecord
		}
	}
	if head&hasReplaced == 0 {
		return src, nil
	}
	return cutReplaced(src, r)
}

func cutReplaced(src []byte, r *logged) (rest []byte, err error) {
	back, src, ok := cutNumber(src)
	if !ok || back == 0 || back >= r.number || len(src) == 0 {
		return nil, errRecord
	}
	r.replaces = r.number - back
	r.was = outcome{Verdict(src[0] & verdictBits), src[0]&hasDelete != 0}
	if r.was.verdict != Acknowledged && r.was.verdict != Rejected {
		return nil, errRecord
	}
	return src[1:], nil
}
