package destsim

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// TestSemanticsAgainstModel plays random batches against a map.
func TestSemanticsAgainstModel(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		rapid.Check(t, func(rt *rapid.T) {
			require.NoError(t, s.Reset())
			model := map[string]map[string]string{} // email: field: raw value
			for range rapid.IntRange(1, 12).Draw(rt, "batches") {
				operation := rapid.SampledFrom([]string{"insert", "update", "upsert", "delete"}).Draw(rt, "operation")
				var records, want []string
				for range rapid.IntRange(0, 4).Draw(rt, "records") {
					email := rapid.SampledFrom([]string{`"a"`, `"A"`, `"\u0000"`, `"é"`, `""`}).Draw(rt, "email")
					fields := map[string]string{"email": email}
					record := `{"email":` + email
					for _, choice := range [][]string{{"last_name", `"x"`, `"y"`}, {"age", "1", "-9007199254740993", "null"}, {"tags", `[]`, `["b","a"]`}} {
						name, values := choice[0], choice[1:]
						if rapid.Bool().Draw(rt, "has "+name) {
							fields[name] = rapid.SampledFrom(values).Draw(rt, name)
							record += `,"` + name + `":` + fields[name]
						}
					}
					records = append(records, record+"}")
					want = append(want, modelApply(model, operation, fields))
				}
				if got := write(t, s, "contact", operation, records...); len(want) > 0 {
					require.Equal(rt, want, got)
				}
			}
			for _, email := range []string{`"a"`, `"A"`, `"\u0000"`, `"é"`, `""`} {
				got := map[string]string{}
				if data := stored(t, s, "contact", "email", email); data != "" {
					store.EachMember([]byte(data), func(name, value []byte) bool {
						got[string(name[1:len(name)-1])] = string(value)
						return true
					})
				}
				want := model[email]
				if want == nil {
					want = map[string]string{}
				}
				require.Equal(rt, want, got)
			}
			rows, total, err := s.store.Scan("contact", 0, 100)
			require.NoError(rt, err)
			require.Len(rt, rows, len(model))
			require.Equal(rt, len(model), total)
		})
	})
}

// modelApply is the meaning of one record in a few lines.
func modelApply(model map[string]map[string]string, operation string, fields map[string]string) string {
	row, exists := model[fields["email"]]
	switch {
	case operation == "delete":
		delete(model, fields["email"])
		return "ok"
	case operation == "insert" && exists:
		return alreadyPresent
	case operation == "update" && !exists:
		return notPresent
	case !exists:
		if fields["last_name"] == "" {
			return `required field "last_name" is missing`
		}
		row = map[string]string{}
		model[fields["email"]] = row
	}
	for name, value := range fields {
		row[name] = value
	}
	return "ok"
}

// TestParallelWideWrites: two unique fields stay unique under parallel calls,
// also while the schema changes the index.
func TestParallelWideWrites(t *testing.T) {
	s := newSim(t, Config{})
	var wg sync.WaitGroup
	for b := range 8 {
		params := planOf(s, "order", "upsert", "order_number", fmt.Sprintf(`{"order_number":"N%d","order_id":1}`, b))
		contact := planOf(s, "contact", "upsert", "email", fmt.Sprintf(`{"email":"%d","last_name":"x"}`, b))
		wg.Go(func() {
			words(t, invoke(s, rpc.MethodSyncBatch, params))
			words(t, invoke(s, rpc.MethodSyncBatch, contact))
		})
		wg.Go(func() {
			unique := b%2 == 0
			_, err := s.changeSchema(schemaChange{Action: "change_field", Object: "contact", Field: "first_name", Definition: &FieldConfig{Type: "string", Unique: unique}})
			require.NoError(t, err)
		})
	}
	wg.Wait()
	_, orders, err := s.store.Scan("order", 0, 0)
	require.NoError(t, err)
	require.Equal(t, 1, orders)
	_, contacts, err := s.store.Scan("contact", 0, 0)
	require.NoError(t, err)
	require.Equal(t, 8, contacts)
}

