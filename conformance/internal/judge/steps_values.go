package judge

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
)

// These steps send records with values or identifiers of a table, and records that must not be accepted.

var valueSentences = sentences{`^the same values fare the same in every operation$`: (*Scenario).valuesFareTheSame}

func valueSteps() []engine.Step {
	return []engine.Step{
		engine.NewStep(`^the service sends new records with these (values|identifiers) with `+whichOperation+`:$`, func(sc *Scenario) any { return sc.sendsThese }),
		engine.NewStep(`^the service sends the same values with every operation:$`, func(sc *Scenario) any { return sc.sendsEverywhere }),
		engine.NewStep(`^the service (sends|changes) (\d+) good records and (\d+) bad records? with `+whichOperation+`(, if one is known|)$`, func(sc *Scenario) any { return sc.sendsBad }),
	}
}

// badField is what makes a record bad: the fixture of the author, else null in a required field.
func (sc *Scenario) badField() (fields map[string]string, sure, ok bool) {
	if bad := sc.Opts.Fixtures[sc.Object.APIName].Bad; len(bad) > 0 {
		return bad, true, true
	}
	i := slices.IndexFunc(sc.Object.Fields, func(f rpc.Field) bool { return f.Required && !f.Identifier && f.Createable })
	if i < 0 {
		return nil, false, false
	}
	return map[string]string{sc.Object.Fields[i].APIName: "null"}, false, true
}

// sendsBad puts bad records at places that are not symmetrical, so that results in another order show. The same records
// go first without the bad value: only next to them a refusal means that it was the reason. Or these are changed.
func (sc *Scenario) sendsBad(verb string, good, bad int, which, ifKnown string) error {
	fields, sure, known := sc.badField()
	if !known && ifKnown != "" {
		return nil
	}
	ops, err := sc.operations(which)
	if err != nil || len(ops) == 0 {
		return err
	}
	if most := sc.LargestBatch(); good > 0 && most < good+bad {
		if most < bad+1 {
			return line.NotApplicable("the endpoint takes batches of %d at most: a bad record has no neighbours", most)
		}
		good = most - bad
	}
	sc.badSure = sure
	control, err := sc.fresh(good+bad, sc.Object.Creating())
	if err != nil {
		return err
	}
	if err := sc.sendsOne(sc.Object.Creating(), control, &write.Sending{}); err != nil {
		return err
	}
	for b, r := range write.Each(sc.Latest) {
		if !b.Succeeded(r) {
			return engine.Inconclusive("fixtures", "the same records without the bad value are not accepted, so that a refusal shows nothing: %s", foreign.Clip(b.WhyOf(r), 200))
		}
	}
	records, err := sc.fresh(good+bad, ops[0])
	m := &write.Sending{}
	if verb == "changes" {
		m, err = sc.Manner("with members in different orders")
		records = sc.again(control, otherValues, m)
	}
	if err != nil {
		return err
	}
	for i := range bad {
		// The second, then the fifth and so on: no other order of the results looks the same.
		at := min(3*i+1, good+bad-1)
		for name, raw := range fields {
			records[at] = records[at].With(name, sc.Made.Expand(raw, records[at].Seed, records[at].Key))
		}
		sc.bad = append(sc.bad, records[at])
	}
	return sc.sendsOne(ops[0], write.ForOperation(ops[0], records), m)
}

// sendsThese sends one record for each row: | identifier | or | type | value | or | type | value | what it is |.
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
	if status, _, _ := engine.Decided(err); status == conformance.NotApplicable && len(sc.Waves) > 0 {
		return nil // earlier steps have shown something
	}
	if err == nil {
		err = sc.sendsOne(ops[0], records, &write.Sending{Alone: true})
	}
	if err != nil {
		return err
	}
	return sc.sendRefusedApart(ops[0])
}

// shownBy is a row that covers the values that one change of an endpoint alters, and variedFormats
// one for further values of the formats that fields require.
var (
	shownBy       = regexp.MustCompile(`^(values that would show|values that are nearly those of) "(.+)"$`)
	variedFormats = "values of the format that a name asks for"
)

