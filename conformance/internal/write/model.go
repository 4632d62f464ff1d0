package write

import (
	"encoding/json"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/destsim/rpc"
)

func (r *Record) Place() model.Place {
	return model.Place{Object: r.Object.APIName, Field: r.ID.APIName, Key: exchange.KeyText(r.Key)}
}

// Expected is what the destination must hold for a record, as the ledger of the run has it.
type Expected struct {
	model.State
	Record *Record // as it was sent last
}

// AsSent is a record that must be there as this batch had it.
func AsSent(r *Record) *Expected {
	return &Expected{State: model.State{Known: true, Exists: true, Written: true, Values: r.Values}, Record: r}
}

// view is what the ledger of the run says of the records of one scenario.
type view struct {
	ledger *model.Ledger
	at     map[model.Place]*Expected
	order  []model.Place
}

func (s *Session) NewView() *view { return &view{ledger: &s.Ledger, at: map[model.Place]*Expected{}} }

// Get returns what must hold for a record now.
func (v *view) Get(r *Record) *Expected {
	p := r.Place()
	e := v.at[p]
	if e == nil {
		e = &Expected{Record: r}
		v.at[p] = e
		v.order = append(v.order, p)
	}
	e.State = v.ledger.State(p)
	return e
}

// Follow makes the records of a batch those of the scenario.
func (v *view) Follow(b *Batch) {
	for _, r := range b.Records {
		v.Get(r).Record = r
	}
}

// All returns the expectations in the order in which their keys were first sent.
func (v *view) All() []*Expected {
	out := make([]*Expected, len(v.order))
	for i, p := range v.order {
		out[i] = v.Get(v.at[p].Record)
	}
	return out
}

// entered is a batch as the ledger of the run has it.
func (sc *Scenario) entered(operation string, records []*Record) *model.Batch {
	b := &model.Batch{Check: sc.Check().ID, Operation: operation}
	for _, r := range records {
		n := model.Naming{Place: r.Place(), Values: r.Values, Odd: r.Odd.What != "" || len(r.Odd.Fields) > 0, Near: r.Near || !r.ID.Identifier, Bulk: sc.Check().Load || r.isLarge()}
		if operation == rpc.OperationDelete {
			n.Values = map[string]json.RawMessage{r.ID.APIName: r.Key}
		}
		for _, f := range r.Object.Identifiers() {
			if raw, sent := n.Values[f.APIName]; sent && f.APIName != r.ID.APIName && string(raw) != "null" {
				n.Others = append(n.Others, model.Place{Object: r.Object.APIName, Field: f.APIName, Key: exchange.KeyText(raw)})
			}
		}
		n.Fixed = func(field string) bool {
			f, declared := r.Object.Field(field)
			return declared && !f.Updateable && field != r.ID.APIName
		}
		b.Records = append(b.Records, n)
	}
	return b
}

// enter tells the ledger how a batch was answered; unsent: no byte of it has left.
func (sc *Scenario) enter(e *model.Batch, b *Batch, unsent bool) {
	answers := make([]model.Answer, len(e.Records))
	for i := range answers {
		answers[i] = sc.answerOf(b, i, unsent)
	}
	if b.Reply != nil && len(b.Reply.Body) <= mostExhibited {
		e.Exhibit = b.Reply
	}
	sc.Ledger.End(e, answers)
}

// isLarge reports whether a record takes long to read back.
func (r *Record) isLarge() bool {
	const most = 4 << 10
	n := 0
	for _, raw := range r.Values {
		n += len(raw)
	}
	return n > most
}

// mostExhibited is the size of a reply up to which the ledger keeps it for a finding.
const mostExhibited = 16 << 10

func (sc *Scenario) answerOf(b *Batch, i int, unsent bool) model.Answer {
	switch r := b.Records[i]; {
	case unsent:
		return model.Answer{Outcome: model.Unsent}
	case b.Reply == nil:
		return model.Answer{}
	case sc.Skipped(b, r) && b.Succeeded(r):
		return model.Answer{Outcome: model.Acknowledged, Words: "skipped " + SkipWords(b, r)}
	case b.Succeeded(r):
		return model.Answer{Outcome: model.Acknowledged}
	case b.Failed(r):
		return model.Answer{Outcome: model.Refused, Words: "skipped " + SkipWords(b, r)}
	case b.Refused(r):
		return model.Answer{Outcome: model.Refused, Words: b.RefusalOf(r)}
	}
	return model.Answer{}
}
