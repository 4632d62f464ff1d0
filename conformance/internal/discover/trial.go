package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// Before the checks of a run that writes, a trial learns which ordinary values an object takes: a
// refused value leads to a plainer one, or to one that the message of the refusal names. The checks
// then send accepted records, and a refusal is one finding (DAT-014) and not one of every check.

const (
	TrialRecords = 40              // that the trial writes into one object at most
	trialTime    = 5 * time.Second // of an object with very many fields, or a slow one
)

// trialCheck is the check in the records of the trial.
var trialCheck = &conformance.Check{ID: "TRIAL", Title: "Which values the object accepts"}

// TryValues runs the trial on every named object that takes new records.
func (s *Discovery) TryValues(ctx context.Context, checks []*conformance.Check) {
	if !s.Opts.Write || !slices.ContainsFunc(checks, func(c *conformance.Check) bool { return c.Write }) {
		return
	}
	for _, name := range s.Opts.Objects {
		if o := s.Catalog.Object(name); o != nil && o.Creating() != "" {
			(&trial{Scenario: s.NewScenario(ctx, trialCheck, o), began: time.Now()}).run()
		}
	}
}

// trial is one object on trial.
type trial struct {
	*write.Scenario
	id    rpc.Field
	sent  int
	last  *write.Batch
	began time.Time
}

// over reports whether the trial has used up its records, its time or the run.
func (t *trial) over() bool {
	return t.sent >= TrialRecords || t.Ctx.Err() != nil || time.Since(t.began) > trialTime
}

func (t *trial) run() {
	var err error
	if t.id, err = t.Object.Identifier(); err != nil {
		return
	}
	accepted := t.settle(func() []rpc.Field { return t.Object.Ordinary(t.id) })
	if accepted == nil {
		t.Object.KeyForm = 0 // another form did not help
		accepted = t.withoutOptional()
	}
	if accepted == nil {
		return
	}
	t.measureDelay(accepted)
	if t.Object.Accepts(rpc.OperationInsert) || t.Object.Accepts(rpc.OperationUpsert) {
		t.findUnique(accepted)
	}
	// The fields that only some checks map.
	if t.settle(func() []rpc.Field { return t.Object.Every(t.id) }) == nil {
		t.tryEach(t.Object.Ordinary(t.id), t.Object.Every(t.id))
	}
	t.findNoNull()
}

// measureDelay finds out whether writes arrive later than their acknowledgement. The checks about
// that fail; all others wait for the writes, so that one defect does not hide the rest.
func (t *trial) measureDelay(r *write.Record) {
	if t.Readback == nil {
		return
	}
	if seen, err := t.Observe([]*write.Record{r}); err != nil || len(seen) > 0 {
		return
	}
	if t.LearnFolding(t.BatchAt(r), r) != nil || t.Object.Folded != nil {
		return
	}
	from, records := time.Now(), []*write.Record{r}
	_, all := t.Appears(t.Object.Creating(), records)
	if !all { // the window that the author gives may be longer
		seen, err := t.ObserveUntil(records, func(seen map[string]write.Observed) bool { return len(seen) > 0 })
		all = err == nil && len(seen) > 0
	}
	if all {
		t.Late = max(t.Late, time.Since(from)*5/4+100*time.Millisecond, t.Opts.ReadbackWindow)
	}
}

// findNoNull finds the optional fields that refuse null, first those that the refusal names.
func (t *trial) findNoNull() {
	for range 6 {
		r, err := t.RecordWith(t.Object, t.id, t.Object.Every(t.id))
		if err != nil {
			return
		}
		r = write.NullRest(t.Scenario, r)
		_, message := t.send(r) // "" of one that is accepted
		found := false
		for name, raw := range r.Values {
			if f, _ := t.Object.Field(name); string(raw) == "null" && Mentions(message, f) {
				t.Object.Lesson(name).NoNull, found = true, true
			}
		}
		if !found {
			return
		}
	}
}

