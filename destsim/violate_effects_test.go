package destsim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// effect says which glances a violation changes, and a part of what they see
// then. same names those that must see no difference; nil is all others.
type effect struct {
	id   string
	sees map[string]string
	same []string
}

func testEffects(t *testing.T, glances map[string]glance, table []effect) {
	t.Helper()
	look := func(t *testing.T, violation, name string) (what string) {
		config := Config{}
		if violation != "" {
			config.Violate = []string{violation}
		}
		synctest.Test(t, func(t *testing.T) { what = glances[name](t, newSim(t, config)) })
		return what + "\n"
	}
	clean := map[string]string{}
	for name := range glances {
		clean[name] = look(t, "", name)
	}
	for _, row := range table {
		t.Run(row.id, func(t *testing.T) {
			require.NotEmpty(t, row.sees)
			for name := range glances {
				got, want := look(t, row.id, name), row.sees[name]
				if want == "" && row.same != nil && !slices.Contains(row.same, name) {
					continue
				}
				if want == "" {
					require.Equal(t, clean[name], got, name)
					continue
				}
				require.Contains(t, got, want, name)
				require.NotContains(t, clean[name], want, name)
			}
		})
	}
}

// testEachShown holds a table and the list of violations together; others names
// those that are shown by a test of their own.
func testEachShown(t *testing.T, all []violation, table []effect, others ...string) {
	t.Helper()
	have, shown := []string{}, others
	for _, v := range all {
		have = append(have, v.ID)
		require.NotEmpty(t, v.Changes)
	}
	for _, row := range table {
		shown = append(shown, row.id)
	}
	require.ElementsMatch(t, have, shown)
}

// person is a contact.
func person(email, name string) string {
	return fmt.Sprintf(`{"email":%q,"last_name":%q}`, email, name)
}

func key(email string) string { return fmt.Sprintf(`{"email":%q}`, email) }

// contact is a batch of contacts.
func contact(operation string, records ...string) step {
	return step{"contact " + operation + " email", records}
}

// effectGlances are what every violation of this area is put to.
func effectGlances() map[string]glance {
	a1, a2, b1 := person("a", "1"), person("a", "2"), person("b", "1")
	three := []string{a1, b1, person("c", "1")}
	order := func(records ...string) step { return step{"order upsert order_id", records} }
	return map[string]glance{
		"insert":              does(`"a"`, contact("insert", a1)),
		"insert twice":        does(`"a"`, contact("insert", a1), contact("insert", a2)),
		"insert old and new":  does(`"a" "b"`, contact("upsert", a1), contact("insert", a2, b1)),
		"insert three again":  does(`"a"`, contact("upsert", three...), contact("insert", three...), contact("insert", three...), contact("insert", three...)),
		"update":              does(`"a"`, contact("upsert", a1), contact("update", a2)),
		"update absent":       does(`"a"`, contact("update", a1)),
		"update three absent": does(`"a"`, contact("update", three...), contact("update", three...), contact("update", three...)),
		"update, later there": does(`"a"`, contact("update", a1), contact("upsert", a2), contact("update", a1)),
		"upsert":              does(`"a"`, contact("upsert", a1)),
		"upsert changed":      does(`"a"`, contact("upsert", a1), contact("upsert", a2)),
		"upsert one again":    does(`"a"`, contact("upsert", a1), contact("upsert", a1)),
		"upsert two again":    does(`"a" "b"`, contact("upsert", a1, b1), contact("upsert", a1, b1)),
		"delete":              does(`"a" "b"`, contact("upsert", a1, b1), contact("delete", key("a"))),
		"delete of a prefix":  does(`"12345678b" "1234"`, contact("upsert", person("12345678a", "x"), person("12345678b", "x"), person("1234", "x")), contact("delete", key("12345678a"))),
		"delete of digits": does("1234567801 2234567801",
			order(`{"order_id":1234567800,"order_number":"N1"}`, `{"order_id":1234567801,"order_number":"N2"}`, `{"order_id":2234567801,"order_number":"N3"}`),
			step{"order delete order_id", []string{`{"order_id":1234567800}`}}),
		"delete absent": does(`"a"`, contact("delete", key("a"))),
		"back changed":  does(`"a"`, contact("upsert", a1), contact("delete", key("a")), contact("upsert", a2)),
		"back the same": does(`"a"`, contact("upsert", a1), contact("delete", key("a")), contact("upsert", a1)),
		"back same, seen": func(t *testing.T, s *Sim) string {
			gone := does(`"a"`, contact("upsert", a1), contact("delete", key("a")))(t, s)
			return gone + "\nthen " + strings.Replace(does(`"a"`, contact("upsert", a1))(t, s), "\n", " ", 1)
		},
		"second identifier": does(`1`, order(`{"order_id":1,"order_number":"N1"}`), order(`{"order_id":1,"status":"x"}`)),
		"other first one":   does(`1 2`, order(`{"order_id":1,"order_number":"N1"}`), order(`{"order_id":2,"order_number":"N1"}`)),
		"two cases":         does(`"Ab" "aB" "ab"`, contact("upsert", person("Ab", "1"), person("aB", "2"))),
		"one case":          does(`"Ab" "ab"`, contact("upsert", person("Ab", "1")), contact("upsert", person("ab", "2"))),
		"other object": func(t *testing.T, s *Sim) string {
			write(t, s, "contact", "insert", a1)
			return stored(t, s, "event", "event_id", `"a"`)
		},
		"delete beside": func(t *testing.T, s *Sim) string {
			write(t, s, "event", "insert", `{"event_id":"beside","name":"n","occurred_at":"2021-03-29T16:32:23Z"}`)
			write(t, s, "contact", "delete", key("beside"))
			return " " + stored(t, s, "event", "event_id", `"beside"`) + "\n"
		},
		"a hundred":      landing(100),
		"forty-nine":     landing(49),
		"eight singles":  singles(8),
		"seven singles":  singles(7),
		"slow singles":   slowSingles,
		"restart":        restarted,
		"long text":      does(`"a"`, contact("upsert", person("a", strings.Repeat("é", 256)))),
		"longest text":   does(`"a"`, contact("upsert", person("a", strings.Repeat("é", 4097)))),
		"new field":      does(`"a"`, step{"event upsert event_id", []string{`{"event_id":"a","zz":"1"}`}}),
		"altered schema": altered,
		"fields created": fieldsCreated,
		"empty before":   does(`"a"`, step{"order upsert order_number", nil}, contact("upsert", a1), contact("upsert", a2)),
	}
}

