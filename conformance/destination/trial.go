package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// Before the checks of a run that writes, a trial learns which ordinary values an
// object takes: a refused value leads to a plainer one, or to one that the
// message of the refusal names. Endpoints with strict validation are then judged
// by records that they accept, and what they refuse is a finding of its own
// (DAT-014) and not of every check.

// trialRecords is the most that the trial writes into one object.
const trialRecords = 40

// trialCheck stands in the records of the trial.
var trialCheck = &conformance.Check{ID: "TRIAL", Title: "Which values the object accepts"}

// lesson is what the trial learned about one field.
type lesson struct {
	style   values.Style
	format  values.Format     // named by a refusal; nil: by the name of the field
	choices []json.RawMessage // the values that a refusal named
	avoid   bool              // refused in every style: left out where it is optional
	unique  bool              // refuses a value that another record has
	noNull  bool              // refuses null, though it is not required
	refusal string            // the last message, "" when the first style was accepted
	shut    *reply            // the reply that refused null like every value; nil: something may be taken
}

// learned is an ordinary value as the trial learned it.
func learned(v values.Maker, o *object, f rpc.Field, s values.Seed) json.RawMessage {
	l := o.lessons[f.APIName]
	switch {
	case l == nil:
		return v.Value(f, s, values.Guess)
	case len(l.choices) > 0 && !f.Array:
		return l.choices[int(v.Number(s))%len(l.choices)]
	case l.format != nil && !f.Array:
		return v.Formatted(l.format, s)
	}
	return v.Value(f, s, l.style)
}

// avoids reports whether the trial found no value that the field accepts.
func (o *object) avoids(field string) bool { return o.lessons[field] != nil && o.lessons[field].avoid }

// unique reports whether the field refuses a value that another record has.
func (o *object) unique(field string) bool { return o.lessons[field] != nil && o.lessons[field].unique }

func (o *object) lesson(field string) *lesson {
	if o.lessons == nil {
		o.lessons = map[string]*lesson{}
	}
	if o.lessons[field] == nil {
		o.lessons[field] = &lesson{}
	}
	return o.lessons[field]
}

// tryValues runs the trial on every named object that takes new records.
func (s *session) tryValues(ctx context.Context, checks []*conformance.Check) {
	if !s.opts.Write || !slices.ContainsFunc(checks, func(c *conformance.Check) bool { return c.Write }) {
		return
	}
	for _, name := range s.opts.Objects {
		if o := s.catalog.object(name); o != nil && o.creating() != "" {
			t := &trial{scenario: s.newScenario(ctx, trialCheck, o), began: time.Now()}
			t.run()
		}
	}
}

// trial is one object on trial.
type trial struct {
	*scenario
	id    rpc.Field
	sent  int
	last  *batch
	began time.Time
}

// trialTime bounds the trial of an object with very many fields, or a slow one.
const trialTime = 5 * time.Second

// over reports whether the trial has used up its records, its time or the run.
func (t *trial) over() bool {
	return t.sent >= trialRecords || t.ctx.Err() != nil || time.Since(t.began) > trialTime
}

func (t *trial) run() {
	var err error
	if t.id, err = t.object.identifier(); err != nil {
		return
	}
	accepted := t.settle(func() []rpc.Field { return t.object.ordinary(t.id) })
	if accepted == nil {
		t.object.keyForm = 0 // another form did not help
		accepted = t.withoutOptional()
	}
	if accepted == nil {
		return
	}
	t.measureDelay(accepted)
	if t.object.accepts(rpc.OperationInsert) || t.object.accepts(rpc.OperationUpsert) {
		t.findUnique(accepted)
	}
	// The fields that only some checks map.
	if wide := t.settle(func() []rpc.Field { return t.object.every(t.id, false) }); wide == nil {
		t.fieldByField()
	}
	t.findNoNull()
}

// measureDelay finds out whether writes arrive later than their acknowledgement. The
// checks about that fail; all others wait for the writes, so that one defect does not
// hide the rest.
func (t *trial) measureDelay(r *record) {
	if t.readback == nil {
		return
	}
	if seen, err := t.observe([]*record{r}); err != nil || len(seen) > 0 {
		return
	}
	if t.learnFolding(t.batchAt(r), r) != nil || t.object.folded != nil {
		return
	}
	if after, all := t.appears(t.object.creating(), []*record{r}); all {
		t.late = max(t.late, after*5/4+100*time.Millisecond)
	}
}

