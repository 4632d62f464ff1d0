package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Meta is what the state as a whole knows. Only a finished run changes it.
type Meta struct {
	Mapping   Fingerprint     `json:"mapping"`              // of the mapping whose records the fingerprints are of
	HighWater json.RawMessage `json:"high_water,omitempty"` // the caller's; nil when there is none
	Notes     json.RawMessage `json:"notes,omitempty"`      // the caller's: endpoint, identifier, and other values that must stay the same
	Below     []byte          `json:"below,omitempty"`      // entries whose keys sort before it are dropped: they are never needed again
	Run       int64           `json:"run"`                  // the last run in the state; the ledger fills it in
	Rows      int64           `json:"rows"`                 // entries of the state; the ledger fills it in
	Damaged   bool            `json:"damaged"`              // acknowledgements may be missing: the next run must be a full sync
	Reason    string          `json:"reason,omitempty"`     // the damage, as a sentence
}

// storedMeta is a Meta in a file. Every state has another generation, so that
// a meta file that belongs to an older state is none.
type storedMeta struct {
	Meta
	Generation int64 `json:"generation"`
}

// Kinds of damage, as Meta.Reason reports them.
const (
	stateDamaged = "the state file is damaged"
	metaDamaged  = "the meta file is damaged"
	logDamaged   = "the log of run %d is damaged; " + UnknownDeletes
)

// meta reads what counts now, and whether there is a whole state.
func (s *Sync) meta() (meta storedMeta, whole bool, err error) {
	reason, marked, err := s.damage()
	if err != nil {
		return meta, false, err
	}
	f, err := s.files.open(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		meta.Damaged, meta.Reason = marked, reason
		return meta, false, nil
	}
	if err != nil {
		return meta, false, err
	}
	defer f.Close()
	_, meta, err = readState(f)
	if errors.Is(err, ErrDamaged) {
		meta.Damaged, meta.Reason = true, stateDamaged
		return meta, false, nil
	}
	if err == nil {
		err = s.newerMeta(&meta)
	}
	if marked {
		meta.Damaged, meta.Reason = true, reason
	}
	return meta, !marked, err
}

// newerMeta puts the meta file in place of the state's, if it is of this state.
func (s *Sync) newerMeta(meta *storedMeta) error {
	f, err := s.files.open(metaFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	newer, err := readMeta(f)
	switch {
	case errors.Is(err, ErrDamaged):
		meta.Damaged, meta.Reason = true, metaDamaged
	case err != nil:
		return err
	case newer.Generation == meta.Generation:
		*meta = newer
	}
	return nil
}

// readMeta reads a meta file: one block.
func readMeta(f *file) (storedMeta, error) {
	var meta storedMeta
	size, err := f.size()
	if err != nil {
		return meta, err
	}
	r := &sortedReader{f: f, end: size}
	switch err := r.load(); {
	case err != nil && !errors.Is(err, io.EOF):
		return meta, err
	case err != nil || r.at != size || json.Unmarshal(r.block, &meta) != nil:
		return storedMeta{}, ErrDamaged
	}
	return meta, nil
}

// changeMeta gives the state another Meta and leaves it as it is.
func (s *Sync) changeMeta(meta storedMeta) error {
	s.crash(BeforeMerge)
	text, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("encode meta: %w", err)
	}
	if err := s.files.write(metaFile, sealed(text, 0)); err != nil {
		return fmt.Errorf("write meta: %w", err)
	}
	s.crash(AfterRename)
	return nil
}

// damage returns the damage found since the last state was written.
func (s *Sync) damage() (reason string, found bool, err error) {
	f, err := s.files.open(damagedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<10))
	return string(text), true, err
}
