package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A state that is gone, damaged, or older than its logs is rebuilt from them: they
// name every key that the destination has acknowledged, as far as they are kept.
// The next run is a full sync all the same (spec 7.2 rule 5), but it knows which
// records to delete. Meta.Reason names the loss.

// Beginnings of Meta.Reason for a lost state.
const (
	stateMissing = "the state file is missing"
	stateOlder   = "the state file is older than the logs of its runs"
)

// How Meta.Reason goes on.
const (
	rebuiltWhole   = "its keys were rebuilt from the logs of %d runs"
	rebuiltPart    = "its keys were rebuilt from the logs of %d runs, which do not go back to the first; " + UnknownDeletes
	UnknownDeletes = "deletes of rows that left the source before are unknown"
)

// reasonEnd is between the loss and its repair.
const reasonEnd = "; "

// checkState reads every byte of the state. A changed one is rebuilt; the full
// sync that must follow sends missing entries again.
func (s *Sync) checkState(run int64) error {
	reason, _, err := s.doubt()
	if err != nil || reason == "" {
		return err
	}
	return s.rebuild(reason, run)
}

// doubt reads every byte of the state, and reports whether there is one and what is
// wrong with it; "": nothing.
func (s *Sync) doubt() (reason string, there bool, err error) {
	there, err = s.verifyState()
	if errors.Is(err, ErrDamaged) {
		return stateDamaged, there, nil
	}
	if err != nil {
		return "", there, err
	}
	newest, err := s.newestMerged()
	if err != nil {
		return "", there, err
	}
	newest = max(newest, s.expected)
	meta, _, err := s.meta()
	switch {
	case err != nil:
		return "", there, err
	case there && meta.Run < newest && meta.Reason != metaDamaged:
		return stateOlder, there, nil
	case there:
		return "", there, nil
	}
	// Killed before it was rebuilt.
	if was, _, _ := strings.Cut(meta.Reason, reasonEnd); was == stateDamaged || was == stateMissing {
		return was, there, nil
	}
	if orphan, err := s.orphanMeta(); err != nil || !orphan && newest == 0 {
		return "", there, err
	}
	return stateMissing, there, nil
}

// newestMerged is the newest run that is in the state according to the other files.
func (s *Sync) newestMerged() (newest int64, err error) {
	done, err := s.logs(doneSuffix)
	if err != nil {
		return 0, err
	}
	if len(done) > 0 {
		newest = done[len(done)-1]
	}
	open, err := s.logs(openSuffix)
	if err != nil {
		return 0, err
	}
	for _, run := range open {
		began, err := s.began(run)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return 0, err
		}
		newest = max(newest, began.Run)
	}
	return newest, nil
}

// orphanMeta reports whether there is a meta file, which goes with a state.
func (s *Sync) orphanMeta() (bool, error) {
	f, err := s.files.open(metaFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// began is the Meta that a log begins with: the zero one where the run was killed
// while it began, ErrDamaged where it cannot be read.
func (s *Sync) began(run int64) (Meta, error) {
	f, err := s.files.open(logName(run, openSuffix), logName(run, doneSuffix))
	if err != nil {
		return Meta{}, err
	}
	defer f.Close()
	size, err := f.size()
	if err != nil {
		return Meta{}, err
	}
	l, err := readLog(f, size, run)
	return l.began.Meta, untorn(err)
}

// kept is what the logs know of a state.
type kept struct {
	runs  []int64 // whose logs are put over it, in ascending order
	meta  Meta    // as it was when the newest of them began
	whole bool    // nothing is missing before them
}

// keptSince looks through the logs of the runs after one.
func (s *Sync) keptSince(after, but int64) (k kept, err error) {
	runs, err := s.logs(doneSuffix, openSuffix)
	if err != nil {
		return k, err
	}
	seen := map[int64]bool{after: true}
	k.whole = true
	for _, run := range runs {
		if run <= after {
			continue
		}
		began, err := s.began(run)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return k, err
		}
		if err != nil || began.Damaged || !seen[began.Run] || began.Run == 0 && began.Rows > 0 {
			k.whole = false
		}
		seen[run] = true
		if len(began.Notes) > 0 {
			k.meta = began
		}
		if run != but {
			k.runs = append(k.runs, run)
		}
	}
	if after = max(after, but); len(k.runs) > 0 {
		after = max(after, k.runs[len(k.runs)-1])
	}
	k.whole = k.whole && after >= s.expected
	return k, nil
}

// rebuild starts to rebuild the state; the next settle puts the logs into it. Killed
// anywhere, the next Begin goes on: the mark is durable before anything goes. run is
// the one that starts, and reads its own log.
func (s *Sync) rebuild(reason string, run int64) error {
	if err := s.files.write(damagedFile, []byte(reason)); err != nil {
		return err
	}
	after := int64(0)
	if reason == stateOlder {
		now, _, err := s.meta()
		if err != nil {
			return err
		}
		after = now.Run
	} else if err := errors.Join(s.files.remove(metaFile), s.files.remove(stateFile), s.files.sync()); err != nil {
		return err
	}
	k, err := s.keptSince(after, run)
	if err != nil {
		return err
	}
	// Without the notes the caller could not know what the keys are identifiers of.
	if len(k.meta.Notes) == 0 && after == 0 {
		return s.files.write(damagedFile, []byte(reason+reasonEnd+UnknownDeletes))
	}
	for _, one := range slices.Backward(k.runs) {
		err := s.files.rename(logName(one, doneSuffix), logName(one, openSuffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	reason += reasonEnd + rebuiltOf(k)
	if after > 0 {
		return s.files.write(damagedFile, []byte(reason))
	}
	meta := k.meta
	meta.Run, meta.Damaged, meta.Reason = 0, true, reason
	if err := s.mergeState(nil, storedMeta{meta, 1}); err != nil {
		return err
	}
	return s.files.remove(damagedFile)
}

func rebuiltOf(k kept) string {
	if k.whole {
		return fmt.Sprintf(rebuiltWhole, len(k.runs))
	}
	return fmt.Sprintf(rebuiltPart, len(k.runs))
}

// rebuilt rebuilds a state that went bad while a run was open, up to that run.
func (s *Sync) rebuilt(run int64) (storedMeta, error) {
	err := s.rebuild(stateDamaged, run)
	if err == nil {
		err = s.settle(run)
	}
	if err != nil {
		return storedMeta{}, fmt.Errorf("rebuild state: %w", err)
	}
	now, _, err := s.meta()
	return now, err
}

// Expect names the newest run that the caller knows to be in the state, 0 for none.
// The next Begin or Survey finds the state lost that does not have it, as when all
// files of the sync are gone, or are those of an earlier day.
func (s *Sync) Expect(run int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = run
}

// Lose notes that acknowledgements are missing that the caller knows of: the next run
// to come to its end must be a full sync.
func (s *Sync) Lose(reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		return fmt.Errorf("mark sync %d: %w", s.id, ErrBusy)
	}
	if err := s.files.write(damagedFile, []byte(reason)); err != nil {
		return fmt.Errorf("mark sync %d: %w", s.id, err)
	}
	return nil
}
