package ledger

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// A log is the acknowledgements of one run, only ever appended to:
//
//	"dklogs_1" frame…
//	frame: size (4), number in the file (4), checksum of the payload (4), checksum of these 12 bytes (4), payload
//	payload: 's' and the run's beginning as JSON: always the first frame
//	         'b' and one or more batches, which were written and synced as one
//	         'r': the run was resumed here
//
// A frame that ends beyond the end of the file was being written when the
// process was killed: no caller knows it as durable, so it is cut. Any other
// wrong byte is damage.
const (
	logMagic  = "dklogs_1"
	frameHead = 16
	maxFrame  = 1 << 31

	frameStart  = 's'
	frameBatch  = 'b'
	frameResume = 'r'
)

// beginning is the first frame of a log.
type beginning struct {
	Run  int64 `json:"run"`
	Meta Meta  `json:"meta"`
}

// openFrame begins a frame; sealFrame fills in its head.
func openFrame(dst []byte, kind byte) []byte {
	return append(append(dst, make([]byte, frameHead)...), kind)
}

func sealFrame(frame []byte, place uint32) error {
	if len(frame) > maxFrame {
		return fmt.Errorf("%d bytes in one batch: the most are %d", len(frame), maxFrame)
	}
	payload := frame[frameHead:]
	binary.LittleEndian.PutUint32(frame, uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[4:], place)
	binary.LittleEndian.PutUint32(frame[8:], crc32.Checksum(payload, castagnoli))
	binary.LittleEndian.PutUint32(frame[12:], crc32.Checksum(frame[:12], castagnoli))
	return nil
}

func startFrame(b beginning) ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode meta: %w", err)
	}
	frame := append(openFrame([]byte(logMagic), frameStart), text...)
	return frame, sealFrame(frame[len(logMagic):], 0)
}

// logReader reads a log from its start. Its fields say how far it came.
type logReader struct {
	f       *file
	at, end int64  // at: the end of the last good frame
	place   uint32 // the number of the next frame
	frame   []byte
	records uint64 // read so far
	began   beginning
	resumed bool // the last frame said so
}

var errTorn = errors.New("the log ends in the middle of a frame")

// readLog reads the beginning of the log of a run, whose bytes up to end count.
// errTorn: the run was killed while it began.
func readLog(f *file, end, run int64) (*logReader, error) {
	l := &logReader{f: f, end: end}
	if end < int64(len(logMagic)) {
		return l, errTorn
	}
	var magic [len(logMagic)]byte
	if err := readFull(f, magic[:], 0); err != nil {
		return l, err
	}
	if string(magic[:]) != logMagic {
		return l, ErrDamaged
	}
	l.at = int64(len(logMagic))
	payload, err := l.next()
	switch {
	case errors.Is(err, io.EOF):
		return l, errTorn
	case err != nil:
		return l, err
	case payload[0] != frameStart || json.Unmarshal(payload[1:], &l.began) != nil || l.began.Run != run:
		return l, ErrDamaged
	}
	return l, nil
}

// next gives the payload of the next frame, never empty: io.EOF at the end,
// errTorn, or ErrDamaged.
func (l *logReader) next() ([]byte, error) {
	rest := l.end - l.at
	switch {
	case rest == 0:
		return nil, io.EOF
	case rest < frameHead:
		return nil, errTorn
	}
	var head [frameHead]byte
	if err := readFull(l.f, head[:], l.at); err != nil {
		return nil, err
	}
	size := int64(binary.LittleEndian.Uint32(head[:]))
	if crc32.Checksum(head[:12], castagnoli) != binary.LittleEndian.Uint32(head[12:]) ||
		binary.LittleEndian.Uint32(head[4:]) != l.place || size == 0 {
		return nil, ErrDamaged
	}
	if size > rest-frameHead {
		return nil, errTorn
	}
	l.frame = slices.Grow(l.frame[:0], int(size))[:size]
	if err := readFull(l.f, l.frame, l.at+frameHead); err != nil {
		return nil, err
	}
	if crc32.Checksum(l.frame, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, ErrDamaged
	}
	l.at += frameHead + size
	l.place++
	return l.frame, nil
}

// each reads the rest of the log. batch gets every batch before its
// records, resume every frame 'r'; either may be nil.
func (l *logReader) each(batch func(*Batch), record func(*logged) error, resume func()) error {
	for {
		start := *l
		payload, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch payload[0] {
		case frameBatch:
			l.resumed = false
			err = l.batches(payload[1:], batch, record)
		case frameResume:
			l.resumed = true
			if resume != nil {
				resume()
			}
		default:
			err = errRecord
		}
		if errors.Is(err, errRecord) { // its checksum is right: it was written so
			l.at, l.place, l.records = start.at, start.place, start.records
			return ErrDamaged
		}
		if err != nil {
			return err
		}
	}
}

func (l *logReader) batches(payload []byte, batch func(*Batch), record func(*logged) error) error {
	for len(payload) > 0 {
		var b Batch
		records, rest, err := cutBatchHead(payload, &b)
		if err != nil {
			return err
		}
		payload = rest
		if batch != nil {
			batch(&b)
		}
		for range records {
			l.records++
			r := logged{number: l.records}
			if payload, err = cutRecord(payload, &r); err != nil {
				return err
			}
			if err := record(&r); err != nil {
				return err
			}
		}
	}
	return nil
}