// findNoNull finds the optional fields that refuse null, first those that the
// refusal names.
func (t *trial) findNoNull() {
	for range 6 {
		r, err := t.recordWith(t.object, t.id, t.object.every(t.id, false))
		if err != nil {
			return
		}
		r = nullRest(t.scenario, r)
		ok, message := t.send(r)
		if ok || message == "" {
			return
		}
		found := false
		for name, raw := range r.values {
			if f, _ := t.object.field(name); string(raw) == "null" && mentions(message, f) {
				t.object.lesson(name).noNull, found = true, true
			}
		}
		if !found {
			return
		}
	}
}

// noNull reports whether the field refuses null.
func (o *object) noNull(field string) bool { return o.lessons[field] != nil && o.lessons[field].noNull }

// settle sends records of the wanted fields until one is accepted, each plainer
// in what the last refusal complained about; nil when none was.
func (t *trial) settle(wanted func() []rpc.Field) *record {
	for range int(values.Styles) + 4 {
		if t.over() {
			return nil
		}
		fields := wanted()
		r, err := t.recordWith(t.object, t.id, fields)
		if err != nil {
			return nil
		}
		ok, message := t.send(r)
		if ok {
			return r
		}
		if message == "" || !t.learn(fields, message) {
			return nil
		}
	}
	return nil
}

// send writes one record. A refusal without words has a message all the same; ""
// says that nothing can be learned: no response, or the budget is used up.
func (t *trial) send(r *record) (accepted bool, message string) {
	if t.over() {
		return false, ""
	}
	t.sent++
	b, err := t.writeOne(t.object.creating(), []*record{r}, plan{})
	t.last = b
	switch {
	case err != nil || b == nil:
		return false, ""
	case b.succeeded(r):
		return true, ""
	case b.failed(r):
		return false, cmp.Or(b.resultsOf(r)[0].Text(), "refused")
	case b.reply.IsError():
		return false, cmp.Or(b.reply.ErrorText(), "refused")
	}
	return false, ""
}

// learn makes plainer what a message names, else everything; false when nothing
// can be plainer.
func (t *trial) learn(fields []rpc.Field, message string) bool {
	named := slices.DeleteFunc(slices.Clone(fields), func(f rpc.Field) bool { return !mentions(message, f) })
	if slices.ContainsFunc(named, func(f rpc.Field) bool { return f.APIName == t.id.APIName }) && t.plainerKey(message) {
		return true
	}
	nothingNamed := len(named) == 0
	if nothingNamed {
		named = fields
	}
	progress := false
	for _, f := range named {
		if f.Identifier || f.APIName == t.id.APIName {
			continue
		}
		l := t.object.lesson(f.APIName)
		l.refusal = message
		switch {
		case len(l.choices) == 0 && len(choices(f, message)) > 0:
			l.choices = choices(f, message)
		case len(l.choices) == 0 && l.format == nil && l.style == values.Guess && f.Type == rpc.TypeString && values.FormatIn(message) != nil && len(named) < len(fields):
			l.format = values.FormatIn(message)
		case l.style+1 < values.Styles:
			l.choices, l.format, l.style = nil, nil, l.style+1
		default:
			continue
		}
		progress = true
	}
	return progress || nothingNamed && t.plainerKey(message)
}

// plainerKey changes the form of string identifiers, once for each form.
func (t *trial) plainerKey(string) bool {
	if t.id.Type != rpc.TypeString || t.keys.Given || t.object.keyForm+1 >= values.KeyForms {
		return false
	}
	t.object.keyForm++
	return true
}

// withoutOptional finds the optional field that spoils the records.
func (t *trial) withoutOptional() *record {
	required := func() []rpc.Field {
		return slices.DeleteFunc(t.object.ordinary(t.id), func(f rpc.Field) bool { return !f.Required && f.APIName != t.id.APIName })
	}
	base := t.settle(required)
	if base == nil {
		return nil
	}
	t.tryEach(required(), t.object.ordinary(t.id))
	return base
}

// fieldByField finds which of all fields spoil a record that maps them all.
func (t *trial) fieldByField() {
	t.tryEach(t.object.ordinary(t.id), t.object.every(t.id, false))
}

// tryEach adds each further field alone to a record that is accepted; what is
// refused in every style is avoided from then on.
func (t *trial) tryEach(base, all []rpc.Field) {
	for _, f := range all {
		if slices.ContainsFunc(base, func(b rpc.Field) bool { return b.APIName == f.APIName }) || f.Identifier {
			continue
		}
		if t.over() {
			return
		}
		l := t.object.lesson(f.APIName)
		*l = lesson{refusal: l.refusal}
		with := append(slices.Clone(base), f)
		if t.settle(func() []rpc.Field { return with }) == nil && !t.over() {
			l.avoid = !f.Required
			t.tryNull(f, with)
		}
	}
}

