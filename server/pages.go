package server

import "github.com/destkit/destkit/server/store"

// pageOf answers one page of rows as show writes them (spec 2.1). read runs in
// one consistent view, so that the rows and their total belong together.
func pageOf[Row, Shown any](c *call, read func(*store.Tx, store.Page) ([]Row, int64, error), show func(Row) Shown) (*reply, error) {
	page := c.page()
	shown := []Shown{} // never nil: an empty list is [] on the wire
	var total int64
	err := c.view(func(tx *store.Tx) error {
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
	return c.list(page, total, shown)
}
