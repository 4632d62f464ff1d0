package destination

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// sendsIdentifiers sends a record for each row, by the first identifier of its type.
func (sc *scenario) sendsIdentifiers(operation string, table *engine.Table) error {
	sc.sets = nil
	for _, kind := range []string{rpc.TypeString, rpc.TypeInteger} {
		i := slices.IndexFunc(sc.object.identifiers(), func(f rpc.Field) bool { return f.Type == kind })
		if i < 0 {
			continue
		}
		id := sc.object.identifiers()[i]
		key, err := sc.key(sc.object, id) // one for all rows, so that they differ as written
		if err != nil {
			return err
		}
		number, _ := sc.keys.NextInteger()
		var records []*record
		for _, row := range engine.Rows(table) {
			if strings.Contains(row[0], "{number}") && sc.keys.Given {
				continue // the author has said what a key looks like
			}
			text := strings.ReplaceAll(row[0], "{number}", strconv.FormatInt(number, 10))
			r, err := sc.withIdentifier(id, len(records)+1, strings.Trim(string(key), `"`), text)
			if err != nil {
				return err
			}
			if r != nil {
				records = append(records, r)
			}
		}
		if len(records) > 0 {
			sc.sets = append(sc.sets, set{operation, records})
		}
	}
	if len(sc.sets) == 0 {
		return notApplicable("%s has no identifier of that type", sc.object)
	}
	return sc.sendSets(&sending{alone: true})
}

// withIdentifier makes a record whose key is written in the table: {key} is an
// ordinary key of the run, in an address the part before the @, {odd} a number beyond 2^53 that doubles cannot hold.
func (sc *scenario) withIdentifier(id rpc.Field, n int, key, text string) (*record, error) {
	quoted := strings.HasPrefix(text, `"`)
	if quoted != (id.Type == rpc.TypeString) {
		return nil, nil // the row is for identifiers of the other type
	}
	r, err := sc.newRecord(sc.object, id)
	if err != nil {
		return nil, err
	}
	if sc.opts.KeyFrom != 0 || sc.opts.KeyTo != 0 {
		if id.Type == rpc.TypeInteger {
			return nil, nil // the author bounds integer keys: none beyond 2^53
		}
	}
	run, _ := strconv.ParseInt(sc.keys.Run, 16, 64)
	text = strings.ReplaceAll(text, "{odd}", strconv.FormatInt(values.OddKey(run, n), 10))
	text = keyIn(text, key)
	r = r.with(id.APIName, json.RawMessage(filled(text)))
	r.odd.key, r.near = true, true
	return r, nil
}

// keyIn puts a key into the text of a row. An address stays one: what the row adds stands
// before the @, and spaces at its end behind the whole.
func keyIn(text, key string) string {
	if name, domain, address := strings.Cut(key, "@"); address && strings.Contains(text, "{key}") {
		open := strings.TrimSuffix(text, `"`)
		added := strings.TrimRight(open, " ")
		key, text = name, added+"@"+domain+open[len(added):]+`"`
	}
	return strings.ReplaceAll(text, "{key}", key)
}

var fillTo = regexp.MustCompile(`\{to (\d+)\}`)

// filled puts so many letters for {to N} that the text before it has N characters.
func filled(text string) string {
	at := fillTo.FindStringSubmatchIndex(text)
	if at == nil {
		return text
	}
	n, _ := strconv.Atoi(text[at[2]:at[3]]) // digits
	return text[:at[0]] + strings.Repeat("x", max(n-utf8.RuneCountInString(strings.Trim(text[:at[0]], `"`)), 0)) + text[at[1]:]
}

// keysMerged is the cause where records with such identifiers are not what was sent, and
// others are.
var keysMerged = cause{
	text: "the identifier is changed on its way into its column or to the look-up (cut, folded, decoded, made a number), so that another record has it, too.",
	fix:  "store and compare identifiers exactly, in a column that takes every one, or fail the record.",
}
