package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/internal/rawjson"
)

// file is what a journal is read as: a member that is not known makes it a file of
// something else, and this one must not decide what is deleted.
var file = rawjson.File{Expected: "the journal of a run of destkit conform", Strict: true}

// errNoHeader says that a file ends before its first line is whole.
var errNoHeader = errors.New("it has no header")

// load reads all whole lines. The rest after the last line end is a line that
// was torn when the process died: its batch was not sent, its outcome is
// unknown, so it is left out. Anything wrong before that is an error, for a
// journal that was edited must not decide what is deleted.
func load(path string, from io.Reader) (*Journal, error) {
	j := Memory(Header{})
	j.path = path
	reader := bufio.NewReaderSize(from, 64<<10)
	for number := 1; ; number++ {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read journal %s: %w", path, err)
		}
		if err := j.replay(number, text); err != nil {
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
		return j.replayBatch(*entry.Batch)
	case entryOutcome:
		return j.replayOutcome(*entry.Outcome)
	case entryCleaned:
		if err := checkIdentifiers(entry.Cleaned.Identifiers); err != nil {
			return err
		}
		j.ledger.clean(*entry.Cleaned)
	}
	return nil
}

// replayBatch wants the numbers without a gap: a lost line is a lost key.
func (j *Journal) replayBatch(batch Batch) error {
	if batch.Seq != j.nextSeq {
		return fmt.Errorf("batch %d follows batch %d", batch.Seq, j.nextSeq-1)
	}
	if err := batch.check(); err != nil {
		return err
	}
	j.nextSeq++
	j.ledger.begin(batch)
	return nil
}

// replayOutcome derives what is unknown from the batch, not from the line.
func (j *Journal) replayOutcome(written Outcome) error {
	outcome, err := j.ledger.outcome(written.Seq, written.Acknowledged, written.Refused)
	if err != nil {
		return err
	}
	j.ledger.finish(outcome)
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
