package restload

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen/internal/wire"
)

// TestServiceWalks: problems that only the whole list shows.
func TestServiceWalks(t *testing.T) {
	page := func(total, next int64, ids ...int64) *ListPage {
		p := &ListPage{total: total, Next: next}
		for _, id := range ids {
			p.Items = append(p.Items, Item{ID: id})
		}
		return p
	}
	for name, c := range map[string]struct {
		pages []*ListPage
		kind  string
	}{
		"whole":                 {[]*ListPage{page(4, 2, 1, 2), page(4, 0, 3, 4)}, ""},
		"one was created":       {[]*ListPage{page(3, 2, 1, 2), page(4, 0, 3, 4)}, ""},
		"one was deleted":       {[]*ListPage{page(5, 2, 1, 2), page(4, 0, 4)}, ""},
		"on two pages":          {[]*ListPage{page(4, 2, 1, 2), page(4, 0, 2, 3)}, wire.KindItemRepeated},
		"total grew for itself": {[]*ListPage{page(4, 2, 1, 2), page(9, 0, 3, 4)}, wire.KindItemMissing},
	} {
		w := walk{seen: map[int64]bool{}}
		var err error
		for _, p := range c.pages {
			if err == nil {
				err = w.add(p)
			}
		}
		if c.kind == "" {
			require.NoError(t, err, name)
			continue
		}
		var f *wire.Failure
		require.ErrorAs(t, err, &f, name)
		require.Equal(t, c.kind, f.Kind, name)
	}
}
