package destsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// common is a store that several simulators share, which makes them one
// destination. What a person can change in a destination while it runs is the
// same in all of them: schema, speed, limits, token, a fault of the downstream.
// What serves tests of one process stays with that process: armed faults and
// violations, the journal, counts of calls, figures.
type common interface {
	// Join makes this simulator one of those that run. first is called by one
	// that runs alone; a further one is refused when its base is another.
	Join(base []byte, first func() error) error
	// State gives the state and its version, or nil when that is have.
	State(have int64) (version int64, state []byte, err error)
	// Publish replaces the state of version have, and gives its new version; 0:
	// another process has replaced it meanwhile.
	Publish(have int64, state []byte) (version int64, err error)
	// Take takes n out of a bucket that fills up by perSecond, up to burst.
	Take(bucket string, n, perSecond, burst int64) (bool, error)
}

// commonState is what simulators have in common beside the records.
type commonState struct {
	Settings savedSettings `json:"settings"`
	Objects  []savedObject `json:"objects"`
}

// publishTries bounds how often a change meets changes by others.
const publishTries = 20

// join shares the state of a store that others share too.
func (s *Sim) join() error {
	shared, ok := s.store.(common)
	if !ok {
		return nil
	}
	base := sha256.Sum256(encode(struct {
		Objects   []ObjectConfig
		Speed     rpc.Speed
		RateLimit int64
	}{s.config.Objects, s.config.Speed, s.config.RateLimit}))
	s.common = shared
	first := func() error {
		return s.change(func() error { // on top of what those that ran before have left
			kept := s.catalogue.Load().customFields()
			if err := s.initial(); err != nil {
				return err
			}
			return s.editCatalogue(func(c *catalogue) (*catalogue, error) { return c.withCustom(kept) })
		})
	}
	if err := shared.Join(base[:], first); err != nil {
		return err
	}
	return s.refresh()
}

// refresh takes over what other simulators have changed since. It comes before
// every call: what one of them was told, all of them answer at once (spec 4.2,
// statelessness rule 1).
func (s *Sim) refresh() error {
	if s.common == nil {
		return nil
	}
	have := s.commonVersion.Load()
	version, state, err := s.common.State(have)
	if err != nil || state == nil {
		return err
	}
	s.commonLock.Lock()
	defer s.commonLock.Unlock()
	if version <= s.commonVersion.Load() {
		return nil // another call was faster
	}
	return s.takeOver(version, state)
}

// takeOver puts a state into force; commonLock is held.
func (s *Sim) takeOver(version int64, text []byte) error {
	var state commonState
	if err := strictly(text, &state); err != nil {
		return fmt.Errorf("read common state: %w", err)
	}
	objects := make([]*object, len(state.Objects))
	for i := range state.Objects {
		var err error
		if objects[i], err = state.Objects[i].object(); err != nil {
			return fmt.Errorf("read common state: %w", err)
		}
	}
	limited := *s.speed.Load() != state.Settings.Speed || s.rateLimit.Load() != state.Settings.RateLimit
	s.putIntoForce(&state.Settings)
	if limited {
		s.limits.Store(newLimits(s))
	}
	s.commonVersion.Store(version)
	return s.editCatalogue(func(*catalogue) (*catalogue, error) { return catalogueOf(objects), nil })
}

// change makes a change of what simulators have in common, by fn, which changes
// this one. Where others have made one at the same time, fn is called again on
// top of theirs.
func (s *Sim) change(fn func() error) error {
	if s.common == nil {
		return fn()
	}
	s.commonLock.Lock()
	defer s.commonLock.Unlock()
	for range publishTries {
		have := s.commonVersion.Load()
		version, state, err := s.common.State(have)
		if err != nil {
			return err
		}
		if state != nil {
			if err := s.takeOver(version, state); err != nil {
				return err
			}
		}
		before := s.state()
		if err := fn(); err != nil {
			return errors.Join(err, s.takeOver(version, before))
		}
		after := s.state()
		if version > 0 && bytes.Equal(before, after) {
			return nil
		}
		next, err := s.common.Publish(version, after)
		if err != nil {
			return errors.Join(err, s.takeOver(version, before))
		}
		if next > 0 {
			s.commonVersion.Store(next)
			return nil
		}
	}
	return errors.New("other simulators change the destination all the time: try again")
}

// state is what this simulator has in force, as text.
func (s *Sim) state() []byte {
	state := commonState{Settings: s.savedSettings(), Objects: []savedObject{}}
	state.Settings.Chance, state.Settings.Calls, state.Settings.Total = nil, nil, 0 // of this process
	for _, o := range s.catalogue.Load().objects {
		state.Objects = append(state.Objects, *o.saved())
	}
	text, err := json.Marshal(state)
	if err != nil {
		return nil // it never fails
	}
	return text
}

// RemoveStore deletes a destination whose store is the URL of a database
// (Config.Store), with its schema and every record. Simulators that still run on it
// fail from then on. One that is not there is no error; a schema that holds
// something else is refused, and so is a store that is no database.
func RemoveStore(url string) error { return store.Remove(url) }
