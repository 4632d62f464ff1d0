package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMemoryChurn lets rows come, grow, shrink and go by both ways into the
// store, until it has packed itself many times, and compares it with a map.
func TestMemoryChurn(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: the race detector has nothing to see")
	}
	m, r := newMemoryStore(), rand.New(rand.NewPCG(3, 4))
	contact := &Table{Name: "contact", Uniques: [][]byte{Quote("email")}}
	type kept struct {
		id   int64
		data string
	}
	want, last := map[string]kept{}, int64(0)
	packed := 0
	for round := 0; round < 150 || packed < 3; round++ {
		require.Less(t, round, 5000, "the store is never packed")
		way := []string{"upsert", "upsert", "put", "delete"}[r.IntN(4)]
		u, err := m.Begin()
		require.NoError(t, err)
		var list []Upsert
		for range 1 + r.IntN(200) {
			key := fmt.Sprintf("k%d", r.IntN(2000))
			data := fmt.Appendf(nil, `{"email":%q,"last_name":%q,"age":%d}`, key, strings.Repeat("x", r.IntN(900)), r.IntN(100))
			quoted := Quote(key)
			if way == "delete" {
				delete(want, key)
				require.NoError(t, u.With(contact, Quote("email"), quoted, func(rows Rows) error { return removeRows(rows, quoted) }))
				continue
			}
			before, is := want[key]
			if !is {
				last++
				before.id = last
			}
			want[key] = kept{before.id, string(data)}
			if way == "put" {
				require.NoError(t, u.With(contact, Quote("email"), quoted, func(rows Rows) error { return putOne(rows, quoted, data) }))
				continue
			}
			list = append(list, Upsert{
				Shape: u.(Upserter).Shape([][]byte{Quote("email"), Quote("last_name"), Quote("age")}),
				Data:  data, Key: quoted, KeyAt: len(`{"email":`), Create: true, Change: true,
			})
		}
		u.(Upserter).Upsert(contact, list)
		for i := range list {
			require.Equal(t, Stored, list[i].Verdict)
		}
		require.NoError(t, u.Commit())
		if t := m.tables["contact"]; t != nil && t.wasteful.Load() {
			packed++
		}
	}
	seen, before := 0, int64(0)
	for {
		page, total, err := m.Scan("contact", before, 100)
		require.NoError(t, err)
		require.Equal(t, len(want), total)
		for _, r := range page {
			require.Greater(t, r.ID, before)
			before = r.ID
			key, _ := Member(r.Data, Quote("email"))
			require.Equal(t, want[strings.Trim(string(key), `"`)], kept{r.ID, string(r.Data)})
			seen++
		}
		if len(page) < 100 {
			break
		}
	}
	require.Equal(t, len(want), seen)
	u, err := m.Begin()
	require.NoError(t, err)
	defer u.Rollback()
	for key, have := range want {
		require.NoError(t, u.With(contact, Quote("email"), Quote(key), func(rows Rows) error {
			found, err := rows.Find(Quote("email"), Quote(key))
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, have.data, string(found[0].Data))
			return nil
		}))
	}
}

// removeRows removes the rows of a key.
func removeRows(rows Rows, key []byte) error {
	found, err := rows.Find(Quote("email"), key)
	for _, r := range found {
		err = errors.Join(err, rows.Remove(r))
	}
	return err
}

// putOne puts data into the place of the row of a key, or into a new row.
func putOne(rows Rows, key, data []byte) error {
	found, err := rows.Find(Quote("email"), key)
	if err != nil || len(found) == 0 {
		return errors.Join(err, rows.Put(nil, data))
	}
	return rows.Put(found[0], data)
}

// TestRowsOutsideTheLock: a caller that needs more than one key must lock the
// whole table, and gets an error otherwise.
func TestRowsOutsideTheLock(t *testing.T) {
	contact := &Table{Name: "contact", Uniques: [][]byte{Quote("email")}}
	u, err := newMemoryStore().Begin()
	require.NoError(t, err)
	defer u.Rollback()
	err = u.With(contact, Quote("email"), Quote("a"), func(r Rows) error {
		_, err := r.Find(Quote("email"), nil)
		return err
	})
	require.ErrorIs(t, err, errOutsideLock)
	err = u.With(contact, Quote("email"), Quote("a"), func(r Rows) error { return r.Put(nil, []byte(`{"last_name":"x"}`)) })
	require.ErrorIs(t, err, errOutsideLock)
}
