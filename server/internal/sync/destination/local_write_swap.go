package destination

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

var _ Swapper = (*filesSender)(nil)

// Swap writes a file next to that of the object. One sync has one at a time.
func (s *filesSender) Swap(_ context.Context, plan *Plan) (Swap, error) {
	root, err := s.folder()
	if err != nil {
		return nil, failedWrite(err)
	}
	w := &filesSwap{sender: s, plan: plan, root: root, name: FileName(plan.Object.APIName, s.format)}
	w.temporary = temporaryName(w.name, fmt.Sprintf("swap-%d", plan.SyncID))
	if w.file, err = createFor(root, w.name, w.temporary); err != nil {
		return nil, failedWrite(errors.Join(fmt.Errorf("create file: %w", err), root.Close()))
	}
	w.out = bufio.NewWriterSize(w.file, 256<<10)
	return w, nil
}

// filesSwap is a file that is still to take its place.
type filesSwap struct {
	sender          *filesSender
	plan            *Plan
	root            *os.Root
	name, temporary string

	mu     sync.Mutex
	file   *os.File
	out    *bufio.Writer
	layout *layout
	ended  bool
}

var errEnded = errors.New("the replacement of the file has ended")

// Send adds rows; they become durable with Commit. The columns are those of the
// plan, since the old file counts for nothing.
func (w *filesSwap) Send(ctx context.Context, plan *Plan, records [][]byte) (Reply, error) {
	rows, err := readRows(plan, records)
	if err != nil {
		return Reply{}, failedWrite(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return Reply{}, &CallError{Method: rpc.MethodSyncBatch, Outcome: OutcomeCanceled, Message: "the call was cancelled"}
	case w.ended:
		return Reply{}, failedWrite(errEnded)
	case plan.Operation == rpc.OperationDelete: // rows that are not sent are gone
		return rows.reply(), nil
	}
	var text []byte
	if text, err = w.begin(); err != nil {
		return Reply{}, failedWrite(err)
	}
	for i := range rows.len() {
		text = w.layout.appendRow(text, rows.at(i))
	}
	if _, err := w.out.Write(text); err != nil {
		return Reply{}, failedWrite(fmt.Errorf("write file: %w", err))
	}
	return rows.reply(), nil
}

// begin gives the header of the file, once.
func (w *filesSwap) begin() ([]byte, error) {
	if w.layout != nil {
		return nil, nil
	}
	w.layout = &layout{plan: w.plan, csv: w.sender.format == FormatCSV, columns: fileColumns(w.plan)}
	if !w.layout.csv {
		return nil, nil
	}
	if len(w.layout.columns) == 0 {
		return nil, errors.New("no column is mapped")
	}
	return appendHeader(nil, w.layout.columns), nil
}

// Commit makes the new file durable and replaces the old one, which stays
// whole until then.
func (w *filesSwap) Commit(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return failedWrite(errEnded)
	}
	text, err := w.begin() // no row was sent
	if err == nil {
		_, err = w.out.Write(text)
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		return failedWrite(fmt.Errorf("write file: %w", err))
	}
	mu := w.sender.lock(w.plan.Object.APIName)
	mu.Lock()
	defer mu.Unlock()
	// The journal goes first: without one nothing of the new file is cut off.
	if err := forgetJournal(w.root, w.name); err != nil {
		return failedWrite(err)
	}
	w.sender.pass(BeforeFileSwap)
	if err := w.root.Rename(w.temporary, w.name); err != nil {
		return failedWrite(fmt.Errorf("replace file: %w", err))
	}
	if err := syncFolder(w.root); err != nil {
		return failedWrite(err)
	}
	w.sender.pass(AfterFileSwap)
	w.ended = true
	if err := errors.Join(w.file.Close(), w.root.Close()); err != nil {
		return failedWrite(fmt.Errorf("close file: %w", err))
	}
	return nil
}

// Abort removes the new file.
func (w *filesSwap) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil
	}
	w.ended = true
	err := w.file.Close()
	if removeErr := w.root.Remove(w.temporary); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("remove file: %w", removeErr))
	}
	return errors.Join(err, w.root.Close())
}
