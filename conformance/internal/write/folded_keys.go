package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// An endpoint that stores identifiers in another case than they are sent in would fail
// every check that looks for a record. It is one finding, of DUR-005; all other checks
// send identifiers in the case in which they are stored.

const foldedCheck = "DUR-005"

// foldedKeys is how identifiers of an object are stored.
type foldedKeys struct {
	upper   bool
	record  *Record // as it was sent
	batch   *Batch  // by which it was acknowledged
	missing bool    // a read-back finds the record under the other key only
	shown   bool    // it shows the other key as the value of the field
}

// fold writes a key as it is stored.
func (k *foldedKeys) fold(text string) string {
	switch {
	case k == nil:
		return text
	case k.upper:
		return strings.ToUpper(text)
	}
	return strings.ToLower(text)
}

func (k *foldedKeys) name() string {
	if k.upper {
		return "upper case"
	}
	return "lower case"
}

// LearnFolding looks whether a read-back shows an acknowledged record under its key in another case.
func (sc *Scenario) LearnFolding(b *Batch, r *Record) error {
	own := exchange.KeyText(r.Key)
	others := lists.Of(slices.DeleteFunc([]string{strings.ToLower(own), strings.ToUpper(own)}, func(text string) bool { return text == own }), r.Under)
	if sc.Object.Folded != nil || r.ID.Type != rpc.TypeString || len(others) == 0 {
		return nil
	}
	seen, err := sc.Observe(append([]*Record{r}, others...))
	if err != nil {
		return err
	}
	k := &foldedKeys{record: r, batch: b, missing: seen[own].Count == 0}
	at := own
	if k.missing {
		i := slices.IndexFunc(others, func(o *Record) bool { return seen[exchange.KeyText(o.Key)].Count > 0 })
		if i < 0 {
			return nil
		}
		at = exchange.KeyText(others[i].Key)
	}
	stored := at
	if value, err := wire.Parse(seen[at].Fields[r.ID.APIName]); err == nil && value.Is(wire.String) {
		stored, k.shown = value.Text, true
	}
	k.upper = stored == strings.ToUpper(own)
	switch {
	case stored == own && k.missing:
		return line.Harness("the read-back hook does not find the record %s of %q, and shows it when it is asked for %q: it changes the case of what it is asked for", r.Key, sc.Object.APIName, at)
	case stored != own && (k.upper || stored == strings.ToLower(own)):
		sc.Object.Folded = k
	}
	return nil
}

// ReportFolding adds the finding about identifiers in another case.
func (sc *Scenario) ReportFolding() {
	if sc.Check().ID != foldedCheck || sc.Object == nil || sc.Object.Folded == nil {
		return
	}
	k := sc.Object.Folded
	as := values.Quote(k.fold(exchange.KeyText(k.record.Key)))
	actual := fmt.Sprintf("it is there as %s: its identifier was put into %s", as, k.name())
	if !k.missing {
		actual = fmt.Sprintf("the read-back shows it with %s %s", k.record.ID.APIName, as)
	}
	sc.BrokenAs(SymptomRenamed, k.batch.Operation, fmt.Sprintf("the acknowledged record %s in the destination, under this identifier", k.record.Key), actual, k.batch.Reply)
	cause, observed := "the endpoint stores identifiers in "+k.name(), k.missing && k.shown
	if observed {
		cause += ": a read-back finds nothing under the key that was sent, and the record under the same key in " + k.name() + "."
	} else {
		cause = wire.EitherCause(cause, "the read-back hook changes their case", "a look into the destination")
	}
	sc.Explain(func(symptom string) bool { return symptom == SymptomRenamed }, cause,
		"store the identifier as it was sent; where case must not matter, compare without it and keep what was sent.", observed)
}

// MeetsFolded reports whether case folding stores a record under another key, or with another record.
func (sc *Scenario) MeetsFolded(r *Record) bool {
	own, k := exchange.KeyText(r.Key), r.Object.Folded
	if k == nil || r.ID.Type != rpc.TypeString {
		return false
	}
	return k.fold(own) != own || slices.ContainsFunc(sc.Model.All(), func(e *Expected) bool {
		other := exchange.KeyText(e.Record.Key)
		return e.Record.Object == r.Object && other != own && k.fold(other) == own
	})
}

// NoteFolding notes in the report how identifiers are sent.
func (s *Session) NoteFolding(r *conformance.Report) {
	for _, o := range s.Catalog.Objects {
		if o.Folded != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("identifiers of %s are stored in %s (%s): all other checks send them so", o.APIName, o.Folded.name(), foldedCheck))
		}
	}
}
