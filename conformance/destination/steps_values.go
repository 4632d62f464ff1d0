package destination

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// valueSteps send records whose values or identifiers are written in a table,
// and records that must not be accepted.
func valueSteps() []definition {
	return []definition{
		step(`^the service sends new records with these (values|identifiers) with `+whichOperation+`:$`, func(sc *scenario) any { return sc.sendsThese }),
		step(`^the service sends the same values with every operation:$`, func(sc *scenario) any { return sc.sendsEverywhere }),
		step(`^the same values fare the same in every operation$`, func(sc *scenario) any { return sc.valuesFareTheSame }),
		step(`^the service sends (\d+) good records and (\d+) bad records? with `+whichOperation+`(, if one is known|)$`, func(sc *scenario) any { return sc.sendsBad }),
	}
}

// badField is the field that makes a record bad: the author's fixture, else a
// required field that is left null.
func (sc *scenario) badField() (fields map[string]json.RawMessage, sure, ok bool) {
	if bad := sc.opts.Fixtures[sc.object.APIName].Bad; len(bad) > 0 {
		fields = map[string]json.RawMessage{}
		for name, raw := range bad {
			fields[name] = json.RawMessage(raw)
		}
		return fields, true, true
	}
	for _, f := range sc.object.Fields {
		if f.Required && !f.Identifier && f.Createable {
			return map[string]json.RawMessage{f.APIName: json.RawMessage("null")}, false, true
		}
	}
	return nil, false, false
}

// sendsBad puts the bad records at places that are not symmetrical: results that
// are reversed, shifted or copied from a neighbour then show. A control, the same
// records without what is bad, goes first: only beside it a refusal means that the
// bad value was the reason.
func (sc *scenario) sendsBad(good, bad int, which, ifKnown string) error {
	fields, sure, known := sc.badField()
	if !known && ifKnown != "" {
		return nil
	}
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	if most := sc.largestBatch(); good > 0 && most < good+bad {
		if most < bad+1 {
			return notApplicable("the endpoint takes batches of %d at most: a bad record has no neighbours", most)
		}
		good = most - bad
	}
	sc.badSure = sure
	control, err := sc.make(good+bad, ops[0], rpc.Field{}, &sending{})
	if err != nil {
		return err
	}
	sc.sets = []set{{ops[0], control}}
	if err := sc.sendSets(&sending{}); err != nil {
		return err
	}
	for _, b := range sc.latest {
		for _, r := range b.records {
			if !b.succeeded(r) {
				return inconclusive("fixtures", "the same records without the bad value are not accepted, so that a refusal shows nothing: %s", foreign.Clip(b.whyOf(r), 200))
			}
		}
	}
	records, err := sc.make(good+bad, ops[0], rpc.Field{}, &sending{})
	if err != nil {
		return err
	}
	for i := range bad {
		at := badPlace(i, good+bad)
		for name, raw := range fields {
			records[at] = records[at].with(name, sc.made.Expand(string(raw), records[at].seed, records[at].key))
		}
		sc.bad = append(sc.bad, records[at])
	}
	sc.sets = []set{{ops[0], records}}
	return sc.sendSets(&sending{})
}

// badPlace is the place of the i-th bad record among n: the second, then the
// fifth and so on, so that no other order of the results looks the same.
func badPlace(i, n int) int { return min(3*i+1, n-1) }

// sendsThese sends one record for each row: | identifier | or | type | value | or
// | type | value | what it is |.
func (sc *scenario) sendsThese(what, which string, table *engine.Table) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	id, err := sc.object.identifier()
	if err != nil {
		return err
	}
	if what == "identifiers" {
		return sc.sendsIdentifiers(ops[0], table)
	}
	records, err := sc.withValues(id, table)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return sc.noField(table)
	}
	sc.sets = []set{{ops[0], records}}
	if err := sc.sendSets(&sending{alone: true}); err != nil {
		return err
	}
	return sc.sendRefusedApart(ops[0])
}

// shownBy is a row that stands for the values that one change of an endpoint alters, and
// variedFormats one for further values of the formats that fields ask for.
var (
	shownBy       = regexp.MustCompile(`^values that would show "(.+)"$`)
	variedFormats = "values of the format that a name asks for"
)

