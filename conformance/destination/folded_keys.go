package destination

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// An endpoint that stores identifiers in another case than they are sent in would fail
// every check that looks for a record. It is one finding, of DUR-005; all other checks
// send identifiers in the case in which they are stored.

const foldedCheck = "DUR-005"

// foldedKeys is how identifiers of an object are stored.
type foldedKeys struct {
	upper   bool
	record  *record // as it was sent
	batch   *batch  // by which it was acknowledged
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

// learnFolding looks whether an acknowledged record is stored under its key in another
// case: a read-back finds it there only, or shows it so.
func (sc *scenario) learnFolding(b *batch, r *record) error {
	own, others := exchange.KeyText(r.key), inOtherCase(r)
	if sc.object.folded != nil || r.id.Type != rpc.TypeString || len(others) == 0 {
		return nil
	}
	seen, err := sc.observe(append([]*record{r}, others...))
	if err != nil {
		return err
	}
	k := &foldedKeys{record: r, batch: b, missing: seen[own].count == 0}
	at := own
	if k.missing {
		i := slices.IndexFunc(others, func(o *record) bool { return seen[exchange.KeyText(o.key)].count > 0 })
		if i < 0 {
			return nil
		}
		at = exchange.KeyText(others[i].key)
	}
	stored := at
	if value, err := wire.Parse(seen[at].fields[r.id.APIName]); err == nil && value.Is(wire.String) {
		stored, k.shown = value.Text, true
	}
	switch {
	case stored == own && k.missing:
		return harness("the read-back hook does not find the record %s of %q, and shows it when it is asked for %q: it changes the case of what it is asked for", r.key, sc.object.APIName, at)
	case stored == own:
		return nil
	}
	if k.upper = stored == strings.ToUpper(own); k.upper || stored == strings.ToLower(own) {
		sc.object.folded = k
	}
	return nil
}

// inOtherCase are the records that a read-back is asked for in the place of one.
func inOtherCase(r *record) (out []*record) {
	own := exchange.KeyText(r.key)
	for _, text := range []string{strings.ToLower(own), strings.ToUpper(own)} {
		if text != own {
			c := *r
			c.key = values.Quote(text)
			out = append(out, &c)
		}
	}
	return out
}

// reportFolding adds the finding about identifiers in another case.
func (sc *scenario) reportFolding() {
	if sc.Check().ID != foldedCheck || sc.object == nil || sc.object.folded == nil {
		return
	}
	k := sc.object.folded
	as := values.Quote(k.fold(exchange.KeyText(k.record.key)))
	actual := fmt.Sprintf("it is there as %s: its identifier was put into %s", as, k.name())
	if !k.missing {
		actual = fmt.Sprintf("the read-back shows it with %s %s", k.record.id.APIName, as)
	}
	sc.brokenAs(symptomRenamed, k.batch.operation, fmt.Sprintf("the acknowledged record %s in the destination, under this identifier", k.record.key), actual, k.batch.reply)
	cause, observed := "the endpoint stores identifiers in "+k.name(), k.missing && k.shown
	if observed {
		cause += ": a read-back finds nothing under the key that was sent, and the record under the same key in " + k.name() + "."
	} else {
		cause = wire.EitherCause(cause, "the read-back hook changes their case", "a look into the destination")
	}
	sc.ExplainAs(func(symptom string) bool { return symptom == symptomRenamed }, cause,
		"store the identifier as it was sent; where case must not matter, compare without it and keep what was sent.", observed)
}

// meetsFolded reports whether a record is stored under another key than its own, or
// together with another record of the scenario, because the endpoint folds case.
func (sc *scenario) meetsFolded(r *record) bool {
	own, k := exchange.KeyText(r.key), r.object.folded
	if k == nil || r.id.Type != rpc.TypeString {
		return false
	}
	return k.fold(own) != own || slices.ContainsFunc(sc.model.all(), func(e *expected) bool {
		other := exchange.KeyText(e.record.key)
		return e.record.object == r.object && other != own && k.fold(other) == own
	})
}

// noteFolding says in the report how identifiers are sent.
func (s *session) noteFolding(r *conformance.Report) {
	for _, o := range s.catalog.objects {
		if o.folded != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("identifiers of %s are stored in %s (%s): all other checks send them so", o.APIName, o.folded.name(), foldedCheck))
		}
	}
}
