package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// append writes one whole line; the caller holds the lock (or is alone). The
// end of the line is what sync must reach. A line that was written in part,
// on a full disk, is taken back, so that the journal stays readable.
func (j *Journal) append(entry line) (int64, error) {
	if j.broken != nil {
		return 0, j.broken
	}
	if j.disk == nil {
		return 0, nil
	}
	text, err := encode(entry)
	if err != nil {
		return 0, fmt.Errorf("write journal %s: %w", j.path, err)
	}
	if _, err := j.disk.Write(text); err != nil {
		err = fmt.Errorf("write journal %s: %w", j.path, err)
		if cut := j.disk.Truncate(j.size); cut != nil {
			j.broken = err
		}
		return 0, err
	}
	j.size += int64(len(text))
	return j.size, nil
}

// sync returns once everything up to end is on disk. Parallel batches share
// one fsync: whoever comes while one runs finds its line covered by the next.
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
		// After a failed fsync the pages may be lost although a later fsync
		// succeeds: the journal can no longer be trusted.
		err = fmt.Errorf("write journal %s: %w", j.path, err)
		j.mu.Lock()
		j.broken = err
		j.mu.Unlock()
		return err
	}
	j.synced = covered
	return nil
}

// encode leaves identifiers as they are: no HTML escapes.
func encode(entry line) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(entry); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