// withValues makes a record for each value of a table, each value once.
func (sc *scenario) withValues(id rpc.Field, table *engine.Table) ([]*record, error) {
	var out []*record
	sent := map[string]bool{}
	for _, row := range engine.Rows(table) {
		rows := [][]string{row}
		if m := shownBy.FindStringSubmatch(row[1]); m != nil {
			rows = nil
			for _, raw := range values.Revealing(row[0], m[1]) {
				rows = append(rows, []string{row[0], string(raw)})
			}
			if len(rows) == 0 {
				return nil, harness("no values of a %s would show %q", row[0], m[1])
			}
		}
		for _, one := range rows {
			if sent[one[0]+one[1]] {
				continue
			}
			sent[one[0]+one[1]] = true
			made, err := sc.withRow(id, one)
			if err != nil {
				return nil, err
			}
			out = append(out, made...)
		}
	}
	return out, nil
}

// withRow makes the records of one row.
func (sc *scenario) withRow(id rpc.Field, row []string) ([]*record, error) {
	if row[1] == variedFormats {
		return sc.withFormats(id)
	}
	r, err := sc.withValue(id, row)
	if r == nil {
		return nil, err
	}
	return []*record{r}, err
}

// withFormats makes records with further values of the formats that fields ask for.
func (sc *scenario) withFormats(id rpc.Field) ([]*record, error) {
	var out []*record
	for n := 0; ; n++ {
		r, err := sc.newRecord(sc.object, id)
		if err != nil {
			return nil, err
		}
		for _, f := range sc.object.Fields {
			varied := sc.made.Varied(f, r.seed)
			if f.Type != rpc.TypeString || f.Array || !bothWays(f) || f.APIName == id.APIName || sc.object.avoids(f.APIName) || n >= len(varied) {
				continue
			}
			r = r.with(f.APIName, varied[n])
			r.odd.fields = append(slices.Clone(r.odd.fields), f)
		}
		if len(r.odd.fields) == 0 {
			return out, nil
		}
		r.odd.what = fmt.Sprintf("variant %d of its format", n+1)
		out = append(out, r)
	}
}

// noField says that no field takes the values of a table: there is none of the type, or
// all of them are left out because they refuse every value.
func (sc *scenario) noField(table *engine.Table) error {
	for _, row := range engine.Rows(table) {
		for _, f := range sc.object.Fields {
			if l := sc.object.lessons[f.APIName]; l != nil && l.avoid && fits(f, row[0]) {
				return inconclusive("fixtures", "%s refuses every value that was tried, so that nothing was seen of its type: %s", f.APIName, foreign.Clip(l.refusal, 200))
			}
		}
	}
	return notApplicable("%s has no field of that type", sc.object)
}

// sendRefusedApart sends the rows that were refused again, each field alone: one
// field that validates its values must not keep the others from being judged.
func (sc *scenario) sendRefusedApart(operation string) error {
	var apart []*record
	for _, b := range sc.latest {
		for _, r := range b.records {
			if !b.refused(r) || len(r.odd.fields) < 2 {
				continue
			}
			for _, f := range r.odd.fields {
				one, err := sc.newRecord(sc.object, r.id)
				if err != nil {
					return err
				}
				one = one.with(f.APIName, r.values[f.APIName])
				one.odd = odd{fields: []rpc.Field{f}, what: r.odd.what}
				apart = append(apart, one)
			}
		}
	}
	if len(apart) == 0 {
		return nil
	}
	sent, err := sc.write(operation, apart, plan{})
	if err == nil {
		sent, err = sc.sendAlone(operation, sent)
	}
	sc.latest = append(sc.latest, sent...)
	for _, b := range sent {
		sc.model.follow(b)
	}
	sc.sets[0].records = append(sc.sets[0].records, apart...)
	return err
}

