package rawjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

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
