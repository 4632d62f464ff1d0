package judge

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// valueSteps send records whose values or identifiers are written in a table,
// and records that must not be accepted.
func valueSteps() []definition {
	return []definition{
		step(`^the service sends new records with these (values|identifiers) with `+whichOperation+`:$`, func(sc *Scenario) any { return sc.sendsThese }),
		step(`^the service sends the same values with every operation:$`, func(sc *Scenario) any { return sc.sendsEverywhere }),
		step(`^the same values fare the same in every operation$`, func(sc *Scenario) any { return sc.valuesFareTheSame }),
		step(`^the service sends (\d+) good records and (\d+) bad records? with `+whichOperation+`(, if one is known|)$`, func(sc *Scenario) any { return sc.sendsBad }),
	}
}

// badField is the field that makes a record bad: the author's fixture, else a
// required field that is left null.
func (sc *Scenario) badField() (fields map[string]json.RawMessage, sure, ok bool) {
	if bad := sc.Opts.Fixtures[sc.Object.APIName].Bad; len(bad) > 0 {
		fields = map[string]json.RawMessage{}
		for name, raw := range bad {
			fields[name] = json.RawMessage(raw)
		}
		return fields, true, true
	}
	for _, f := range sc.Object.Fields {
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
func (sc *Scenario) sendsBad(good, bad int, which, ifKnown string) error {
	fields, sure, known := sc.badField()
	if !known && ifKnown != "" {
		return nil
	}
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	if most := sc.LargestBatch(); good > 0 && most < good+bad {
		if most < bad+1 {
			return line.NotApplicable("the endpoint takes batches of %d at most: a bad record has no neighbours", most)
		}
		good = most - bad
	}
	sc.badSure = sure
	control, err := sc.Make(good+bad, ops[0], rpc.Field{}, &write.Sending{})
	if err != nil {
		return err
	}
	sc.Sets = []write.Set{{Operation: ops[0], Records: control}}
	if err := sc.SendSets(&write.Sending{}); err != nil {
		return err
	}
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if !b.Succeeded(r) {
				return engine.Inconclusive("fixtures", "the same records without the bad value are not accepted, so that a refusal shows nothing: %s", foreign.Clip(b.WhyOf(r), 200))
			}
		}
	}
	records, err := sc.Make(good+bad, ops[0], rpc.Field{}, &write.Sending{})
	if err != nil {
		return err
	}
	for i := range bad {
		at := badPlace(i, good+bad)
		for name, raw := range fields {
			records[at] = records[at].With(name, sc.Made.Expand(string(raw), records[at].Seed, records[at].Key))
		}
		sc.bad = append(sc.bad, records[at])
	}
	sc.Sets = []write.Set{{Operation: ops[0], Records: records}}
	return sc.SendSets(&write.Sending{})
}

// badPlace is the place of the i-th bad record among n: the second, then the
// fifth and so on, so that no other order of the results looks the same.
func badPlace(i, n int) int { return min(3*i+1, n-1) }

