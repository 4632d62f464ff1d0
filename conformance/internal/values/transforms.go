// Package values makes what a run sends: ordinary values of each declared type, keys that carry
// the run, and the values that show what an endpoint does to a value on its way. It reads the
// difference between a value that was sent and the one that is stored. It makes no call, and
// leaves to others which record carries a value and what a difference breaks.
package values

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Transform is one change that an endpoint can make to a value without noticing: which values
// show it, and what it makes of them.
type Transform struct {
	Name  string // of several where an endpoint can do the same in several ways
	Class Class
	Type  string // of the fields; TypeArray for the items of any array
	Says  string // what the change looks like, as the end of "it is …: "
	Apply func(raw json.RawMessage) json.RawMessage
	Shows []json.RawMessage // values that it changes
}

// TypeArray means arrays of texts.
const TypeArray = "texts"

// all are the transforms that are known, those of one type after those of another.
var all = slices.Concat(textTransforms, unicodeTransforms, castTransforms, cuts(), numberTransforms, dateTransforms, momentTransforms, booleanTransforms, arrayTransforms)

// Shown is a value that a transform changes. Nearly is what it becomes, nil for all but the first one of a transform
// through which both are the same.
type Shown struct{ Value, Nearly json.RawMessage }

// Revealing are the values of a type that the transforms of a name change.
func Revealing(kind, name string) []Shown {
	var out []Shown
	for _, t := range all {
		if t.Name != name || t.Type != kind {
			continue
		}
		for _, raw := range t.Shows {
			out = append(out, Shown{Value: raw})
		}
		made := t.Apply(t.Shows[0])
		if t.Class != Retyped && t.Class != Null && string(t.Apply(made)) == string(made) {
			out[len(out)-len(t.Shows)].Nearly = made
		}
	}
	return out
}

// onRaw makes a transform of values as they are in JSON.
func onRaw(name, kind string, class Class, says string, apply func(json.RawMessage) json.RawMessage, shows ...string) Transform {
	return Transform{
		Name: name, Class: class, Type: kind, Says: says, Apply: apply,
		Shows: lists.Of(shows, func(s string) json.RawMessage { return json.RawMessage(s) }),
	}
}

// onText makes a transform of texts.
func onText(name string, class Class, says string, apply func(string) string, shows ...string) Transform {
	return onRaw(name, rpc.TypeString, class, says, mapText(apply), quoted(shows)...)
}

func quoted(texts []string) []string {
	return lists.Of(texts, func(s string) string { return string(Quote(s)) })
}

// mapText changes the text of a value that is sent as a text.
func mapText(apply func(string) string) func(json.RawMessage) json.RawMessage {
	return func(raw json.RawMessage) json.RawMessage { return Quote(apply(Text(raw))) }
}

// mapRaw changes the JSON of a value.
func mapRaw(apply func(string) string) func(json.RawMessage) json.RawMessage {
	return func(raw json.RawMessage) json.RawMessage { return json.RawMessage(apply(string(raw))) }
}

