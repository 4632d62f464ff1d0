package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/internal/rawjson"
)

// The kinds of lines.
const (
	entryRun     = "run"
	entryBatch   = "batch"
	entryOutcome = "outcome"
	entryCleaned = "cleaned"
)

// line is one line of the file; exactly the member that Entry names is there.
type line struct {
	Entry   string   `json:"entry"`
	Header  *Header  `json:"header,omitempty"`
	Batch   *Batch   `json:"batch,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
	Cleaned *Cleaned `json:"cleaned,omitempty"`
}

// Batch announces a batch.
type Batch struct {
	Seq         int64             `json:"seq"` // from 1, without gaps
	Object      string            `json:"object"`
	Field       string            `json:"field"` // the active identifier
	Operation   string            `json:"operation"`
	Identifiers []json.RawMessage `json:"identifiers"`
}

// Outcome is how a batch was answered, record by record.
type Outcome struct {
	Seq          int64             `json:"seq"`
	Acknowledged []json.RawMessage `json:"acknowledged"`
	Refused      []json.RawMessage `json:"refused"`
	Unknown      []json.RawMessage `json:"unknown"`
}

// Cleaned lists keys that are gone.
type Cleaned struct {
	Object      string            `json:"object"`
	Field       string            `json:"field"`
	Identifiers []json.RawMessage `json:"identifiers"`
}

func (b Batch) check() error {
	switch {
	case b.Object == "":
		return errors.New("batch without an object")
	case b.Field == "":
		return errors.New("batch without an identifier field")
	case b.Operation == "":
		return errors.New("batch without an operation")
	}
	return checkIdentifiers(b.Identifiers)
}

func checkIdentifiers(identifiers []json.RawMessage) error {
	for i, raw := range identifiers {
		if !json.Valid(raw) {
			return fmt.Errorf("identifier %d is not a JSON value", i)
		}
	}
	return nil
}

// State is what is known about a key.
type State string

// The states of a key. Refused means that every batch with it was refused;
// Deleted that the last thing acknowledged was a delete.
const (
	Written State = "written"
	Refused State = "refused"
	Unknown State = "unknown"
	Deleted State = "deleted"
)

// Key is one record that may exist at the destination.
type Key struct {
	Object     string
	Field      string
	Identifier json.RawMessage
	State      State
}

// file describes a journal to the reader; one with an unknown member must not decide deletions.
var file = rawjson.File{Expected: "the journal of a run of destkit conform", Strict: true}

// errNoHeader means that a file ends before its first line is complete.
var errNoHeader = errors.New("it has no header")

// load reads all whole lines. A torn rest means that the process died there: its batch was not
// sent, its outcome is unknown, so load leaves it out. Anything wrong before that is an error, for
// a journal that was edited must not decide deletions.
func load(path string, from io.Reader) (*Journal, error) {
	j := Memory(Header{})
	j.path = path
	reader := bufio.NewReaderSize(from, 64<<10)
	for number := 1; ; number++ {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = j.replay(number, text)
		}
		if err != nil {
			return nil, fmt.Errorf("read journal %s: %w", path, err)
		}
		j.size += int64(len(text))
	}
	if j.size == 0 {
		return nil, fmt.Errorf("read journal %s: %w; expected %s", path, errNoHeader, file.Expected)
	}
	return j, nil
}

// replay applies one line.
func (j *Journal) replay(number int, text []byte) error {
	var entry line
	if err := file.DecodeLine(number, text, &entry); err != nil {
		return err
	}
	if err := j.apply(number, entry); err != nil {
		return fmt.Errorf("line %d: %w", number, err)
	}
	return nil
}

func (j *Journal) apply(number int, entry line) error {
	if err := entry.check(); err != nil {
		return err
	}
	if (number == 1) != (entry.Entry == entryRun) {
		return errors.New("the first line, and no other, is the header of the run")
	}
	switch entry.Entry {
	case entryRun:
		j.header = *entry.Header
		if j.header.Run == "" {
			return errors.New("the header names no run")
		}
	case entryBatch:
		if entry.Batch.Seq != j.ledger.last+1 { // a lost line is a lost key
			return fmt.Errorf("batch %d follows batch %d", entry.Batch.Seq, j.ledger.last)
		}
		if err := entry.Batch.check(); err != nil {
			return err
		}
		j.ledger.begin(*entry.Batch)
	case entryOutcome: // unknown keys are derived from the batch, not from the line
		outcome, err := j.ledger.outcome(entry.Outcome.Seq, entry.Outcome.Acknowledged, entry.Outcome.Refused)
		if err != nil {
			return err
		}
		j.ledger.finish(outcome)
	case entryCleaned:
		if err := checkIdentifiers(entry.Cleaned.Identifiers); err != nil {
			return err
		}
		j.ledger.clean(*entry.Cleaned)
	}
	return nil
}

// check wants exactly the member that a line names.
func (entry *line) check() error {
	present := map[string]bool{
		entryRun: entry.Header != nil, entryBatch: entry.Batch != nil,
		entryOutcome: entry.Outcome != nil, entryCleaned: entry.Cleaned != nil,
	}
	if _, known := present[entry.Entry]; !known {
		return fmt.Errorf("unknown entry %q", entry.Entry)
	}
	for kind, there := range present {
		if there != (kind == entry.Entry) {
			return fmt.Errorf("entry %q without its member or with another's", entry.Entry)
		}
	}
	return nil
}

// append writes one whole line and returns its end, which sync must reach; the caller holds
// the lock or is alone. A line that was written in part, on a full disk, is taken back.
func (j *Journal) append(entry line) (int64, error) {
	if j.broken != nil {
		return 0, j.broken
	}
	if j.disk == nil {
		return 0, nil
	}
	text, err := rawjson.Encode(entry)
	if err != nil {
		return 0, fmt.Errorf("write journal %s: %w", j.path, err)
	}
	if _, err := j.disk.Write(text); err != nil {
		err = fmt.Errorf("write journal %s: %w", j.path, err)
		if j.disk.Truncate(j.size) != nil {
			j.broken = err
		}
		return 0, err
	}
	j.size += int64(len(text))
	return j.size, nil
}

// sync returns once everything up to end is on disk. Parallel batches share one fsync: a caller
// that comes while one runs finds its line covered by the next.
func (j *Journal) sync(end int64) error {
	if j.disk == nil {
		return nil
	}
	j.syncMu.Lock()
	defer j.syncMu.Unlock()
	if j.synced >= end {
		return nil
	}
	j.mu.Lock()
	covered, broken := j.size, j.broken
	j.mu.Unlock()
	if broken != nil {
		return broken
	}
	if err := j.disk.Sync(); err != nil {
		return j.breakWith(err) // its pages may be lost although a later fsync succeeds
	}
	j.synced = covered
	return nil
}

// breakWith ends the writing.
func (j *Journal) breakWith(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = fmt.Errorf("write journal %s: %w", j.path, err)
	return j.broken
}
