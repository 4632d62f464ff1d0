// Package journal owns the write-ahead journal of a run that writes into a destination of
// others: one NDJSON line, on disk before the batch that it announces is sent, so that every
// key that may have been written is known after any end of the process. It knows nothing of
// how records are sent, answered or deleted, and it never holds a secret: the target comes
// in redacted, and only identifiers that the run made up are kept.
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
	Close() error
}

// Journal is one run's journal, on disk or in memory, safe for parallel batches.
type Journal struct {
	path   string
	header Header

	mu     sync.Mutex
	disk   disk // nil in memory
	size   int64
	broken error
	ledger ledger

	syncMu sync.Mutex
	synced int64
}

// Memory makes a journal without a file.
func Memory(header Header) *Journal {
	return &Journal{header: header, ledger: ledger{open: map[int64]Batch{}, keys: map[name]*fate{}}}
}

// Create starts a journal at path with mode 0600. An existing journal of the
// same run is continued, its torn last line cut off; one of another run is an
// error, for it may be the only trace of records that were left behind.
func Create(path string, header Header) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j, err := resume(path, file)
	switch {
	case errors.Is(err, errNoHeader): // it is new, or its run ended before anything was sent
		j = Memory(header)
		j.path, j.disk = path, file
		err = j.start()
	case err == nil && j.header.Run != header.Run:
		err = fmt.Errorf("create journal %s: it belongs to run %s; clean that run first or name another file", path, j.header.Run)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return j, nil
}

// start makes the header the first line of the file.
func (j *Journal) start() error {
	if err := j.disk.Truncate(0); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	end, err := j.append(line{Entry: entryRun, Header: &j.header})
	if err != nil {
		return err
	}
	return j.sync(end)
}

// Open reads a journal for the clean-up of its run. A torn last line is cut off.
func Open(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j, err := resume(path, file)
	if err != nil {
		file.Close()
	}
	return j, err
}

func resume(path string, file *os.File) (*Journal, error) {
	j, err := loadRegular(path, file)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(j.size); err != nil {
		return nil, fmt.Errorf("open journal: cut torn line: %w", err)
	}
	j.disk, j.synced = file, j.size
	return j, nil
}

// Read reads a journal without changing it; later notes in it stay in memory.
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
	batch := Batch{Seq: j.ledger.last + 1, Object: object, Field: field, Operation: operation, Identifiers: identifiers}
	if err := batch.check(); err != nil {
		j.mu.Unlock()
		return 0, fmt.Errorf("write journal: %w", err)
	}
	end, err := j.append(line{Entry: entryBatch, Batch: &batch})
	if err != nil {
		j.mu.Unlock()
		return 0, err
	}
	j.ledger.begin(batch)
	j.mu.Unlock()
	if err := j.sync(end); err != nil {
		j.mu.Lock()
		j.ledger.close(batch)
		j.mu.Unlock()
		return 0, err
	}
	return batch.Seq, nil
}

// Finish notes how the batch was answered. Identifiers in neither list have no answer and stay
// unknown. It need not reach the disk at once: a lost outcome only makes keys unknown.
func (j *Journal) Finish(seq int64, acknowledged, refused []json.RawMessage) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	outcome, err := j.ledger.outcome(seq, acknowledged, refused)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	// The outcome is known even where it cannot be written down.
	j.ledger.finish(outcome)
	_, err = j.append(line{Entry: entryOutcome, Outcome: &outcome})
	return err
}

// Cleaned notes that keys are gone from the destination. It returns after the line is on disk.
func (j *Journal) Cleaned(keys []Key) error {
	for len(keys) > 0 {
		cleaned := Cleaned{Object: keys[0].Object, Field: keys[0].Field}
		for len(keys) > 0 && keys[0].Object == cleaned.Object && keys[0].Field == cleaned.Field {
			cleaned.Identifiers = append(cleaned.Identifiers, keys[0].Identifier)
			keys = keys[1:]
		}
		j.mu.Lock()
		end, err := j.append(line{Entry: entryCleaned, Cleaned: &cleaned})
		if err == nil {
			j.ledger.clean(cleaned)
		}
		j.mu.Unlock()
		if err != nil {
			return err
		}
		if err := j.sync(end); err != nil {
			return err
		}
	}
	return nil
}

// Pending lists the keys that may exist at the destination, in the order in which they were first
// sent: all keys of batches that were not cleaned since. It lists refused keys too, since a refusal
// may be false; State has the difference.
func (j *Journal) Pending() []Key {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ledger.pending()
}

// Close writes the rest to disk and closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	end, closed := j.size, j.disk == nil || errors.Is(j.broken, os.ErrClosed)
	j.mu.Unlock()
	if closed {
		return nil
	}
	err := j.sync(end)
	_ = j.breakWith(os.ErrClosed)
	if closed := j.disk.Close(); err == nil && closed != nil {
		err = fmt.Errorf("close journal: %w", closed)
	}
	return err
}
