package destsim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestMemoryChurn lets records come, grow, shrink and go by both ways into the
// store, until it has packed itself many times, and compares it with a map.
func TestMemoryChurn(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: the race detector has nothing to see")
	}
	s := newSim(t, Config{})
	r := rand.New(rand.NewPCG(3, 4))
	type kept struct {
		id   int64
		data string
	}
	want, last := map[string]kept{}, int64(0)
	packed := 0
	for round := 0; round < 150 || packed < 3; round++ {
		require.Less(t, round, 5000, "the store is never packed")
		operation := []string{"upsert", "upsert", "upsert", "delete", "event"}[r.IntN(5)]
		var records []string
		for range 1 + r.IntN(200) {
			key := fmt.Sprintf("k%d", r.IntN(2000))
			record := fmt.Sprintf(`{"email":%q,"last_name":%q,"age":%d}`, key, strings.Repeat("x", r.IntN(900)), r.IntN(100))
			switch operation {
			case "delete":
				delete(want, key)
				record = fmt.Sprintf(`{"email":%q}`, key)
			case "event": // white space: the long way
				record = strings.ReplaceAll(record, ":", ": ")
				fallthrough
			default:
				before, is := want[key]
				if !is {
					last++
					before.id = last
				}
				want[key] = kept{before.id, strings.ReplaceAll(record, ": ", ":")}
			}
			records = append(records, record)
		}
		for _, word := range write(t, s, "contact", strings.Replace(operation, "event", "upsert", 1), records...) {
			require.Equal(t, "ok", word)
		}
		if s.store.(*memoryStore).tables["contact"].wasteful.Load() {
			packed++
		}
	}
	seen, before := 0, int64(0)
	for {
		page, total, err := s.Records("contact", before, 100)
		require.NoError(t, err)
		require.Equal(t, len(want), total)
		for _, record := range page {
			require.Greater(t, record.ID, before)
			before = record.ID
			key, _ := member(record.Fields, quote("email"))
			have := want[strings.Trim(string(key), `"`)]
			require.Equal(t, have, kept{record.ID, string(record.Fields)})
			seen++
		}
		if len(page) < 100 {
			break
		}
	}
	require.Equal(t, len(want), seen)
	for key, have := range want {
		require.Equal(t, have.data, stored(t, s, "contact", "email", fmt.Sprintf("%q", key)))
	}
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
		last, _ := member(data, quote("last_name"))
		first, _ := member(data, quote("first_name"))
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
			_ = s.store.(*memoryStore).Dump(func(int64) {}, func(_ string, r row) error {
				whole(r.data)
				return nil
			})
		}
	})
	group.Wait()
	_, total, err := s.Records("contact", 0, 0)
	require.NoError(t, err)
	require.Equal(t, 150, total)
}

// TestManyPagesAreCheap: a page at the end of a large table reads no more rows
// than one at its beginning.
func TestManyPagesAreCheap(t *testing.T) {
	m := newMemoryStore()
	u, err := m.Begin()
	require.NoError(t, err)
	table := &table{name: "t", uniques: [][]byte{quote("k")}}
	list := make([]upsert, 50000)
	for i := range list {
		data := fmt.Appendf(nil, `{"k":%d}`, i)
		list[i] = upsert{shape: u.(upserter).Shape(nil), data: data, key: data[5 : len(data)-1], keyAt: 5, create: true}
	}
	u.(upserter).Upsert(table, list)
	require.NoError(t, u.Commit())
	after, n := int64(0), 0
	for { // 5,000 pages
		page, total, err := m.Scan("t", after, 10)
		require.NoError(t, err)
		require.Equal(t, len(list), total)
		for _, r := range page {
			require.Equal(t, string(list[n].data), string(r.data))
			n++
		}
		if len(page) < 10 {
			break
		}
		after = page[9].id
	}
	require.Equal(t, len(list), n)
}

// BenchmarkScan reads pages of 1,000 out of ever larger tables.
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{10000, 100000, 1000000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m := newMemoryStore()
			u, err := m.Begin()
			require.NoError(b, err)
			table := &table{name: "t", uniques: [][]byte{quote("k")}}
			list := make([]upsert, size)
			for i := range list {
				data := fmt.Appendf(nil, `{"k":%d}`, i)
				list[i] = upsert{shape: &shape{}, data: data, key: data[5 : len(data)-1], keyAt: 5, create: true}
			}
			u.(upserter).Upsert(table, list)
			require.NoError(b, u.Commit())
			i := 0
			for b.Loop() {
				page, _, err := m.Scan("t", int64(i*1000%size), 1000)
				require.NoError(b, err)
				require.Len(b, page, 1000)
				i++
			}
		})
	}
}
