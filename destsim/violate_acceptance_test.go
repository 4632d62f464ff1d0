package destsim

import (
	"maps"
	"strings"
	"testing"
)

// acceptanceGlances send values that an endpoint may not like, to records that
// are there and to others.
func acceptanceGlances() map[string]glance {
	with := func(key, members string) string { return `{"email":"` + key + `","last_name":"x",` + members + `}` }
	accent, plain := `"first_name":"é"`, `"first_name":"e"`
	all := effectGlances()
	maps.Copy(all, map[string]glance{
		"accent inserted":       does(`"a"`, contact("insert", with("a", accent))),
		"accent inserted again": does(`"a"`, contact("upsert", person("a", "1")), contact("insert", with("a", accent))),
		"accent upserted":       does(`"a"`, contact("upsert", with("a", accent))),
		"accent second":         does(`"a" "b"`, contact("upsert", with("a", plain), with("b", accent))),
		"accent updated":        does(`"a"`, contact("upsert", person("a", "1")), contact("update", with("a", accent))),
		"accent in no record":   does(`"a"`, contact("update", with("a", accent))),
		"accent in a key":       does(`"é"`, contact("upsert", with("é", plain))),
		"accent in an array":    does(`"a"`, contact("upsert", with("a", `"tags":["é"]`))),
		"accent deleted":        does(`"a"`, contact("upsert", person("a", "1")), contact("delete", with("a", accent))),
		"null age":              does(`"a"`, contact("upsert", with("a", `"age":null`))),
		"null required":         does(`"a"`, contact("upsert", `{"email":"a","last_name":null}`)),
		"negative age":          does(`"a"`, contact("upsert", with("a", `"age":-1`))),
		"negative balance":      does(`"a"`, contact("insert", with("a", `"balance":"-1.5"`))),
		"negative score":        does(`"a"`, contact("insert", with("a", `"score":-1.5`))),
		"empty name":            does(`"a"`, contact("insert", with("a", `"first_name":""`))),
		"empty tags":            does(`"a"`, contact("insert", with("a", `"tags":[]`))),
		"255 characters":        does(`"a"`, contact("insert", person("a", strings.Repeat("x", columnLength)))),
		"256 characters":        does(`"a"`, contact("insert", person("a", strings.Repeat("x", columnLength+1)))),
	})
	return all
}

func TestAcceptanceViolationsShow(t *testing.T) {
	const (
		a  = `"a"`
		a1 = `{"email":"a","last_name":"1"}`
		b1 = `{"email":"b","last_name":"1"}`
	)
	no := func(message, then string) string {
		return `"success":false,"error_message":"` + message + `"}]}` + "\n" + then
	}
	gone := is(a, "")
	// The texts of effectGlances that are long have letters outside ASCII.
	foreign := map[string]string{
		"accent upserted": no(foreignMessage, gone), "accent inserted": no(foreignMessage, gone),
		"accent second": no(foreignMessage, is(a, `{"email":"a","last_name":"x","first_name":"e"}`)), "accent updated": no(foreignMessage, is(a, a1)),
		"long text": no(foreignMessage, gone), "longest text": no(foreignMessage, gone),
	}
	table := []effect{
		{
			id:   "OPS-007",
			sees: map[string]string{"update": no("the record is locked", is(a, a1)), "accent updated": no("the record is locked", is(a, a1))},
			same: []string{"insert", "insert old and new", "update absent", "update three absent", "upsert", "upsert changed", "delete", "delete absent"},
		},
		{
			id: "OPS-007.2",
			sees: map[string]string{
				"insert": no("the record cannot be created", gone), "insert old and new": `"error_message":"the record cannot be created"}]}` + "\n" + is(a, a1) + is(`"b"`, ""),
			},
			same: []string{"update", "update absent", "upsert", "upsert changed", "delete", "restart"},
		},
		{
			id: "OPS-007.3",
			sees: map[string]string{
				"upsert changed": no("duplicate key", is(a, a1)), "upsert two again": no("duplicate key", is(a, a1)+is(`"b"`, b1)),
			},
			same: []string{"insert", "insert old and new", "update", "update absent", "upsert", "delete", "back changed", "a hundred"},
		},
		{
			id: "OPS-007.4",
			sees: map[string]string{
				"upsert": no("no row to change", gone), "back changed": no("no row to change", gone),
			},
			same: []string{"insert", "insert twice", "update absent", "update three absent", "delete absent", "altered schema"},
		},
		{
			id: "OPS-007.5",
			sees: map[string]string{
				"delete": no("deleting is not permitted", is(a, a1)+is(`"b"`, b1)), "delete absent": no("deleting is not permitted", gone),
			},
			same: []string{"insert", "insert old and new", "update", "update absent", "upsert", "upsert changed", "restart"},
		},
		{id: "RES-020", sees: map[string]string{"accent inserted": no(foreignMessage, gone)}},
		{id: "RES-020.2", sees: map[string]string{"accent second": no(foreignMessage, is(a, `{"email":"a","last_name":"x","first_name":"e"}`)+is(`"b"`, ""))}},
		{id: "DAT-014", sees: foreign},
		{id: "DAT-014.2", sees: map[string]string{"null age": no("a value is missing", gone)}},
		{id: "DAT-014.3", sees: map[string]string{
			"negative age": no("a number is out of range", gone), "negative balance": no("a number is out of range", gone),
		}},
		{id: "DAT-014.4", sees: map[string]string{"empty name": no("a text is empty", gone)}},
		{id: "DAT-014.5", sees: map[string]string{
			"256 characters": no("a text is longer than 255 characters", gone),
			"long text":      no("a text is longer than 255 characters", gone), "longest text": no("a text is longer than 255 characters", gone),
		}},
	}
	testEachShown(t, acceptanceViolations(), table)
	testEffects(t, acceptanceGlances(), table)
}
