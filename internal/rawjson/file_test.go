package rawjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFileSaysWhatIsWrong: in plain words, with the place and the expectation.
func TestFileSaysWhatIsWrong(t *testing.T) {
	type kept struct {
		Version int       `json:"schema_version"`
		Name    string    `json:"name"`
		At      time.Time `json:"at"`
		Parts   []struct {
			Count int `json:"count"`
		} `json:"parts"`
	}
	f := File{Expected: "a kept file", Version: 2}
	for text, want := range map[string]string{
		"":                                 "it is empty; expected a kept file",
		" \n":                              "it is empty; expected a kept file",
		"hello":                            "line 1, column 1: not JSON: not the start of a value; expected a kept file",
		"<html>":                           "line 1, column 1: not JSON: not the start of a value; expected a kept file",
		"{\n  \"name\": \"ä\", é}":         "line 2, column 16: not JSON: a member must start with a string; expected a kept file",
		`{"name": "a"`:                     "line 1, column 13: not JSON: it ends in the middle; expected a kept file",
		"{}\n{}":                           "line 2, column 1: not JSON: more than one value; expected a kept file",
		"\xff\xfe{\x00":                    "it is UTF-16: save it as UTF-8; expected a kept file",
		"[1]":                              "line 1, column 1: the value must be an object, not a list; expected a kept file",
		"{\n \"name\" : 12}":               "line 2, column 11: name must be a string, not a number; expected a kept file",
		`{"parts":[{"count":"many"}]}`:     "line 1, column 20: parts.count must be a whole number, not a string; expected a kept file",
		`{"parts": {"count":1}}`:           "line 1, column 11: parts must be a list of objects, not an object; expected a kept file",
		`{"at": "tomorrow"}`:               `line 1, column 8: must be a time such as 2026-01-31T12:00:00Z, not "tomorrow"; expected a kept file`,
		`{"name": 1, "schema_version": 9}`: "written by a newer destkit: schema_version 9, this one reads up to 2",
		`{"schema_version": "9"}`:          "written by a newer destkit: schema_version 9, this one reads up to 2",
	} {
		require.EqualError(t, f.Decode([]byte(text), new(kept)), want, text)
	}
	var got kept
	require.NoError(t, f.Decode([]byte("\ufeff{\"schema_version\": 2, \"more\": 1}"), &got))
	require.Equal(t, 2, got.Version)
}

func TestFileLines(t *testing.T) {
	f := File{Expected: "a journal", Strict: true}
	var entry struct {
		Entry string `json:"entry"`
	}
	for text, want := range map[string]string{
		"":                          "line 7 is empty; expected a journal",
		"oops":                      "line 7, column 1: not JSON: not the start of a value; expected a journal",
		`{"entry": 1}`:              "line 7, column 11: entry must be a string, not a number; expected a journal",
		`{"entry":"a","more":true}`: `line 7: unknown member "more"; expected a journal`,
		`{"entry":"a"}{}`:           "line 7, column 14: not JSON: more than one value; expected a journal",
	} {
		require.EqualError(t, f.DecodeLine(7, []byte(text), &entry), want, text)
	}
	require.NoError(t, f.DecodeLine(7, []byte(`{"entry":"a"}`), &entry))
}

func TestNewer(t *testing.T) {
	require.NoError(t, Newer("version", nil, 1))
	require.NoError(t, Newer("version", json.RawMessage(`"1"`), 1))
	require.NoError(t, Newer("version", json.RawMessage(`{"a":1}`), 1))
	require.EqualError(t, Newer("version", json.RawMessage("2"), 1), "written by a newer destkit: version 2, this one reads up to 1")
}

type body struct {
	Name   string          `json:"name"`
	Count  int             `json:"count,omitempty"`
	Size   uint8           `json:"size"`
	Share  float64         `json:"share"`
	On     *bool           `json:"on"`
	Words  []string        `json:"words"`
	Parts  []part          `json:"parts"`
	Raw    json.RawMessage `json:"raw"`
	Hidden string          `json:"-"`
	part
}

type part struct {
	Key string `json:"key"`
}

func TestUnknownKeys(t *testing.T) {
	for text, want := range map[string][]string{
		`{"name":"a","key":"b","parts":[{"key":"c"}],"raw":{"x":1}}`: nil,
		`{"nam":1,"NAME":2,"Hidden":3}`:                              {"Hidden", "NAME", "nam"},
		`{"parts":[{},{"kye":1}]}`:                                   {"parts[1].kye"},
		`{"parts":{"kye":1}}`:                                        nil,
		`[]`:                                                         nil,
	} {
		var places []string
		for _, u := range UnknownKeys(json.RawMessage(text), reflect.TypeFor[*body]()) {
			places = append(places, u.Place)
		}
		require.Equal(t, want, places, text)
	}
	unknown := UnknownKeys(json.RawMessage(`{"parts":[{"kye":1}]}`), reflect.TypeFor[body]())
	require.Equal(t, []UnknownKey{{"parts[0].kye", "kye", []string{"key"}}}, unknown)
}

func TestMistyped(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":3}`:     "must be a string, not a number",
		`{"count":"2"}`:  "must be a whole number, not a string",
		`{"count":1.5}`:  "must be a whole number, not 1.5",
		`{"size":-1}`:    "must be a whole number of 0 or more, not -1",
		`{"share":true}`: "must be a number, not a boolean",
		`{"on":"yes"}`:   "must be true or false, not a string",
		`{"words":"a"}`:  "must be a list of strings, not a string",
		`{"parts":{}}`:   "must be a list of objects, not an object",
		`{"parts":[[]]}`: "must be an object, not a list",
	} {
		var mistyped *json.UnmarshalTypeError
		require.True(t, errors.As(json.Unmarshal([]byte(text), new(body)), &mistyped), text)
		require.Equal(t, want, Mistyped(mistyped), text)
	}
}
