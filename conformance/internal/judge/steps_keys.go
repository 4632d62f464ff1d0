package judge

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// sendsIdentifiers sends a record for each row, by the first identifier of its type.
func (sc *Scenario) sendsIdentifiers(operation string, table *engine.Table) error {
	sc.Sets = nil
	for _, kind := range []string{rpc.TypeString, rpc.TypeInteger} {
		i := slices.IndexFunc(sc.Object.Identifiers(), func(f rpc.Field) bool { return f.Type == kind })
		if i < 0 {
			continue
		}
		id := sc.Object.Identifiers()[i]
		key, err := sc.Key(sc.Object, id) // one for all rows, so that they differ as written
		if err != nil {
			return err
		}
		number, _ := sc.Keys.NextInteger()
		var records []*write.Record
		for _, row := range engine.Rows(table) {
			if strings.Contains(row[0], "{number}") && sc.Keys.Given {
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
			sc.Sets = append(sc.Sets, write.Set{Operation: operation, Records: records})
		}
	}
	if len(sc.Sets) == 0 {
		return line.NotApplicable("%s has no identifier of that type", sc.Object)
	}
	return sc.SendSets(&write.Sending{Alone: true})
}

// withIdentifier makes a record whose key is written in the table: {key} is an
// ordinary key of the run, in an address the part before the @, {odd} a number beyond 2^53 that doubles cannot hold.
func (sc *Scenario) withIdentifier(id rpc.Field, n int, key, text string) (*write.Record, error) {
	quoted := strings.HasPrefix(text, `"`)
	if quoted != (id.Type == rpc.TypeString) {
		return nil, nil // the row is for identifiers of the other type
	}
	r, err := sc.NewRecord(sc.Object, id)
	if err != nil {
		return nil, err
	}
	if sc.Opts.KeyFrom != 0 || sc.Opts.KeyTo != 0 {
		if id.Type == rpc.TypeInteger {
			return nil, nil // the author bounds integer keys: none beyond 2^53
		}
	}
	run, _ := strconv.ParseInt(sc.Keys.Run, 16, 64)
	text = strings.ReplaceAll(text, "{odd}", strconv.FormatInt(values.OddKey(run, n), 10))
	text = KeyIn(text, key)
	r = r.With(id.APIName, json.RawMessage(filled(text)))
	r.Odd.Key, r.Near = true, true
	return r, nil
}

// KeyIn puts a key into the text of a row. An address stays one: what the row adds stands
// before the @, and spaces at its end behind the whole.
func KeyIn(text, key string) string {
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
var keysMerged = write.Cause{
	Text: "the identifier is changed on its way into its column or to the look-up (cut, folded, decoded, made a number), so that another record has it, too.",
	Fix:  "store and compare identifiers exactly, in a column that takes every one, or fail the record.",
}
