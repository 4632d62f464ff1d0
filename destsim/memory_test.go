package destsim

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

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
