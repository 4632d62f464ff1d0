package destination

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// filesIdentifier is the member that identifies records of local_files where
// no column does. It is not written.
const filesIdentifier = "unique_id"

// The speed of local_files: one batch at a time, since a file has one end, and a
// large one, since each waits for the disk.
const (
	filesBatch            = 10_000
	filesRecordsPerSecond = 1_000_000
)

// fileLocks serialize the writers of one file, whichever syncs they work for.
type fileLocks struct {
	mu    sync.Mutex
	files map[string]*sync.Mutex
}

func (l *fileLocks) of(path string) *sync.Mutex {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[string]*sync.Mutex{}
	}
	if l.files[path] == nil {
		l.files[path] = &sync.Mutex{}
	}
	return l.files[path]
}

// filesSender writes rows into the files of a folder.
type filesSender struct {
	*filesConnection
	locks *fileLocks
	crash func(point string) // may be nil

	mu        sync.Mutex
	inherited map[string]keySet // by file and sync: keys that may be sent again
}

// Speed implements Sender.
func (s *filesSender) Speed(context.Context) (Speed, error) {
	return Speed{Speed: rpc.Speed{
		MaximumBatchSize: filesBatch, MaximumParallelBatches: 1, MaximumRecordsPerSecond: filesRecordsPerSecond,
	}}, nil
}

// failedWrite is the error of a batch that could not be written. Nothing of it
// is in the file.
func failedWrite(err error) *CallError {
	return &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeNetwork, Message: fileProblem(err)}
}

// lock waits for the file of an object.
func (s *filesSender) lock(object string) *sync.Mutex {
	return s.locks.of(filepath.Join(s.root, s.path, FileName(object, s.format)))
}

// Send appends the records, durably when it returns: in the file all of them
// are there, or none. A batch that was written and is sent again in the same
// run, because its acknowledgement was lost, is not written twice.
func (s *filesSender) Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error) {
	if plan.Operation != rpc.OperationInsert {
		return Reply{}, &CallError{
			Method: rpc.MethodSyncBatch, Outcome: OutcomeRPCError, Code: rpc.CodeInvalidParams,
			Message: fmt.Sprintf("rows of a file cannot be found again, so %s is not possible: append, or replace the file", foreign.Clip(plan.Operation, 32)),
		}
	}
	rows, err := readRows(plan, records)
	if err != nil {
		return Reply{}, failedWrite(err)
	}
	mu := s.lock(plan.Object.APIName)
	mu.Lock()
	defer mu.Unlock()
	// The wait may have been long; from here on the batch is written or it is not.
	if ctx.Err() != nil {
		return Reply{}, &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeCanceled, Message: "the call was cancelled"}
	}
	root, err := s.folder()
	if err != nil {
		return Reply{}, failedWrite(err)
	}
	defer root.Close()
	if err := s.appendRows(root, plan, rows); err != nil {
		return Reply{}, failedWrite(err)
	}
	return rows.reply(), nil
}

// appendRows adds the rows that are not in the file yet. The journal is durable before the file
// changes, so that a torn end can be recognized and cut.
func (s *filesSender) appendRows(root *os.Root, plan *Plan, rows *rows) (err error) {
	name := FileName(plan.Object.APIName, s.format)
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close file: %w", closeErr)
		}
	}()
	j, err := openJournal(root, name, f)
	if err != nil {
		return err
	}
	known := s.known(name, plan, j)
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("find the end of the file: %w", err)
	}
	layout, text, err := s.layout(root, f, end, plan, rows)
	if err != nil {
		return err
	}
	if layout.replaced { // the file was rewritten with more columns
		_ = f.Close()
		if f, err = root.OpenFile(name, os.O_RDWR, 0o600); err != nil {
			return fmt.Errorf("open file: %w", err)
		}
		if end, err = f.Seek(0, io.SeekEnd); err != nil {
			return fmt.Errorf("find the end of the file: %w", err)
		}
	}
	// Rows known to be in the file are acknowledged again and not written: the
	// caller sends them again because it never got the answer.
	written := make(keySet, rows.len())
	for i := range rows.len() {
		key, has := rows.key(i)
		if has {
			written[key] = true
			if known[key] {
				continue
			}
		}
		text = layout.appendRow(text, rows.at(i))
	}
	if len(text) == 0 { // the journal keeps its slots
		return nil
	}
	s.pass(BeforeFileJournal)
	if err := j.write(f, end, int64(len(text)), plan, written, known); err != nil {
		return err
	}
	s.pass(AfterFileJournal)
	return s.writeEnd(f, end, text)
}

// writeEnd adds text to a file and makes it durable; a partial write is cut off
// again.
func (s *filesSender) writeEnd(f *os.File, end int64, text []byte) (err error) {
	if s.crash != nil {
		// A process that dies in the middle of its write leaves this much.
		_, err = f.WriteAt(text[:len(text)/2], end)
		s.crash(MidFileWrite)
	}
	if err == nil {
		_, err = f.WriteAt(text, end)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Truncate(end)
		return fmt.Errorf("write file: %w", err)
	}
	s.pass(AfterFileWrite)
	return nil
}

// pass notifies a test where the process is.
func (s *filesSender) pass(point string) {
	if s.crash != nil {
		s.crash(point)
	}
}

// known gives the keys that may have been written before by this run of the
// sync: those of the journal when this sender first saw it, and those of the
// last batch since.
func (s *filesSender) known(name string, plan *Plan, j *journal) keySet {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := fmt.Sprintf("%s %d %d", name, plan.SyncID, plan.SyncRunID)
	last := j.keys(plan)
	// After a crash the batch may come back in parts, so its keys are kept with
	// those of every later batch of the run.
	if s.inherited[place] == nil {
		s.inherited[place] = last
		return last
	}
	all := maps.Clone(s.inherited[place])
	maps.Copy(all, last)
	return all
}

// fileColumns are the columns that a plan writes, in their order.
func fileColumns(plan *Plan) []string {
	return slices.DeleteFunc(slices.Clone(plan.order), func(name string) bool { return hiddenIn(plan, name) })
}

// hiddenIn returns the identifier that is no column.
func hiddenIn(plan *Plan, name string) bool {
	return name == filesIdentifier && name == plan.identifier
}
