package service

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// braces are the places of a text that a scenario fills in. JSON has a quote or a
// space behind its brace.
var braces = regexp.MustCompile(`\{[a-z][a-z_]*\}`)

// filled puts what they stand for in place of the words of a text.
func (sc *scenario) filled(text string) string {
	var missing string
	out := braces.ReplaceAllStringFunc(text, func(place string) string {
		s, known := sc.word(strings.Trim(place, "{}"))
		if !known {
			missing = place
		}
		return s
	})
	if missing != "" {
		stop(engine.Outcome(conformance.HarnessError, "", "nothing stands for %s in %s", missing, text))
	}
	return out
}

// unknownID is far above what anybody has counted to, and small enough for
// every kind of integer.
const unknownID = 2_000_000_011

// secretTail makes secrets long enough to be found in every encoding.
const secretTail = "kW7tQ2mZ"

// word is what stands for a name in braces: what a step has put there, and
//
//	{name}, {email}           new at each place
//	{this_name}, {this_…}     the same throughout the scenario
//	{secret}, {secret_…}      a text of this scenario that must not be shown
//	{destination}, {sync}, …  the id of the latest one, or of the {first_sync}
//	{nobody}                  an id that nothing has
//	{…_mapping}, {table}      what is long to write
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
		text = fmt.Sprintf("zz%sq%dx", sc.opts.RunID, sc.numbers.Add(1)) + secretTail
		sc.secrets.Add(text, "$SECRET")
	default:
		return sc.thingWord(name)
	}
	sc.words[name] = text
	return text, true
}

func (sc *scenario) thingWord(name string) (string, bool) {
	id := func(n int64, known bool) (string, bool) { return strconv.FormatInt(n, 10), known }
	switch name {
	case "name":
		return sc.called("thing"), true
	case "email":
		return sc.email("person"), true
	case "nobody":
		return id(unknownID, true)
	case "source":
		return id(sc.source, true)
	case "destination":
		if sc.dest != nil {
			return id(sc.dest.id, true)
		}
	case "dataset":
		return id(sc.nextSync().rows.id, true)
	case "sync", "first_sync":
		if len(sc.syncs) == 0 {
			return "", false
		}
		if name == "sync" {
			return id(sc.latest().id, true)
		}
		return id(sc.syncs[0].id, true)
	case "alert":
		return jsonvalue.Raw(sc.last().at("data", "alert_attributes", "0", "id")), true
	case "id_mapping":
		return string(jsonvalue.Encode(identifies(mapping("id", "id")))), true
	case "lookup_mapping":
		return string(jsonvalue.Encode(sc.lookup())), true
	case "table":
		return string(jsonvalue.Encode(sc.nextSync().over["source_attributes"])), true
	}
	return "", false
}

// says lets a word stand for an id from now on.
func (sc *scenario) says(word string, id int64) { sc.words[word] = strconv.FormatInt(id, 10) }