func TestSQLiteSurvivesRestart(t *testing.T) {
	config := Config{Store: "sqlite:" + t.TempDir() + "/records.db"}
	s := newSim(t, config)
	require.Equal(t, []string{"ok", "ok"}, write(t, s, "contact", "insert", `{"email":"a","last_name":"x"}`, `{"email":"b","last_name":"y"}`))
	require.NoError(t, s.Restart())
	require.Equal(t, `{"email":"a","last_name":"x"}`, stored(t, s, "contact", "email", `"a"`))
	require.NoError(t, s.Close())
	require.Contains(t, write(t, s, "contact", "upsert", `{"email":"c","last_name":"x"}`)[0], "the store is closed")

	// The second process has another identifier: the index is rebuilt.
	config.Objects = []ObjectConfig{entity("contact", []string{"update"}, "last_name! string", "email string")}
	again := newSim(t, config)
	require.Equal(t, []string{"ok"}, write(t, again, "contact", "update", `{"last_name":"y","email":"z"}`))
	require.Equal(t, `{"last_name":"y","email":"z"}`, stored(t, again, "contact", "last_name", `"y"`))
	_, err := New(Config{Store: "sqlite:/nowhere/at/all.db"})
	require.ErrorContains(t, err, "open store /nowhere/at/all.db")
}

// TestCopies: a store can hold several rows of one key, and both stores treat
// them alike.
func TestCopies(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		table := s.catalogue.Load().byName["contact"].table
		put := func(data string) {
			u, err := s.store.Begin()
			require.NoError(t, err)
			defer u.Rollback()
			require.NoError(t, u.With(table, store.Quote("email"), store.Quote("a"), func(r store.Rows) error { return r.Put(nil, []byte(data)) }))
			require.NoError(t, u.Commit())
		}
		put(`{"email":"a","last_name":"1"}`)
		put(`{"email":"a","last_name":"2"}`)
		put(`{"email":"a","last_name":"3"}`)
		require.Equal(t, `3×{"email":"a","last_name":"1"}`, stored(t, s, "contact", "email", `"a"`))
		require.Equal(t, []string{"ok"}, write(t, s, "contact", "update", `{"email":"a","last_name":"4"}`))
		require.Equal(t, `3×{"email":"a","last_name":"4"}`, stored(t, s, "contact", "email", `"a"`))
		require.Equal(t, []string{"ok"}, write(t, s, "contact", "delete", `{"email":"a"}`))
		require.Empty(t, stored(t, s, "contact", "email", `"a"`))
		_, total, err := s.store.Scan("contact", 0, 0)
		require.NoError(t, err)
		require.Zero(t, total)
	})
}

// TestMemoryInParallel: batches over the same keys at once, with readers among
// them that must never see half a record.
func TestMemoryInParallel(t *testing.T) {
	s := newSim(t, Config{})
	record := func(writer, key int) string {
		return fmt.Sprintf(`{"email":"k%d","last_name":"%s","first_name":"%s"}`, key, strings.Repeat(string(rune('a'+writer)), 1+writer*17), strings.Repeat(string(rune('a'+writer)), 40))
	}
	var group sync.WaitGroup
	for writer := range 4 {
		group.Go(func() {
			for n := range 30 {
				var records []string
				for key := range 100 {
					records = append(records, record(writer, (key*7+n)%150))
				}
				invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", records...))
			}
		})
	}
	whole := func(data []byte) {
		last, _ := store.Member(data, store.Quote("last_name"))
		first, _ := store.Member(data, store.Quote("first_name"))
		if len(last) > 2 && len(first) > 2 && (last[1] != first[1] || last[len(last)-2] != last[1] || first[len(first)-2] != first[1]) {
			t.Errorf("half a record: %s", data)
		}
	}
	group.Go(func() {
		for range 30 {
			page, _, err := s.Records("contact", 0, 1000)
			if err != nil {
				t.Error(err)
			}
			for _, r := range page {
				whole(r.Fields)
			}
		}
	})
	group.Go(func() {
		for range 10 {
			_ = s.store.Dump(func(int64) {}, func(_ string, r store.Row) error {
				whole(r.Data)
				return nil
			})
		}
	})
	group.Wait()
	_, total, err := s.Records("contact", 0, 0)
	require.NoError(t, err)
	require.Equal(t, 150, total)
}