// landing sends n records at once and tells which of some are there, at once
// and later.
func landing(n int) glance {
	return func(t *testing.T, s *Sim) string {
		acknowledged := strings.Count(strings.Join(write(t, s, "contact", "upsert", contacts(0, n)...), " "), "ok")
		there := func() (list []int) {
			for i := range n {
				if stored(t, s, "contact", "email", fmt.Sprintf(`"n%d"`, i)) == "" {
					list = append(list, i)
				}
			}
			return list[:min(len(list), 3)]
		}
		now := there()
		time.Sleep(time.Second)
		return fmt.Sprint(acknowledged, " acknowledged, lost at once ", now, ", later ", there())
	}
}

// singles sends batches of one record at one moment; each is updated at once.
func singles(n int) glance {
	return func(t *testing.T, s *Sim) string {
		var words []string
		for _, record := range contacts(0, n) {
			write(t, s, "contact", "upsert", record)
		}
		for _, record := range contacts(0, n) {
			words = append(words, write(t, s, "contact", "update", record)...)
		}
		return strings.Join(slices.Compact(words), " ")
	}
}

func slowSingles(t *testing.T, s *Sim) string {
	var words []string
	for _, record := range contacts(0, 10) {
		words = append(words, write(t, s, "contact", "upsert", record)...)
		words = append(words, write(t, s, "contact", "update", record)...)
		time.Sleep(60 * time.Millisecond)
	}
	return strings.Join(slices.Compact(words), " ")
}

// restarted tells what a restart leaves.
func restarted(t *testing.T, s *Sim) string {
	write(t, s, "contact", "upsert", person("a", "1"))
	require.NoError(t, s.Restart())
	return asks("supported_operations", about("contact"), about("contact"))(t, s) + " holds " + stored(t, s, "contact", "email", `"a"`)
}

// altered counts the fields before and after one is added.
func altered(t *testing.T, s *Sim) string {
	fields := func() int { return strings.Count(asks("list_fields", about("contact"))(t, s), "field_api_name") }
	before := fields()
	_, err := s.hookAlter(hookRequest{Object: "contact"})
	require.NoError(t, err)
	after := fields()
	time.Sleep(2 * time.Minute)
	return fmt.Sprint(before, " ", after, " ", fields())
}

// fieldsCreated reports whether a field that a batch creates is listed.
func fieldsCreated(t *testing.T, s *Sim) string {
	before := asks("list_fields", about("event"))(t, s)
	write(t, s, "event", "upsert", `{"event_id":"a","zz":"1"}`)
	return before + asks("list_fields", about("event"))(t, s)
}