// tryNull sends null in a field that refuses every value. Refused in the same words, it
// is the field that is not taken, and not its values.
func (t *trial) tryNull(f rpc.Field, fields []rpc.Field) {
	if f.Required || t.last == nil {
		return
	}
	values := t.saysOfLast()
	r, err := t.recordWith(t.object, t.id, fields)
	if err != nil {
		return
	}
	ok, _ := t.send(r.with(f.APIName, json.RawMessage("null")))
	if l := t.object.lesson(f.APIName); !ok && t.last != nil && !t.last.reply.Passing() && t.last.reply.OK() && withoutValues(t.saysOfLast()) == withoutValues(values) {
		l.shut, l.refusal = t.last.reply, t.saysOfLast()
	}
}

// saysOfLast is what came back for the record of the last batch.
func (t *trial) saysOfLast() string {
	r := t.last.records[0]
	return cmp.Or(t.last.refusalOf(r), t.last.whyOf(r))
}

// named are the parts of a message that follow from the values of one record.
var named = regexp.MustCompile(`"[^"]*"|'[^']*'|[\pL-]*\d[\pL\d.-]*`)

func withoutValues(message string) string { return named.ReplaceAllString(message, "#") }

// findUnique sends the values of an accepted record under another key: a refusal
// then comes from a unique column, which is found field by field.
func (t *trial) findUnique(first *record) {
	same := func(only string) *record {
		r, err := t.recordWith(t.object, t.id, t.object.ordinary(t.id))
		if err != nil {
			return nil
		}
		for name, raw := range first.values {
			if f, ok := t.object.field(name); ok && !f.Identifier && name != t.id.APIName && (only == "" || only == name) {
				r = r.with(name, raw)
			}
		}
		return r
	}
	r := same("")
	if r == nil {
		return
	}
	if ok, message := t.send(r); ok || message == "" {
		return
	}
	for _, f := range t.object.ordinary(t.id) {
		if f.Identifier || f.APIName == t.id.APIName {
			continue
		}
		if r = same(f.APIName); r == nil {
			return
		}
		if ok, message := t.send(r); !ok && message != "" {
			t.object.lesson(f.APIName).unique = true
		}
	}
}

// mentions reports whether a message speaks of a field by its name or label.
func mentions(message string, f rpc.Field) bool {
	said := strings.ToLower(message)
	for _, name := range []string{f.APIName, f.Label} {
		name = strings.ToLower(name)
		if name == "" {
			continue
		}
		for _, form := range []string{name, strings.ReplaceAll(name, "_", " "), strings.ReplaceAll(name, " ", "_")} {
			if !strings.Contains(said, form) {
				continue
			}
			if found, err := regexp.MatchString(`(^|[^\pL\d_])`+regexp.QuoteMeta(form)+`($|[^\pL\d_])`, said); err == nil && found {
				return true
			}
		}
	}
	return false
}

var (
	oneOf  = regexp.MustCompile(`(?i)\b(?:(?:(?:should|must) be )?(?:one of|allowed(?: values)?(?: are)?|valid (?:values|options)(?: are)?|choose|expected)|(?:should|must) be)\b\s*:?\s*[\[({]?\s*(.+)`)
	quoted = regexp.MustCompile(`["'` + "`" + `]([^"'` + "`" + `]{1,60})["'` + "`" + `]`)
	word   = regexp.MustCompile(`[\pL\d][\pL\d_.-]*`)
	listed = regexp.MustCompile(`(?i)one of|allowed|valid|choose|,| or |/`)
)

// choices are the values that a message offers for a string field, as in "must
// be one of active, inactive".
func choices(f rpc.Field, message string) []json.RawMessage {
	m := oneOf.FindStringSubmatch(message)
	if f.Type != rpc.TypeString || m == nil || !listed.MatchString(m[0]) {
		return nil
	}
	texts := lists.Of(quoted.FindAllStringSubmatch(m[1], 20), func(c []string) string { return c[1] })
	if len(texts) == 0 && strings.ContainsAny(m[1], ",|/") {
		texts = word.FindAllString(m[1], 20)
	}
	var out []json.RawMessage
	for _, text := range texts {
		if text != "or" && text != "and" && !strings.EqualFold(text, f.APIName) {
			out = append(out, values.Quote(text))
		}
	}
	return out
}