// sendAlone repeats the records of a batch that was refused as a whole one by
// one, as the service does (spec 7.2.5): an odd record may spoil its batch.
func (sc *scenario) sendAlone(operation string, sent []*batch) ([]*batch, error) {
	var out []*batch
	for _, b := range sent {
		if len(b.records) == 1 || !b.reply.IsError() {
			out = append(out, b)
			continue
		}
		sc.batches = slices.DeleteFunc(sc.batches, func(o *batch) bool { return o == b })
		for _, r := range b.records {
			one, err := sc.writeOne(operation, []*record{r}, plan{})
			if err != nil {
				return out, err
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// odd is what a row of a table made of a record: the fields that carry the value
// of the row, and what the row says that it is.
type odd struct {
	fields []rpc.Field
	what   string
	key    bool // the row is an identifier
}

// mostEach is the longest text that a row puts into each field.
const mostEach = 10_000

// withValue makes a record with the value of a row in every field that takes it:
// free text in fields that are known to want a format would only be refused, so
// those are left out unless there is no other. The placeholder {u} is a text and
// {d} a number that no other record has. No record where no field has the type.
func (sc *scenario) withValue(id rpc.Field, row []string) (*record, error) {
	kind, text := row[0], row[1]
	r, err := sc.newRecord(sc.object, id)
	if err != nil {
		return nil, err
	}
	fields := sc.object.takes(id, kind, strings.Contains(text, "{u}") || strings.Contains(text, "{d}"))
	if len(fields) == 0 {
		return nil, nil
	}
	n := sc.made.Number(r.seed)
	text = strings.NewReplacer("{u}", strconv.FormatUint(uint64(n), 36), "{d}", strconv.FormatUint(uint64(n), 10)).Replace(text)
	for _, size := range []int{300, 65536} {
		text = strings.ReplaceAll(text, fmt.Sprintf("{%d}", size), strings.Repeat("abcdefghij", size/10+1)[:size])
	}
	if len(text) > mostEach {
		fields = fields[:1] // one is enough, and bodies are for DAT-012
	}
	for _, f := range fields {
		raw := json.RawMessage(text)
		if f.Array && kind == "array" {
			raw = sc.arrayOf(f, r.seed, text)
		}
		r = r.with(f.APIName, raw)
	}
	r.odd = odd{fields: fields, what: foreign.Clip(text, 40)}
	if len(row) > 2 {
		r.odd.what = row[2]
	}
	return r, nil
}

// arrayOf makes an array of ordinary items.
func (sc *scenario) arrayOf(f rpc.Field, s values.Seed, text string) json.RawMessage {
	items := map[string][]int{"[]": nil, "one item": {1}, "three items in falling order": {3, 2, 1}}[text]
	f.Array = false
	parts := make([]string, len(items))
	for i, v := range items {
		parts[i] = string(sc.made.Value(f, s.Version(v), values.Guess))
	}
	return json.RawMessage("[" + strings.Join(parts, ",") + "]")
}

// fits reports whether a field has the type of a row: its own, "array" for any array,
// "texts" for arrays of strings, "any" for all that may be null.
func fits(f rpc.Field, kind string) bool {
	switch kind {
	case "array":
		return f.Array
	case values.TypeArray:
		return f.Array && f.Type == rpc.TypeString
	case "any":
		return !f.Required
	}
	return f.Type == kind && !f.Array
}

// takes lists the fields that carry a value of a table: those of its type (or any
// array field, or any that may be null) that create and update may both write.
func (o *object) takes(id rpc.Field, kind string, differs bool) []rpc.Field {
	var free, formatted []rpc.Field
	for _, f := range o.Fields {
		if len(free)+len(formatted) >= mostFields {
			break
		}
		if !fits(f, kind) || !bothWays(f) || f.APIName == id.APIName || o.avoids(f.APIName) || o.unique(f.APIName) && !differs {
			continue
		}
		if (kind == rpc.TypeString || kind == values.TypeArray) && (values.Guessed(f) != nil || o.lessons[f.APIName] != nil && o.lessons[f.APIName].refusal != "") {
			formatted = append(formatted, f)
			continue
		}
		free = append(free, f)
	}
	if len(free) > 0 {
		return free
	}
	return formatted
}

// writable is the first free field of a type.
func (o *object) writable(kind string) (rpc.Field, bool) {
	fields := o.takes(rpc.Field{}, kind, true)
	if len(fields) == 0 {
		return rpc.Field{}, false
	}
	return fields[0], true
}
