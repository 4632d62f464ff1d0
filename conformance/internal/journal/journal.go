// Package journal owns the write-ahead journal of a run that writes into
// a destination of others: one NDJSON line, on disk before the batch that it
// announces is sent, so that every key that may have been written is known
// after any end of the process. It refuses to know how records are sent,
// answered or deleted, and it never holds a secret: the target comes in
// redacted, and only identifiers that the run made up are kept.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Header is the first line of a journal.
type Header struct {
	Run string `json:"run"`
	// Suite is "service" in the journal of a judged service: its identifiers are
	// then beginnings of names. "" is a destination.
	Suite   string    `json:"suite,omitempty"`
	Target  string    `json:"target"` // redacted by the caller
	Started time.Time `json:"started"`
}

// disk is what the journal needs of a file; tests give it one that is full.
type disk interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
}

// Journal is one run's journal, safe for parallel batches. A journal in memory
// (see Memory) behaves alike and survives nothing.
type Journal struct {
	path   string
	header Header
	closer io.Closer

	mu      sync.Mutex
	disk    disk // nil in memory
	size    int64
	broken  error
	ledger  ledger
	nextSeq int64

	syncMu sync.Mutex
	synced int64
}

// Memory makes a journal without a file.
func Memory(header Header) *Journal {
	return &Journal{header: header, ledger: newLedger(), nextSeq: 1}
}

// Create starts a journal at path with mode 0600. An existing journal of the
// same run is continued, its torn last line cut off; one of another run is an
// error, for it may be the only trace of records that were left behind.
func Create(path string, header Header) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return resume(path, header)
	}
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	return begin(path, file, header)
}

// begin writes the header into an empty file.
func begin(path string, file *os.File, header Header) (*Journal, error) {
	j := Memory(header)
	j.path, j.disk, j.closer = path, file, file
	end, err := j.append(line{Entry: entryRun, Header: &header})
	if err == nil {
		err = j.sync(end)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return j, nil
}

// resume continues the journal of the same run.
func resume(path string, header Header) (*Journal, error) {
	j, err := Open(path)
	if errors.Is(err, errNoHeader) {
		// The run ended before its first line was whole: nothing was sent.
		file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, fmt.Errorf("create journal: %w", err)
		}
		return begin(path, file, header)
	}
	if err != nil {
		return nil, err
	}
	if j.header.Run != header.Run {
		j.Close()
		return nil, fmt.Errorf("create journal %s: it belongs to run %s; clean that run first or name another file", path, j.header.Run)
	}
	return j, nil
}

// Open reads a journal and makes it ready for further lines, as the clean-up
// of an earlier run needs it. A torn last line is cut off.
func Open(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j, err := loadRegular(path, file)
	if err == nil {
		if err = file.Truncate(j.size); err != nil {
			err = fmt.Errorf("open journal: cut torn line: %w", err)
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	j.disk, j.closer, j.synced = file, file, j.size
	return j, nil
}

// Read reads a journal without changing it; what is then noted in it stays in
// memory.
func Read(path string) (*Journal, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	defer file.Close()
	return loadRegular(path, file)
}

// loadRegular refuses devices and pipes, which may never end and keep nothing.
func loadRegular(path string, file *os.File) (*Journal, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open journal %s: it is no regular file; a journal must survive the end of the program", path)
	}
	return load(path, file)
}

// Header gives the first line.
func (j *Journal) Header() Header { return j.header }

// Path is the file, "" in memory.
func (j *Journal) Path() string { return j.path }

// Begin notes that a batch is about to be sent and gives its number. It
// returns after the line is on disk; after an error nothing may be sent.
// Identifiers are the raw JSON values of the field in the batch.
func (j *Journal) Begin(object, field, operation string, identifiers []json.RawMessage) (int64, error) {
	j.mu.Lock()
	batch := Batch{Seq: j.nextSeq, Object: object, Field: field, Operation: operation, Identifiers: identifiers}
	if err := batch.check(); err != nil {
		j.mu.Unlock()
		return 0, fmt.Errorf("write journal: %w", err)
	}
	end, err := j.append(line{Entry: entryBatch, Batch: &batch})
	if err != nil {
		j.mu.Unlock()
		return 0, err
	}
	j.nextSeq++
	j.ledger.begin(batch)
	j.mu.Unlock()
	if err := j.sync(end); err != nil {
		j.mu.Lock()
		j.ledger.abandon(batch)
		j.mu.Unlock()
		return 0, err
	}
	return batch.Seq, nil
}

// Finish notes how the batch was answered. Identifiers that stand in neither
// list have no answer and stay unknown. It need not reach the disk at once: a
// lost outcome only makes keys unknown.
func (j *Journal) Finish(seq int64, acknowledged, refused []json.RawMessage) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	outcome, err := j.ledger.outcome(seq, acknowledged, refused)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	// What happened is known even where it cannot be written down.
	j.ledger.finish(outcome)
	_, err = j.append(line{Entry: entryOutcome, Outcome: &outcome})
	return err
}

// Cleaned notes that keys are gone from the destination. It returns after the
// line is on disk.
func (j *Journal) Cleaned(keys []Key) error {
	if len(keys) == 0 {
		return nil
	}
	j.mu.Lock()
	var end int64
	for _, cleaned := range grouped(keys) {
		var err error
		if end, err = j.append(line{Entry: entryCleaned, Cleaned: &cleaned}); err != nil {
			j.mu.Unlock()
			return err
		}
		j.ledger.clean(cleaned)
	}
	j.mu.Unlock()
	return j.sync(end)
}

// Pending lists the keys that may exist at the destination, in the order in
// which they were first sent: all that stood in a batch and were not cleaned
// since. A refused key is listed too, for a refusal may be a lie; State tells.
func (j *Journal) Pending() []Key {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ledger.pending()
}

// Close writes what is left to disk and closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	end, closer := j.size, j.closer
	j.closer = nil
	j.mu.Unlock()
	if closer == nil {
		return nil
	}
	err := j.sync(end)
	j.mu.Lock()
	if j.broken == nil {
		j.broken = fmt.Errorf("write journal %s: %w", j.path, os.ErrClosed)
	}
	j.mu.Unlock()
	if closed := closer.Close(); err == nil && closed != nil {
		err = fmt.Errorf("close journal: %w", closed)
	}
	return err
}
