package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/destkit/destkit/server/internal/call"
)

// Where several processes share an installation they share the faults: the board
// lies in the database, and each process has a copy that says which calls have to
// be counted there. As long as nothing is armed, or nothing that a call concerns,
// the database is not asked.

// keptBoard is the board as it lies in the database.
type keptBoard struct {
	Next   int64       `json:"next"`
	Faults []keptFault `json:"faults"`
}

// keptFault is a fault with where its draws stand.
type keptFault struct {
	ArmedFault
	Draws []byte `json:"draws"`
}

func readBoard(state []byte) (*board, error) {
	kept, b := keptBoard{}, &board{}
	if len(state) == 0 {
		return b, nil
	}
	if err := json.Unmarshal(state, &kept); err != nil {
		return nil, fmt.Errorf("read setting %s: %w", Setting, err)
	}
	b.next = kept.Next
	for i := range kept.Faults {
		a := kept.Faults[i].ArmedFault
		a.draws = &rand.PCG{}
		if err := a.draws.UnmarshalBinary(kept.Faults[i].Draws); err != nil {
			return nil, fmt.Errorf("read setting %s: %w", Setting, err)
		}
		a.latency, _ = time.ParseDuration(a.Fault.Latency) // it was checked; others than latency have none
		b.list = append(b.list, &a)
	}
	return b, nil
}

func (b *board) text() ([]byte, error) {
	kept := keptBoard{Next: b.next, Faults: []keptFault{}}
	for _, a := range b.list {
		draws, err := a.draws.MarshalBinary()
		if err != nil {
			return nil, err
		}
		kept.Faults = append(kept.Faults, keptFault{*a, draws})
	}
	return json.Marshal(kept)
}

// edit is a change of the board as one of its text.
func edit(change func(*board) error) func([]byte) ([]byte, error) {
	return func(state []byte) ([]byte, error) {
		b, err := readBoard(state)
		if err != nil {
			return nil, err
		}
		if err := change(b); err != nil {
			return nil, err
		}
		return b.text()
	}
}

// changeForAll is in force in every process when it comes back.
func (f *Faults) changeForAll(ctx context.Context, change func(*board) error) error {
	return f.settings.Set(ctx, Setting, edit(change))
}

// forgetForAll is changeForAll for a change that leaves nothing: it takes away what
// cannot be read, too.
func (f *Faults) forgetForAll(ctx context.Context, none func(*board) error) error {
	return f.settings.Set(ctx, Setting, func(state []byte) ([]byte, error) {
		if _, err := readBoard(state); err != nil {
			state = nil
		}
		return edit(none)(state)
	})
}

// Follow takes over what is armed now.
func (f *Faults) Follow(_ context.Context, state []byte) error {
	b, err := readBoard(state)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.board = *b
	f.Armed.Store(int64(len(b.list)))
	return nil
}

func (f *Faults) allOfAll(ctx context.Context) ([]ArmedFault, error) {
	state, err := f.settings.Read(ctx, Setting)
	if err != nil {
		return nil, err
	}
	b, err := readBoard(state)
	if err != nil {
		return nil, err
	}
	return b.copies(), nil
}

// countTime bounds the counting of one call: the faults must not hold up more than
// they are asked to.
const countTime = 5 * time.Second

// fireForAll counts a call where all processes count theirs. A call that cannot be
// counted is not struck.
func (f *Faults) fireForAll(c *call.Call, phase string) (fired []ArmedFault) {
	ctx, cancel := context.WithTimeout(c.Ctx, countTime)
	defer cancel()
	err := f.settings.Count(ctx, Setting, edit(func(b *board) error {
		fired = b.fire(c, phase)
		return nil
	}))
	if err != nil {
		f.log.Warn("a call cannot be counted by the faults", "operation", c.Op.ID, "error", err)
		return nil
	}
	return fired
}
