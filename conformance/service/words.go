package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// braces are the places of a text to fill in. JSON has a quote or a space behind its brace.
var braces = regexp.MustCompile(`\{[a-z][a-z_]*\}`)

// filled replaces the words of a text.
func (sc *scenario) filled(text string) string {
	return braces.ReplaceAllStringFunc(text, func(place string) string {
		s, known := sc.word(strings.Trim(place, "{}"))
		if !known {
			stop(engine.Outcome(conformance.HarnessError, "", "nothing stands for %s in %s", place, text))
		}
		return s
	})
}

// word is the value of a name in braces: the one that a step has set, or
//
//	{name}, {email}           new at each place
//	{this_name}, {this_…}     the same throughout the scenario
//	{secret}, {secret_…}      a text of this scenario that must not be shown
//	{destination}, {sync}, …  the id of the latest one, or of the {first_sync}
//	{nobody}                  an unused id
//	{…_mapping}, {table}      texts that are long to write
func (sc *scenario) word(name string) (text string, known bool) {
	if text, known = sc.words[name]; known {
		return text, true
	}
	fixed, same := strings.CutPrefix(name, "this_")
	switch kind, _, _ := strings.Cut(fixed, "_"); {
	case same:
		if text, known = sc.word(kind); !known {
			return "", false
		}
	case kind == "secret":
		// Its tail makes it long enough to be found in every encoding.
		text = fmt.Sprintf("zz%sq%dxkW7tQ2mZ", sc.opts.RunID, sc.numbers.Add(1))
		sc.secrets.Add(text, "$SECRET")
	default:
		of := thingWords[name]
		missing := map[string]bool{"destination": sc.dest == nil, "sync": len(sc.syncs) == 0, "first_sync": len(sc.syncs) == 0}
		if of == nil || missing[name] {
			return "", false
		}
		return fmt.Sprint(of(sc)), true
	}
	sc.words[name] = text
	return text, true
}

// thingWords are ids and texts by their names.
var thingWords = map[string]func(sc *scenario) any{
	"name":        func(sc *scenario) any { return sc.called("thing") },
	"email":       func(sc *scenario) any { return sc.email("person") },
	"nobody":      func(*scenario) any { return 2_000_000_011 }, // not counted to by anybody, and an integer of any kind
	"source":      func(sc *scenario) any { return sc.source },
	"destination": func(sc *scenario) any { return sc.dest.id },
	"dataset":     func(sc *scenario) any { return sc.next.rows.id },
	"sync":        func(sc *scenario) any { return sc.latest().id },
	"first_sync":  func(sc *scenario) any { return sc.syncs[0].id },
	"alert": func(sc *scenario) any {
		return jsonvalue.Raw(sc.last().at("data", "alert_attributes", "0", "id"))
	},
	"id_mapping":     func(*scenario) any { return string(jsonvalue.Encode(identifies(mapping("id", "id")))) },
	"lookup_mapping": func(sc *scenario) any { return string(jsonvalue.Encode(sc.lookup())) },
	"table":          func(sc *scenario) any { return string(jsonvalue.Encode(sc.next.over["source_attributes"])) },
}

// says defines a word as an id from now on.
func (sc *scenario) says(word string, id int64) { sc.words[word] = strconv.FormatInt(id, 10) }

// laid gives a body with a table over it: fields by paths with dots, values as JSON. The value "nothing" leaves one out.
func (sc *scenario) laid(body map[string]any, t *engine.Table) map[string]any {
	out := maps.Clone(body)
	for _, row := range cells(t) {
		if row["value"] == "nothing" {
			delete(out, row["field"])
			continue
		}
		jsonvalue.Put(out, row["field"], sc.value(row["value"]))
	}
	return out
}

// asked are the rows of a table as fields by path; nil for one that is left out.
func (sc *scenario) asked(t *engine.Table) map[string]any {
	fields := map[string]any{}
	for _, row := range cells(t) {
		if fields[row["field"]] = nil; row["value"] != "nothing" {
			fields[row["field"]] = sc.value(row["value"])
		}
	}
	return fields
}

// value reads a cell: JSON with words in place of ids.
func (sc *scenario) value(cell string) any {
	var v any
	stopAt(json.Unmarshal([]byte(sc.filled(cell)), &v), "read cell %q", cell)
	return v
}

// cells are the rows of a table by the names in its first one.
func cells(t *engine.Table) []map[string]string {
	var out []map[string]string
	rows := engine.Rows(t)
	for _, row := range rows[1:] {
		one := map[string]string{}
		for i, cell := range row {
			one[rows[0][i]] = cell
		}
		out = append(out, one)
	}
	return out
}
