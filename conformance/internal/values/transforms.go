package values

import (
	"encoding/json"
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
