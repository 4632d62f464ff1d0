package call

import "github.com/destkit/destkit/server/internal/store"

// PageOf answers one page of rows as show writes them (spec 2.1). read runs in
// one consistent view, so that the rows and their total belong together.
func PageOf[Row, Shown any](c *Call, read func(*store.Tx, store.Page) ([]Row, int64, error), show func(Row) Shown) (*Reply, error) {
	page := c.Page()
	shown := []Shown{} // never nil: an empty list is [] on the wire
	var total int64
	err := c.View(func(tx *store.Tx) error {
		rows, n, err := read(tx, page)
		for _, row := range rows {
			shown = append(shown, show(row))
		}
		total = n
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.List(page, total, shown)
}

// SlicePage is one page of a list that is not in the store. Its order is that
// of creation, so newest first is the end first (spec 8).
func SlicePage[T any](all []T, page store.Page) []T {
	ordered := make([]T, len(all))
	for i, v := range all {
		at := i
		if !page.Ascending {
			at = len(all) - 1 - i
		}
		ordered[at] = v
	}
	from := min((page.Number-1)*page.PerPage, int64(len(ordered)))
	if page.Number > int64(len(ordered))+1 { // the product may have overflowed
		from = int64(len(ordered))
	}
	return ordered[from:min(from+page.PerPage, int64(len(ordered)))]
}
