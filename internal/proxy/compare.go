package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/hook"
)

type difference struct{ place, was, is string }

// compareAnswers lists the places in which two answers to one call differ in meaning.
// Members of objects have no order, and neither have results, objects, fields and
// operations; values that differ from call to call (times, generated ids, the words
// of a message) do not count.
func compareAnswers(wasStatus int, was []byte, isStatus int, is []byte) []difference {
	var out []difference
	if wasStatus != isStatus {
		out = append(out, difference{"the HTTP status", fmt.Sprint(wasStatus), fmt.Sprint(isStatus)})
	}
	a, errA := parseAny(was)
	b, errB := parseAny(is)
	switch {
	case errA != nil && errB != nil:
		return out // both are no JSON, which the judge reports
	case errA != nil || errB != nil:
		return append(out, difference{"the body", bodyWords(was, errA), bodyWords(is, errB)})
	}
	compareValues("", a, b, &out)
	return out
}

func bodyWords(b []byte, err error) string {
	if err != nil {
		return "no JSON: " + shortText(string(b))
	}
	return "JSON"
}

func parseAny(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return v, nil
}

// unordered are the lists whose elements have names.
var unordered = map[string]string{
	"result.record_results": "identifier", "result.objects": "object_api_name", "result.fields": "field_api_name", "result.operations": "",
}

// mostDifferences bounds the reported differences of one answer.
const mostDifferences = 50

func compareValues(place string, was, is any, out *[]difference) {
	if len(*out) >= mostDifferences {
		return
	}
	differ := func() { *out = append(*out, difference{place, shownValue(was), shownValue(is)}) }
	switch a := was.(type) {
	case map[string]any:
		b, ok := is.(map[string]any)
		if !ok {
			differ()
			return
		}
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			below := strings.TrimPrefix(place+"."+name, ".")
			x, had := a[name]
			y, has := b[name]
			switch {
			case had && has:
				compareValues(below, x, y, out)
			case had:
				*out = append(*out, difference{below, shownValue(x), "absent"})
			default:
				*out = append(*out, difference{below, "absent", shownValue(y)})
			}
		}
	case []any:
		b, ok := is.([]any)
		if !ok {
			differ()
			return
		}
		compareLists(place, a, b, out)
	case json.Number:
		if b, ok := is.(json.Number); !ok || !hook.SameNumber(a.String(), b.String()) {
			differ()
		}
	case string:
		b, ok := is.(string)
		if !ok || a != b && !meaningless(place, a, b) {
			differ()
		}
	default:
		if was != is {
			differ()
		}
	}
}

// compareLists matches elements by their names where they have some.
func compareLists(place string, was, is []any, out *[]difference) {
	key, named := unordered[place]
	if !named {
		if len(was) != len(is) {
			*out = append(*out, difference{place, fmt.Sprintf("%d elements", len(was)), fmt.Sprintf("%d elements", len(is))})
			return
		}
		for i := range was {
			compareValues(place+"[]", was[i], is[i], out)
		}
		return
	}
	nameOf := func(v any) string {
		if m, ok := v.(map[string]any); ok && key != "" {
			v = m[key]
		}
		text, _ := json.Marshal(v)
		return string(text)
	}
	now := map[string][]any{}
	for _, v := range is {
		now[nameOf(v)] = append(now[nameOf(v)], v)
	}
	for _, v := range was {
		name := nameOf(v)
		if len(now[name]) == 0 {
			*out = append(*out, difference{place + "[]", shortText(name), "absent"})
			continue
		}
		compareValues(place+"[]", v, now[name][0], out)
		now[name] = now[name][1:]
	}
	for _, v := range is {
		if name := nameOf(v); len(now[name]) > 0 {
			*out = append(*out, difference{place + "[]", "absent", shortText(name)})
			now[name] = now[name][1:]
		}
	}
}

// Values that differ from call to call by their nature.
var (
	instant = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?$`)
	ownID   = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	// echoed are values that were sent, and so must come back as they are.
	echoed = []string{"id", "result.record_results[].identifier"}
)

// meaningless reports whether two different texts say the same: the words of messages,
// times, and ids that the endpoint makes.
func meaningless(place, a, b string) bool {
	if slices.Contains(echoed, place) {
		return false
	}
	if strings.HasSuffix(place, "message") || strings.HasPrefix(place, "error.data") {
		return (strings.TrimSpace(a) == "") == (strings.TrimSpace(b) == "")
	}
	return instant.MatchString(a) && instant.MatchString(b) || ownID.MatchString(a) && ownID.MatchString(b)
}

func shownValue(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return shortText(string(text))
}

func shortText(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + " …"
}