// settle sends ever plainer records of the wanted fields until one is accepted, nil when none is.
func (t *trial) settle(wanted func() []rpc.Field) *write.Record {
	for range int(values.Styles) + 4 {
		fields := wanted()
		r, err := t.RecordWith(t.Object, t.id, fields)
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

// send writes one record. A refusal without words has a message all the same; "" means that nothing
// can be learned: no response, or the budget is used up.
func (t *trial) send(r *write.Record) (accepted bool, message string) {
	if t.over() {
		return false, ""
	}
	t.sent++
	b, err := t.WriteOne(t.Object.Creating(), []*write.Record{r}, write.Plan{})
	t.last = b
	switch {
	case err != nil || b == nil:
		return false, ""
	case b.Succeeded(r):
		return true, ""
	case b.Failed(r):
		return false, cmp.Or(b.ResultsOf(r)[0].Text(), "refused")
	case b.Reply.IsError():
		return false, cmp.Or(b.Reply.ErrorText(), "refused")
	}
	return false, ""
}

// learn makes plainer what a message names, else everything; false when nothing can be plainer.
func (t *trial) learn(fields []rpc.Field, message string) bool {
	named := lists.Where(fields, func(f rpc.Field) bool { return Mentions(message, f) })
	if slices.ContainsFunc(named, func(f rpc.Field) bool { return f.APIName == t.id.APIName }) && t.plainerKey() {
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
		l := t.Object.Lesson(f.APIName)
		l.Refusal = message
		switch {
		case len(l.Choices) == 0 && len(Choices(f, message)) > 0:
			l.Choices = Choices(f, message)
		case len(l.Choices) == 0 && l.Format == nil && l.Style == values.Guess && f.Type == rpc.TypeString && values.FormatIn(message) != nil && len(named) < len(fields):
			l.Format = values.FormatIn(message)
		case l.Style+1 < values.Styles:
			l.Choices, l.Format, l.Style = nil, nil, l.Style+1
		default:
			continue
		}
		progress = true
	}
	return progress || nothingNamed && t.plainerKey()
}

// plainerKey changes the form of string identifiers, once for each form.
func (t *trial) plainerKey() bool {
	if t.id.Type != rpc.TypeString || t.Keys.Given || t.Object.KeyForm+1 >= values.KeyForms {
		return false
	}
	t.Object.KeyForm++
	return true
}

// withoutOptional finds the optional field that spoils the records.
func (t *trial) withoutOptional() *write.Record {
	required := func() []rpc.Field {
		return lists.Where(t.Object.Ordinary(t.id), func(f rpc.Field) bool { return f.Required || f.APIName == t.id.APIName })
	}
	base := t.settle(required)
	if base != nil {
		t.tryEach(required(), t.Object.Ordinary(t.id))
	}
	return base
}

// tryEach adds each further field alone to an accepted record; the run then avoids fields that are
// refused in every style.
func (t *trial) tryEach(base, all []rpc.Field) {
	for _, f := range all {
		if slices.ContainsFunc(base, func(b rpc.Field) bool { return b.APIName == f.APIName }) || f.Identifier {
			continue
		}
		if t.over() {
			return
		}
		l := t.Object.Lesson(f.APIName)
		*l = write.Lesson{Refusal: l.Refusal}
		with := append(slices.Clone(base), f)
		if t.settle(func() []rpc.Field { return with }) == nil && !t.over() {
			l.Avoid = !f.Required
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
	r, err := t.RecordWith(t.Object, t.id, fields)
	if err != nil {
		return
	}
	ok, _ := t.send(r.With(f.APIName, json.RawMessage("null")))
	if l := t.Object.Lesson(f.APIName); !ok && t.last != nil && !t.last.Reply.Passing() && t.last.Reply.OK() && withoutValues(t.saysOfLast()) == withoutValues(values) {
		l.Shut, l.Refusal = t.last.Reply, t.saysOfLast()
	}
}

// saysOfLast is what came back for the record of the last batch.
func (t *trial) saysOfLast() string {
	r := t.last.Records[0]
	return cmp.Or(t.last.RefusalOf(r), t.last.WhyOf(r))
}

// named are the parts of a message that follow from the values of one record.
var named = regexp.MustCompile(`"[^"]*"|'[^']*'|[\pL-]*\d[\pL\d.-]*`)

func withoutValues(message string) string { return named.ReplaceAllString(message, "#") }

// findUnique sends the values of an accepted record under another key: a refusal
// then comes from a unique column, which is found field by field.
func (t *trial) findUnique(first *write.Record) {
	refused := func(only string) bool {
		r, err := t.RecordWith(t.Object, t.id, t.Object.Ordinary(t.id))
		if err != nil {
			return false
		}
		for name, raw := range first.Values {
			if f, ok := t.Object.Field(name); ok && !f.Identifier && name != t.id.APIName && (only == "" || only == name) {
				r = r.With(name, raw)
			}
		}
		_, message := t.send(r)
		return message != ""
	}
	if !refused("") {
		return
	}
	for _, f := range t.Object.Ordinary(t.id) {
		if !f.Identifier && f.APIName != t.id.APIName && refused(f.APIName) {
			t.Object.Lesson(f.APIName).Unique = true
		}
	}
}

// Mentions reports whether a message speaks of a field by its name or label.
func Mentions(message string, f rpc.Field) bool {
	said := strings.ToLower(message)
	for _, name := range []string{strings.ToLower(f.APIName), strings.ToLower(f.Label)} {
		for _, form := range []string{name, strings.ReplaceAll(name, "_", " "), strings.ReplaceAll(name, " ", "_")} {
			if name == "" || !strings.Contains(said, form) {
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

// Choices are what a message offers for a string field: "must be one of active, inactive".
func Choices(f rpc.Field, message string) []json.RawMessage {
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

// number is one in a message, with what makes it a code or a place.
var number = regexp.MustCompile(`(?i)(?:\b(?:code|error|errno|sqlstate|http|status|row|line|position|offset|request|id)\W*(?:\d+ \()?|[a-z]-)?\b\d[\d.,_]*(?:e[+-]?\d+)?\b`)

// NamesLimit reports whether a message says which values are taken: it lists them, or has a number that
// was not sent. What a database or a runtime says of its own limits is no rule.
func NamesLimit(message string, f rpc.Field, sent string) bool {
	if _, technical := causes.Of(causes.Message{Text: message}); technical {
		return false
	}
	own := number.FindAllString(sent, -1)
	return len(Choices(f, message)) > 1 || slices.ContainsFunc(number.FindAllString(message, -1), func(n string) bool {
		return n[0] <= '9' && !slices.Contains(own, n) && (len(n) < 6 || !strings.Contains(sent, n))
	})
}
