package store

import (
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// pageRows is how many rows a page has of a list that is read whole.
const pageRows = 100

// Every reads all pages of a list, oldest first.
func Every[T any](read func(Page) ([]T, int64, error)) ([]T, error) {
	var all []T
	for number := int64(1); ; number++ {
		rows, total, err := read(Page{Number: number, PerPage: pageRows, Ascending: true})
		if err != nil {
			return nil, err
		}
		if all = append(all, rows...); len(rows) == 0 || int64(len(all)) >= total {
			return all, nil
		}
	}
}

// EveryOf reads all pages of a list below something with an id.
func EveryOf[T any](list func(int64, Page) ([]T, int64, error), id int64) ([]T, error) {
	return Every(func(p Page) ([]T, int64, error) { return list(id, p) })
}

// Everything names what exists in all organizations.
type Everything struct {
	Destinations, Sources []Typed
	Syncs                 []int64
}

// Typed is a thing with its type.
type Typed struct {
	ID   int64
	Type string
}

// Everything reads nothing but ids and types: thousands in milliseconds.
func (tx *Tx) Everything() (all Everything, err error) {
	typed := func(query string) (list []Typed, err error) {
		err = tx.query(query, func(c sqlite.Row) error {
			id, _ := c.Number(0)
			list = append(list, Typed{id, c.Text(1)})
			return nil
		})
		return list, err
	}
	if all.Destinations, err = typed("SELECT id, type FROM destinations ORDER BY id"); err != nil {
		return all, fmt.Errorf("list destinations: %w", err)
	}
	if all.Sources, err = typed("SELECT id, type FROM sources ORDER BY id"); err != nil {
		return all, fmt.Errorf("list sources: %w", err)
	}
	err = tx.query("SELECT id FROM syncs ORDER BY id", func(c sqlite.Row) error {
		id, _ := c.Number(0)
		all.Syncs = append(all.Syncs, id)
		return nil
	})
	if err != nil {
		return all, fmt.Errorf("list syncs: %w", err)
	}
	return all, nil
}