// sendsThese sends one record for each row: | identifier | or | type | value | or
// | type | value | what it is |.
func (sc *Scenario) sendsThese(what, which string, table *engine.Table) error {
	ops, err := sc.operations(which)
	if err != nil {
		return err
	}
	id, err := sc.Object.Identifier()
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
	sc.Sets = []write.Set{{Operation: ops[0], Records: records}}
	if err := sc.SendSets(&write.Sending{Alone: true}); err != nil {
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
func (sc *Scenario) withValues(id rpc.Field, table *engine.Table) ([]*write.Record, error) {
	var out []*write.Record
	sent := map[string]bool{}
	for _, row := range engine.Rows(table) {
		rows := [][]string{row}
		if m := shownBy.FindStringSubmatch(row[1]); m != nil {
			rows = nil
			for _, raw := range values.Revealing(row[0], m[1]) {
				rows = append(rows, []string{row[0], string(raw)})
			}
			if len(rows) == 0 {
				return nil, line.Harness("no values of a %s would show %q", row[0], m[1])
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
func (sc *Scenario) withRow(id rpc.Field, row []string) ([]*write.Record, error) {
	if row[1] == variedFormats {
		return sc.withFormats(id)
	}
	r, err := sc.withValue(id, row)
	if r == nil {
		return nil, err
	}
	return []*write.Record{r}, err
}

// withFormats makes records with further values of the formats that fields ask for.
func (sc *Scenario) withFormats(id rpc.Field) ([]*write.Record, error) {
	var out []*write.Record
	for n := 0; ; n++ {
		r, err := sc.NewRecord(sc.Object, id)
		if err != nil {
			return nil, err
		}
		for _, f := range sc.Object.Fields {
			varied := sc.Made.Varied(f, r.Seed)
			if f.Type != rpc.TypeString || f.Array || !write.BothWays(f) || f.APIName == id.APIName || sc.Object.Avoids(f.APIName) || n >= len(varied) {
				continue
			}
			r = r.With(f.APIName, varied[n])
			r.Odd.Fields = append(slices.Clone(r.Odd.Fields), f)
		}
		if len(r.Odd.Fields) == 0 {
			return out, nil
		}
		r.Odd.What = fmt.Sprintf("variant %d of its format", n+1)
		out = append(out, r)
	}
}

// noField says that no field takes the values of a table: there is none of the type, or
// all of them are left out because they refuse every value.
func (sc *Scenario) noField(table *engine.Table) error {
	for _, row := range engine.Rows(table) {
		for _, f := range sc.Object.Fields {
			if l := sc.Object.Lessons[f.APIName]; l != nil && l.Avoid && write.Fits(f, row[0]) {
				return engine.Inconclusive("fixtures", "%s refuses every value that was tried, so that nothing was seen of its type: %s", f.APIName, foreign.Clip(l.Refusal, 200))
			}
		}
	}
	return line.NotApplicable("%s has no field of that type", sc.Object)
}

// sendRefusedApart sends the rows that were refused again, each field alone: one
// field that validates its values must not keep the others from being judged.
func (sc *Scenario) sendRefusedApart(operation string) error {
	var apart []*write.Record
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if !b.Refused(r) || len(r.Odd.Fields) < 2 {
				continue
			}
			for _, f := range r.Odd.Fields {
				one, err := sc.NewRecord(sc.Object, r.ID)
				if err != nil {
					return err
				}
				one = one.With(f.APIName, r.Values[f.APIName])
				one.Odd = write.Odd{Fields: []rpc.Field{f}, What: r.Odd.What}
				apart = append(apart, one)
			}
		}
	}
	if len(apart) == 0 {
		return nil
	}
	sent, err := sc.Write(operation, apart, write.Plan{})
	if err == nil {
		sent, err = sc.SendAlone(operation, sent)
	}
	sc.Latest = append(sc.Latest, sent...)
	for _, b := range sent {
		sc.Model.Follow(b)
	}
	sc.Sets[0].Records = append(sc.Sets[0].Records, apart...)
	return err
}

// mostEach is the longest text that a row puts into each field.
const mostEach = 10_000

// withValue makes a record with the value of a row in every field that takes it:
// free text in fields that are known to want a format would only be refused, so
// those are left out unless there is no other. The placeholder {u} is a text and
// {d} a number that no other record has. No record where no field has the type.
func (sc *Scenario) withValue(id rpc.Field, row []string) (*write.Record, error) {
	kind, text := row[0], row[1]
	r, err := sc.NewRecord(sc.Object, id)
	if err != nil {
		return nil, err
	}
	fields := sc.Object.Takes(id, kind, strings.Contains(text, "{u}") || strings.Contains(text, "{d}"))
	if len(fields) == 0 {
		return nil, nil
	}
	n := sc.Made.Number(r.Seed)
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
			raw = sc.arrayOf(f, r.Seed, text)
		}
		r = r.With(f.APIName, raw)
	}
	r.Odd = write.Odd{Fields: fields, What: foreign.Clip(text, 40)}
	if len(row) > 2 {
		r.Odd.What = row[2]
	}
	return r, nil
}

// arrayOf makes an array of ordinary items.
func (sc *Scenario) arrayOf(f rpc.Field, s values.Seed, text string) json.RawMessage {
	items := map[string][]int{"[]": nil, "one item": {1}, "three items in falling order": {3, 2, 1}}[text]
	f.Array = false
	parts := make([]string, len(items))
	for i, v := range items {
		parts[i] = string(sc.Made.Value(f, s.Version(v), values.Guess))
	}
	return json.RawMessage("[" + strings.Join(parts, ",") + "]")
}
