package values

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// Transform is one change that an endpoint can make to a value without noticing. It
// says which values it would change, so that a run sends them, and what it makes of a
// value, so that a difference is recognised.
type Transform struct {
	Name  string
	Class Class
	Type  string // of the fields; TypeArray for the items of any array
	Says  string // what the change looks like, as the end of "it is …: "
	Apply func(raw json.RawMessage) json.RawMessage
	Shows []json.RawMessage // values that it changes
}

// TypeArray stands for arrays of texts.
const TypeArray = "texts"

// all are the transforms that are known, those of one type after those of another.
var all = slices.Concat(textTransforms, unicodeTransforms, castTransforms, cuts(), numberTransforms, dateTransforms, momentTransforms, booleanTransforms, arrayTransforms)

// Transforms are those of a name: a name stands for several where an endpoint can do
// the same in several ways.
func Transforms(name string) []Transform {
	var out []Transform
	for _, t := range all {
		if t.Name == name {
			out = append(out, t)
		}
	}
	return out
}

// Revealing are the values of a type that the transforms of a name change, each once.
func Revealing(kind, name string) []json.RawMessage {
	var out []json.RawMessage
	for _, t := range Transforms(name) {
		for _, raw := range t.Shows {
			if t.Type == kind && !slices.ContainsFunc(out, func(o json.RawMessage) bool { return string(o) == string(raw) }) {
				out = append(out, raw)
			}
		}
	}
	return out
}

// onText makes a transform of texts.
func onText(name string, class Class, says string, apply func(string) string, shows ...string) Transform {
	return Transform{
		Name: name, Class: class, Type: rpc.TypeString, Says: says, Shows: quoted(shows...),
		Apply: func(raw json.RawMessage) json.RawMessage { return Quote(apply(Text(raw))) },
	}
}

func quoted(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		out[i] = Quote(text)
	}
	return out
}

// replacing makes a change of texts from pairs of old and new.
func replacing(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

// cutSizes are the widths of columns that are common.
var cutSizes = []int{40, 64, 255, 1000, 4000}

// cuts are the transforms of columns of a fixed width, in characters and in bytes.
func cuts() []Transform {
	var out []Transform
	for _, size := range cutSizes {
		plain, wide := strings.Repeat("abcdefghij", size/10+1)[:size]+"Z", strings.Repeat("é", size/2)+"éZ"
		out = append(out,
			onText("truncate", Prefix, "cut after "+quantity.Count(size, "character"), func(s string) string { return firstRunes(s, size) }, plain),
			onText("truncate", Prefix, "cut after "+quantity.Count(size, "byte"), func(s string) string { return firstBytes(s, size) }, wide))
	}
	return append(out,
		onText("end early", Prefix, "cut at the end of its first line", func(s string) string { first, _, _ := strings.Cut(s, "\n"); return first }, "one\r\ntwo\nthree\rfour"),
		onText("end early", Prefix, "cut at the character U+0000", func(s string) string { first, _, _ := strings.Cut(s, "\x00"); return first }, "a\x00b"),
		onText("end early", Prefix, "cut at the first character outside the basic plane", func(s string) string {
			if i := strings.IndexFunc(s, func(r rune) bool { return r > 0xffff }); i >= 0 {
				return s[:i]
			}
			return s
		}, "before \U0001f680 after"))
}

func firstRunes(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