// replacing makes a change of texts from pairs of old and new.
func replacing(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

// before makes a change of texts that cuts them before a text in them.
func before(end string) func(string) string {
	return func(s string) string {
		first, _, _ := strings.Cut(s, end)
		return first
	}
}

// unlessFails makes a change of texts that leaves those for which it fails as they are.
func unlessFails(change func(string) (string, error)) func(string) string {
	return func(s string) string {
		if made, err := change(s); err == nil {
			return made
		}
		return s
	}
}

// cuts are the transforms of columns of a common width, in characters and in bytes.
func cuts() []Transform {
	var out []Transform
	for _, size := range []int{40, 64, 255, 1000, 4000} {
		plain, wide := strings.Repeat("abcdefghij", size/10+1)[:size]+"Z", strings.Repeat("é", size/2)+"éZ"
		out = append(out,
			onText("truncate", Prefix, "cut after "+quantity.Count(size, "character"), func(s string) string {
				if r := []rune(s); len(r) > size {
					return string(r[:size])
				}
				return s
			}, plain),
			onText("truncate", Prefix, "cut after "+quantity.Count(size, "byte"), func(s string) string {
				if len(s) > size {
					return strings.ToValidUTF8(s[:size], "")
				}
				return s
			}, wide))
	}
	return append(out,
		onText("end early", Prefix, "cut at the end of its first line", before("\n"), "one\r\ntwo\nthree\rfour"),
		onText("end early", Prefix, "cut at the character U+0000", before("\x00"), "a\x00b"),
		onText("end early", Prefix, "cut at the first character outside the basic plane", func(s string) string {
			return s[:len(s)-len(strings.TrimLeftFunc(s, func(r rune) bool { return r <= 0xffff }))]
		}, "before \U0001f680 after"))
}

// Class is what became of a value that was sent.
type Class string

// The classes of stored values.
const (
	Equal       Class = "equal"
	Absent      Class = "absent"
	Null        Class = "null"
	Dropped     Class = "dropped"
	NullLost    Class = "null lost"
	Constant    Class = "constant"
	Clamped     Class = "clamped"
	Prefix      Class = "prefix"
	Case        Class = "case"
	Trimmed     Class = "trimmed"
	Normalised  Class = "normalised"
	Charset     Class = "character set"
	Misread     Class = "read in another character set"
	Removed     Class = "removed"
	Escaped     Class = "escaped"
	Unescaped   Class = "unescaped"
	Evaluated   Class = "evaluated"
	Shifted     Class = "shifted"
	Century     Class = "another century"
	WeekYear    Class = "year of the week"
	Rounded     Class = "rounded"
	Reformatted Class = "reformatted"
	Retyped     Class = "other type"
	Items       Class = "items"
	EmptyItems  Class = "empty items"
	Added       Class = "added"
	// ItemsUnordered: the items are there, in another order or each once.
	ItemsUnordered Class = "items in another order"
	Overflown      Class = "overflow"
	OtherField     Class = "another field"
	OtherRecord    Class = "another record"
	Older          Class = "older"
	Hidden         Class = "hidden"
	Other          Class = "other"
)

// hashed is what hashes of passwords and texts look like.
var hashed = regexp.MustCompile(`^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128}|\$2[aby]\$.{50,}|\$argon2.+|pbkdf2.+)$`)

// Cause is the possible cause of a class and its fix, "" for Other and Older, where the text of a
// check, or what calls have shown, is better.
func (c Class) Cause() (cause, fix string) { return causes[c][0], causes[c][1] }

var causes = map[Class][2]string{
	Absent:         {"the field is not written, or the read-back hook does not select it.", "write every field of the plan and show it in the hook; a field that the hook cannot show is named in \"hidden\" of the fixtures."},
	Null:           {"the value is dropped: an empty value, zero or a marker of a bulk loader is taken for no value.", "compare with null only, not with what is empty, and give the loader a marker that no value has."},
	Dropped:        {"a conversion or a look-up that failed gave null, or the statement leaves the field out.", "let the conversion fail, and the record with it; write every field of the plan."},
	NullLost:       {"null is written as a text, or decoded into a type that has no null.", "keep null apart from every value: a pointer, an optional type, or a bound parameter."},
	Constant:       {"the conversion of the value failed and gave the default of the type, every value that the code does not know becomes one (OTHER), or a fixed value is written.", "let the conversion fail, and fail the record with it."},
	Clamped:        {"the column or the code has a smaller range than the declared type, and stores the limit of that range instead of refusing.", "use a column with the range of the declared type, or fail the record."},
	Prefix:         {"the column, a buffer or the code is shorter than the value and cuts it.", "widen the column, or fail the record; let the database be strict."},
	Case:           {"text is brought into one case before it is stored.", "store text as it is, and ignore the case only where texts are compared."},
	Trimmed:        {"text is tidied up before it is stored: spaces or line ends.", "store text as it is."},
	Normalised:     {"text is normalised before it is stored.", "store text as it is, and normalise only where texts are compared."},
	Charset:        {"a column, a connection or a file has a smaller character set than Unicode.", "use UTF-8 with four bytes all the way."},
	Misread:        {"UTF-8 is decoded as Latin-1 or Windows-1252: the body of the call, or what a driver or a column gives back.", "decode the body as UTF-8, and name UTF-8 where a connection or a file is opened."},
	Removed:        {"characters are taken out of the text, against attacks or because a part of the code cannot hold them.", "store text as it is, and escape it where it is shown."},
	Escaped:        {"text is escaped before it is stored, for a page or a statement.", "bind parameters instead of escaping, and escape for a page when it is shown."},
	Unescaped:      {"text is decoded once more than it was encoded.", "decode the JSON of the body once and nothing else."},
	Evaluated:      {"the text is used as a template, as a format or as a statement with parameters.", "give the text as an argument, never as the template."},
	Shifted:        {"the value is read or written in a local zone or in another calendar.", "parse the zone, keep moments in UTC, and keep a date as a date."},
	Century:        {"the year goes through two digits, or through a constructor that takes small years for those of the 1900s.", "keep all four digits of the year."},
	WeekYear:       {"the date is written with the year of its week (YYYY in place of yyyy, %G in place of %Y).", "write the year of the calendar: yyyy, uuuu, %Y."},
	Rounded:        {"the value goes through a type with fewer digits: floating point, a column with a fixed number of places, or a format.", "use a type that holds every digit of the declared one, and do not format the number."},
	Reformatted:    {"the value is read as another type and written again, or in the notation of a locale.", "store the value as it was sent, and give it back in the notation of its type."},
	Retyped:        {"the value is stored as another type than the declared one, or read back without its type.", "declare the type that is stored, or convert it; a hook gives back the declared type as well."},
	Items:          {"the list is not kept as a list: joined and split again, or changed item by item.", "store a list, and replace it as a whole."},
	EmptyItems:     {"items without content are taken out of the list (a filter, or a text that is split again).", "keep every item of a list, also one that is empty."},
	Added:          {"what is sent is added to what is there, or written over it by position: what was there before is never removed.", "put the value in the place of the old one (SET x = ?); of a list remove the old items first, in the same transaction."},
	ItemsUnordered: {"the list goes through a set, or is sorted or turned round: its order or its repetitions are lost.", "store a list, with the place of each item."},
	Overflown:      {"the value overflows a smaller type: a column or a variable has fewer bits than the declared type needs, and nothing refuses what does not fit.", "use a type that holds every value of the declared one, or fail the record."},
	OtherField:     {"values are assigned by position, not by name.", "read each value by the name of its field."},
	OtherRecord:    {"the values of another record are written into it: a variable is shared by records or by calls at the same time, or the condition of a statement reaches more than its record.", "keep the values of a record in it."},
	Hidden:         {"the field is stored as a hash or masked, which a read-back cannot compare.", "name the field in \"hidden\" of the fixtures, or in \"hidden\" of the hook's reply."},
}

// asArray compares lists as a whole, with the list before, and item by item.
func asArray(p Pair) Difference {
	var sent, stored, before []json.RawMessage
	if !p.Field.Array || json.Unmarshal(p.Sent, &sent) != nil {
		return Difference{}
	}
	if json.Unmarshal(p.Stored, &stored) != nil {
		return Difference{Class: Retyped, How: "it is no list"}
	}
	if p.Before != nil {
		_ = json.Unmarshal(p.Before, &before) // else nothing was there
	}
	a, b, old := lists.Of(sent, Text), lists.Of(stored, Text), lists.Of(before, Text)
	sorted := func(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
	count := fmt.Sprintf("%s of %d", quantity.Count(len(b), "item"), len(a))
	d := firstOf([]sign{
		{len(b) > len(a) && len(old) > 0 && (slices.Equal(b, slices.Concat(old, a)) || slices.Equal(b, slices.Concat(a, old))),
			Added, "its items are added to those from before"},
		{len(b) > len(a) && len(old) == len(b) && slices.Equal(b, slices.Concat(a, old[len(a):])),
			Added, "what the list before was longer is still there"},
		{len(a) == len(b) && slices.Equal(sorted(a), sorted(b)), ItemsUnordered, "its items are in another order"},
		{len(b) < len(a) && slices.Equal(sorted(b), slices.Compact(sorted(a))), ItemsUnordered, "its repetitions are gone"},
		{len(b) < len(a) && len(b) > 0 && slices.Equal(b, a[:len(b)]), Prefix, "cut after " + count},
		{len(a) != len(b), Items, count},
	})
	item := p.Field
	item.Array = false
	for i := 0; d.Class == "" && i < len(a); i++ {
		if one := Classify(Pair{Field: item, Sent: sent[i], Stored: stored[i]}); one.Class != Equal {
			d = Difference{Class: one.Class, How: fmt.Sprintf("item %d: %s", i+1, one.How)}
		}
	}
	return cmp.Or(d, Difference{Class: Items, How: count})
}
