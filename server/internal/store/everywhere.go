package store

import "errors"

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

// Everywhere looks for a row in every organization, where its id alone is known; the
// error is ErrNotFound when none has it.
func Everywhere[T any](tx *Tx, find func(organizationID int64) (T, error)) (found T, err error) {
	organizations, err := Every(tx.Organizations)
	if err != nil {
		return found, err
	}
	for _, o := range organizations {
		if found, err = find(o.ID); !errors.Is(err, ErrNotFound) {
			return found, err
		}
	}
	return found, ErrNotFound
}
