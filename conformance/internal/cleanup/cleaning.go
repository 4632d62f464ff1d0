package cleanup

import (
	"context"
	"encoding/json"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/internal/lists"
)

// Cleanup is a run that can clean up after itself.
type Cleanup struct {
	discover.Discovery
	Cleaned []*Cleaning // what the clean-up has seen; nil before it
	// Owns recognises the keys of the run of a journal; nil: all in it are this run's.
	owns *discover.Ownership
}

// Scenario is a scenario that can look for leftovers.
type Scenario struct {
	*write.Scenario
	Unmet write.Unmet // what was reported, for the search for its cause
	c     *Cleanup
}

// NewScenario is a scenario of a check for an object, or for none.
func (s *Cleanup) NewScenario(ctx context.Context, c *conformance.Check, o *write.Object) *Scenario {
	return &Scenario{Scenario: s.Session.NewScenario(ctx, c, o), c: s}
}

// Cleaning is what is known of the journalled keys of one object and field.
type Cleaning struct {
	Name, Field string
	Object      *write.Object // nil when it is not listed any more
	Keys        []journal.Key
	foreign     []journal.Key       // in the journal, and not made by its run
	Answers     map[string]Deletion // by text of the key
	sight       sight
	StillThere  []journal.Key // that the read-back shows after their delete
}

func (g *Cleaning) AnswerTo(k journal.Key) Deletion { return g.Answers[exchange.KeyText(k.Identifier)] }

func (g *Cleaning) answer(k journal.Key, d Deletion) { g.Answers[exchange.KeyText(k.Identifier)] = d }

// Deletion is how the removal of one key was answered.
type Deletion struct {
	Acknowledged bool
	hook         bool            // by the cleanup hook
	why          string          // else
	Refused      string          // the words of a refusal
	absent       bool            // they are those that keys get which were never there
	unanswered   bool            // nothing came back for it
	Reply        *exchange.Reply // to the delete batch
}

func identifiersOf(keys []journal.Key) []json.RawMessage {
	return lists.Of(keys, func(k journal.Key) json.RawMessage { return k.Identifier })
}