// withValue makes the records of a row: one with its value in every field that takes it, or none. The placeholder {u} is
// a text and {d} a number that no other record has.
func (sc *Scenario) withValues(id rpc.Field, table *engine.Table) ([]*write.Record, error) {
	var rows [][]string
	for _, row := range engine.Rows(table) {
		m := shownBy.FindStringSubmatch(row[1])
		if m == nil {
			rows = append(rows, row)
			continue
		}
		revealing := values.Revealing(row[0], m[2])
		if len(revealing) == 0 {
			return nil, line.Harness("no values of a %s would show %q", row[0], m[2])
		}
		for _, shown := range revealing {
			if m[1] == "values that would show" {
				rows = append(rows, []string{row[0], string(shown.Value)})
			} else if shown.Nearly != nil {
				rows = append(rows, []string{row[0], string(shown.Value), "", string(shown.Nearly)})
			}
		}
	}
	var out []*write.Record
	sent := map[string]bool{}
	for _, row := range rows {
		if sent[row[0]+row[1]] {
			continue
		}
		sent[row[0]+row[1]] = true
		made, err := sc.withValue(id, row)
		if err != nil {
			return nil, err
		}
		out = append(out, made...)
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, row := range rows {
		for _, f := range sc.Object.Fields {
			if l := sc.Object.Lessons[f.APIName]; l != nil && l.Avoid && write.Fits(f, row[0]) {
				return nil, engine.Inconclusive("fixtures", "%s refuses every value that was tried, so that nothing was seen of its type: %s", f.APIName, foreign.Clip(l.Refusal, 200))
			}
		}
	}
	return nil, line.NotApplicable("%s has no field of that type", sc.Object)
}

// withFormats makes records with further values of the formats that fields require.
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

// sendRefusedApart sends refused rows again, each field alone: one that validates must not keep others from being judged.
func (sc *Scenario) sendRefusedApart(operation string) error {
	var apart []*write.Record
	for b, r := range write.Each(sc.Latest) {
		if !b.Refused(r) || len(r.Odd.Fields) < 2 {
			continue
		}
		for _, f := range r.Odd.Fields {
			one, err := sc.NewRecord(sc.Object, r.ID)
			if err != nil {
				return err
			}
			one = one.With(f.APIName, r.Values[f.APIName])
			one.Odd = write.Odd{Fields: []rpc.Field{f}, What: r.Odd.What, Nearly: r.Odd.Nearly}
			apart = append(apart, one)
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

// withValue makes the records of a row: one with its value in every field that takes it, none
// where no field has the type. The placeholder {u} is a text and {d} a number that no other
// record has.
func (sc *Scenario) withValue(id rpc.Field, row []string) ([]*write.Record, error) {
	kind, text := row[0], row[1]
	if text == variedFormats {
		return sc.withFormats(id)
	}
	if len(row) > 3 {
		text = row[3]
	}
	r, err := sc.NewRecord(sc.Object, id)
	if err != nil {
		return nil, err
	}
	fields := sc.Object.Takes(id, kind, strings.Contains(text, "{u}") || strings.Contains(text, "{d}"))
	if len(fields) == 0 {
		return nil, nil
	}
	n := uint64(sc.Made.Number(r.Seed))
	long := func(size int) string { return strings.Repeat("abcdefghij", size/10+1)[:size] }
	text = strings.NewReplacer("{u}", strconv.FormatUint(n, 36), "{d}", strconv.FormatUint(n, 10), "{300}", long(300), "{65536}", long(65536)).Replace(text)
	if len(text) > 10_000 {
		fields = fields[:1] // one is enough, and bodies are for DAT-012
	}
	for _, f := range fields {
		raw := json.RawMessage(text)
		if f.Array && kind == "array" {
			item := f
			item.Array = false
			made := make([]string, map[string]int{"one item": 1, "25 items, the last one as the first": 25}[text])
			for i := range made {
				made[i] = string(sc.Made.Value(item, r.Seed.Version(i*7%24), values.Guess))
			}
			raw = json.RawMessage("[" + strings.Join(made, ",") + "]")
		}
		r = r.With(f.APIName, raw)
	}
	r.Odd = write.Odd{Fields: fields, What: foreign.Clip(text, 40)}
	switch len(row) {
	case 3:
		r.Odd.What = row[2]
	case 4:
		r.Odd.Nearly = json.RawMessage(row[1])
	}
	return []*write.Record{r}, nil
}

// sendsIdentifiers sends a record for each row, by the first identifier of its type.
func (sc *Scenario) sendsIdentifiers(operation string, table *engine.Table) error {
	sc.Sets = nil
	for _, kind := range []string{rpc.TypeString, rpc.TypeInteger} {
		i := slices.IndexFunc(sc.Object.Identifiers(), func(f rpc.Field) bool { return f.Type == kind })
		if i < 0 {
			continue
		}
		id := sc.Object.Identifiers()[i]
		key, err := sc.Key(sc.Object, id) // one for all rows, so that they differ as written
		if err != nil {
			return err
		}
		number, _ := sc.Keys.NextInteger()
		var records []*write.Record
		for _, row := range engine.Rows(table) {
			quoted := strings.HasPrefix(row[0], `"`)
			if quoted != (kind == rpc.TypeString) || strings.Contains(row[0], "{number}") && sc.Keys.Given {
				continue // the row is for the other type, or the author has defined what a key looks like
			}
			r, err := sc.NewRecord(sc.Object, id)
			if err != nil {
				return err
			}
			if kind == rpc.TypeInteger && (sc.Opts.KeyFrom != 0 || sc.Opts.KeyTo != 0) {
				continue // the author bounds integer keys: none beyond 2^53
			}
			text := strings.ReplaceAll(row[0], "{number}", strconv.FormatInt(number, 10))
			records = append(records, sc.withIdentifier(r, len(records)+1, strings.Trim(string(key), `"`), text))
		}
		if len(records) > 0 {
			sc.Sets = append(sc.Sets, write.Set{Operation: operation, Records: records})
		}
	}
	if len(sc.Sets) == 0 {
		return line.NotApplicable("%s has no identifier of that type", sc.Object)
	}
	return sc.SendSets(&write.Sending{Alone: true})
}

// withIdentifier is a record with a key that is written in the table: {key} is an ordinary
// key of the run, in an address the part before the @, {odd} a number beyond 2^53 that
// doubles cannot hold, {next} the number after that of the row before, {to N} so many letters
// that the text before it has N characters.
func (sc *Scenario) withIdentifier(r *write.Record, n int, key, text string) *write.Record {
	run, _ := strconv.ParseInt(sc.Keys.Run, 16, 64)
	text = KeyIn(strings.NewReplacer("{odd}", fmt.Sprint(values.OddKey(run, n)), "{next}", fmt.Sprint(values.OddKey(run, 500)+int64(n))).Replace(text), key)
	if at := fillTo.FindStringSubmatchIndex(text); at != nil {
		most, _ := strconv.Atoi(text[at[2]:at[3]]) // digits
		text = text[:at[0]] + strings.Repeat("x", max(most-utf8.RuneCountInString(strings.Trim(text[:at[0]], `"`)), 0)) + text[at[1]:]
	}
	r = r.With(r.ID.APIName, json.RawMessage(text))
	r.Odd.Key, r.Near = true, true
	return r
}

var fillTo = regexp.MustCompile(`\{to (\d+)\}`)

// KeyIn puts a key into the text of a row, in an address before the @; spaces at the end stay at the end.
func KeyIn(text, key string) string {
	if name, domain, address := strings.Cut(key, "@"); address && strings.Contains(text, "{key}") {
		open := strings.TrimSuffix(text, `"`)
		added := strings.TrimRight(open, " ")
		key, text = name, added+"@"+domain+open[len(added):]+`"`
	}
	return strings.ReplaceAll(text, "{key}", key)
}

// keysMerged is the cause where records with such identifiers are not as sent, and others are.
var keysMerged = write.Cause{
	Text: "the identifier is changed on its way into its column or to the look-up (cut, folded, decoded, made a number), so that another record has it, too.",
	Fix:  "store and compare identifiers exactly, in a column that takes every one, or fail the record.",
}
