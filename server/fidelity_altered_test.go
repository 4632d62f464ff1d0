package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An alteration is a violation that needs no code: "/syncs: mappings.to" is a
// service whose answers below /syncs have another value in each member to of
// mappings. The value keeps its type, so that the OpenAPI document alone does not
// tell; only good answers are altered.
type alteration struct {
	below  string   // the begin of the path, "/" for all
	member []string // names from outside in; lists between them have none
}

// isAlteration tells an entry of broken_by from the id of a violation.
func isAlteration(text string) bool { return strings.HasPrefix(text, "/") }

// readAlteration reads "/path: member.member".
func readAlteration(text string) (alteration, error) {
	below, member, ok := strings.Cut(text, ": ")
	if !ok || member == "" {
		return alteration{}, fmt.Errorf(`%q is no alteration, such as "/syncs: mappings.to"`, text)
	}
	return alteration{below, strings.Split(member, ".")}, nil
}

// alteredOnPurpose are the alterations that TestFidelityMutations asks of the
// process it starts.
func alteredOnPurpose(t testing.TB) (all []alteration) {
	t.Helper()
	for _, text := range strings.Split(os.Getenv("DESTKIT_BREAK"), ",") {
		if isAlteration(text) {
			one, err := readAlteration(text)
			require.NoError(t, err)
			all = append(all, one)
		}
	}
	return all
}

// apply alters an answer to a path.
func (a alteration) apply(path string, text []byte) []byte {
	if !strings.HasPrefix(path+"/", strings.TrimSuffix(a.below, "/")+"/") {
		return text
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return text // no JSON
	}
	altered, err := json.Marshal(a.in(value, nil))
	if err != nil {
		return text
	}
	return altered
}

// in alters a value that lies below members of these names.
func (a alteration) in(value any, path []string) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = a.in(v[i], path)
		}
	case map[string]any:
		for name, inner := range v {
			at := append(path[:len(path):len(path)], name)
			if a.meant(at) {
				v[name] = another(inner)
			} else {
				v[name] = a.in(inner, at)
			}
		}
	}
	return value
}

// meant reports whether a path ends with the names of the alteration.
func (a alteration) meant(path []string) bool {
	skip := len(path) - len(a.member)
	if skip < 0 {
		return false
	}
	for i, name := range a.member {
		if path[skip+i] != name {
			return false
		}
	}
	return true
}

// another is a value of the same type; of null and of what is empty, it is one
// that is there.
func another(value any) any {
	switch v := value.(type) {
	case bool:
		return !v
	case json.Number:
		n, _ := v.Float64()
		return n + 1
	case string:
		if strings.HasSuffix(v, "Z") && strings.Contains(v, "T") {
			return "1999-12-31T00:00:00Z"
		}
		return v + "x"
	case []any:
		if len(v) == 0 {
			return []any{"x"}
		}
		return append(v, v...)
	case map[string]any:
		return map[string]any{}
	}
	return 7
}

func TestAlteration(t *testing.T) {
	for _, one := range []struct{ alteration, path, in, out string }{
		{"/syncs: label", "/syncs/1", `{"data":{"label":"a","id":1}}`, `{"data":{"label":"ax","id":1}}`},
		{"/syncs: data.status", "/syncs", `{"status":"success","data":[{"status":"a"},{"status":"b"}]}`, `{"status":"success","data":[{"status":"ax"},{"status":"bx"}]}`},
		{"/syncs: id", "/sync_runs/1", `{"id":1}`, `{"id":1}`},
		{"/: pagination.next_page", "/syncs", `{"pagination":{"next_page":null}}`, `{"pagination":{"next_page":7}}`},
		{"/: paused", "/syncs", `{"paused":false,"n":12345678901234567890}`, `{"paused":true,"n":12345678901234567890}`},
		{"/: created_at", "/syncs", `{"created_at":"2026-01-02T03:04:05Z"}`, `{"created_at":"1999-12-31T00:00:00Z"}`},
		{"/: names", "/syncs", `{"names":["a"]}`, `{"names":["a","a"]}`},
	} {
		a, err := readAlteration(one.alteration)
		require.NoError(t, err)
		require.JSONEq(t, one.out, string(a.apply(one.path, []byte(one.in))), one.alteration)
	}
	_, err := readAlteration("/syncs")
	require.Error(t, err)
}
