package destination

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
)

// journal records what the last batch did to a file. It has two slots next to the file, written
// in turn: a torn slot leaves the other, whose batch is whole. Where both were removed, nothing
// identifies a batch that is sent again: it is written twice.
type journal struct {
	root *os.Root
	name string // of the file
	last entryOfJournal
}

// entryOfJournal is the content of a slot.
type entryOfJournal struct {
	Sequence int64 `json:"sequence"`
	From, To int64 // the bytes of the batch in the file
	// Before are the last bytes before From: in another file they differ, and
	// nothing is cut off that.
	Before []byte
	// Syncs hold the keys of each sync's last batch.
	Syncs map[int64]journalKeys
}

type journalKeys struct {
	Run  int64
	Keys []byte // hashes, one after another
}

const (
	journalSyncs  = 16 // writing into one file
	journalBefore = 256
	journalLast   = int64(1) << 60 // batches, so that the next can be counted
)

// slotName is hidden, so that no object is made of it.
func (j *journal) slotName(n int64) string {
	return fmt.Sprintf(".%s.destkit-journal-%d", j.name, n)
}

// openJournal reads the journal of a file and cuts off what a crash has left
// of a batch.
func openJournal(root *os.Root, name string, f *os.File) (*journal, error) {
	j := &journal{root: root, name: name}
	unreadable := ""
	for slot := range int64(2) {
		e, ok := j.read(slot)
		switch {
		case ok && e.Sequence > j.last.Sequence:
			j.last = e
		case !ok && j.exists(slot):
			unreadable = j.slotName(slot)
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at file: %w", err)
	}
	// The journal is written before the file: a size within the last batch means that the batch
	// was torn, and one before it that it was never started.
	size, last := info.Size(), &j.last
	same := size >= last.From && bytes.Equal(before(f, last.From), last.Before)
	switch {
	// A crash tears a slot before its batch is started: then the other explains the file.
	case unreadable != "" && size > 0 && (!same || size > last.To):
		return nil, fmt.Errorf("the journal %s of %s is damaged, so what the last batch wrote is not known: see that the file ends with a whole row, then remove the journal", unreadable, name)
	case !same: // another program replaced the file: the written rows are gone
		j.last = entryOfJournal{Sequence: last.Sequence}
	case size < last.To:
		if err := f.Truncate(last.From); err != nil {
			return nil, fmt.Errorf("cut off a torn batch: %w", err)
		}
		if err := f.Sync(); err != nil {
			return nil, fmt.Errorf("cut off a torn batch: %w", err)
		}
		if err := j.takeBack(); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// takeBack drops the last entry, whose batch was never written, and goes back to
// the one before. The slot has to go: after two torn batches in a row it would
// be taken for that of a whole one.
func (j *journal) takeBack() error {
	if err := j.root.Remove(j.slotName(j.last.Sequence % 2)); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	if err := syncFolder(j.root); err != nil {
		return err
	}
	j.last, _ = j.read((j.last.Sequence + 1) % 2)
	return nil
}

// before reads the bytes before a place; nil where they cannot be read.
func before(f *os.File, at int64) []byte {
	text := make([]byte, min(at, journalBefore))
	if _, err := f.ReadAt(text, at-int64(len(text))); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return text
}

// read takes a slot only when it is whole, and returns what a batch can have done.
func (j *journal) read(slot int64) (e entryOfJournal, ok bool) {
	text, err := j.root.ReadFile(j.slotName(slot))
	if err != nil {
		return e, false
	}
	sum, body, found := strings.Cut(string(text), "\n")
	if !found || sum != checksum([]byte(body)) || json.Unmarshal([]byte(body), &e) != nil {
		return entryOfJournal{}, false
	}
	if e.Sequence < 0 || e.Sequence > journalLast || e.From < 0 || e.To < e.From || len(e.Before) > journalBefore {
		return entryOfJournal{}, false
	}
	return e, true
}

func checksum(body []byte) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 16)
}

// exists reports whether there is something in the place of a slot.
func (j *journal) exists(slot int64) bool {
	_, err := j.root.Lstat(j.slotName(slot))
	return err == nil
}

// keys are those of the last batch of the plan's run; none of another run.
func (j *journal) keys(plan *Plan) keySet {
	set := keySet{}
	last := j.last.Syncs[plan.SyncID]
	if last.Run != plan.SyncRunID {
		return set
	}
	for at := 0; at+len(keyHash{}) <= len(last.Keys); at += len(keyHash{}) {
		set[keyHash(last.Keys[at:])] = true
	}
	return set
}

// write announces a batch, durably.
func (j *journal) write(f *os.File, end, size int64, plan *Plan, written, known keySet) error {
	e := entryOfJournal{
		Sequence: j.last.Sequence + 1, From: end, To: end + size, Before: before(f, end),
		Syncs: map[int64]journalKeys{},
	}
	// Other syncs that write this file may still have to ask for theirs.
	for id, keys := range j.last.Syncs {
		if len(e.Syncs) < journalSyncs-1 {
			e.Syncs[id] = keys
		}
	}
	all := maps.Clone(written)
	maps.Copy(all, known)
	var keys []byte
	for key := range all {
		keys = append(keys, key[:]...)
	}
	e.Syncs[plan.SyncID] = journalKeys{plan.SyncRunID, keys}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_, statErr := j.root.Stat(j.slotName(e.Sequence % 2))
	slot, err := j.root.OpenFile(j.slotName(e.Sequence%2), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_, err = slot.Write(append(append([]byte(checksum(body)), '\n'), body...))
	if err = errors.Join(err, slot.Sync(), slot.Close()); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if statErr != nil { // the name is new
		return syncFolder(j.root)
	}
	return nil
}

// forgetJournal drops the journal of a file that was replaced.
func forgetJournal(root *os.Root, name string) error {
	j := &journal{root: root, name: name}
	for slot := range int64(2) {
		if err := root.Remove(j.slotName(slot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove journal: %w", err)
		}
	}
	return nil
}

// syncFolder makes names durable.
func syncFolder(root *os.Root) error {
	folder, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	err = errors.Join(folder.Sync(), folder.Close())
	if err != nil {
		return fmt.Errorf("write folder: %w", err)
	}
	return nil
}

// temporaryName is hidden next to the file that it becomes.
func temporaryName(name, purpose string) string {
	return "." + name + ".destkit-" + purpose
}

// createFor creates the file that is to take the place of name. Records are about
// people: no other user may read them, unless the owner of the file has allowed it.
func createFor(root *os.Root, name, temporary string) (*os.File, error) {
	f, err := root.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// replaceFile writes a file next to another and puts it in its place.
func replaceFile(root *os.Root, name, purpose string, fill func(w *bufio.Writer) error) error {
	temporary := temporaryName(name, purpose)
	f, err := createFor(root, name, temporary)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	// The content is durable before the name changes, and the name before the
	// acknowledgement: a crash never shows half a file.
	w := bufio.NewWriterSize(f, 64<<10)
	err = fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = root.Remove(temporary)
		return fmt.Errorf("write file: %w", err)
	}
	if err := root.Rename(temporary, name); err != nil {
		return fmt.Errorf("replace file: %w", err)
	}
	return syncFolder(root)
}
