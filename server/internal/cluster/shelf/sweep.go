package shelf

import (
	"context"
	"time"
)

// How often files without a name are looked for, by each process that removes some.
// They go ten minutes after the last one has read them.
const sweepEvery = time.Minute

const sweepFiles = `DELETE FROM ledger_files WHERE file IN (
	SELECT file FROM ledger_files WHERE gone < clock_timestamp() - interval '10 minutes' LIMIT 100 FOR UPDATE SKIP LOCKED
)`

// sweep deletes the files without a reader. What fails is left to the
// next one.
func (s *Shelf) sweep() {
	s.mu.Lock()
	due := time.Since(s.swept) > sweepEvery
	if due {
		s.swept = time.Now()
	}
	s.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.attempt)
	defer cancel()
	if _, err := s.pool.Exec(ctx, sweepFiles); err != nil {
		s.log.Warn("delete old files of the ledger", "error", plain(err))
	}
}
