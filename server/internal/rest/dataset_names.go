package rest

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/destkit/destkit/server/internal/store"
)

// SlugOf makes the permanent part of a resource identifier from a name: letters and
// digits of any script in lower case, everything else a "_".
func SlugOf(name string) string {
	var slug strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			gap = slug.Len() > 0
			continue
		}
		if gap {
			slug.WriteByte('_')
			gap = false
		}
		slug.WriteRune(r)
	}
	if slug.Len() == 0 {
		return "dataset"
	}
	return slug.String()
}

// nameIsFree refuses a name that another dataset of the workspace has. The
// dataset behind a model has the model's name, which may be used again.
func nameIsFree(tx *store.Tx, d *store.Dataset) error {
	all, _, err := store.Datasets.List(tx, d.WorkspaceID, store.Page{})
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.Name != d.Name || other.ID == d.ID {
			continue
		}
		// Only now, since few names are equal and this is a query of its own.
		_, err := tx.ModelOfDataset(other.ID)
		if errors.Is(err, store.ErrNotFound) {
			return &store.DuplicateError{Kind: "dataset", Field: "name", Value: d.Name}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// freeSlug numbers slugs of names that differ in nothing that a slug shows.
func freeSlug(tx *store.Tx, d *store.Dataset) (string, error) {
	all, _, err := store.Datasets.List(tx, d.WorkspaceID, store.Page{})
	if err != nil {
		return "", err
	}
	// Slugs stay when names change, so they are compared and not computed.
	taken := map[string]bool{}
	for _, other := range all {
		taken[other.Slug] = true
	}
	slug := SlugOf(d.Name)
	for i := 2; taken[slug]; i++ {
		slug = fmt.Sprintf("%s_%d", SlugOf(d.Name), i)
	}
	return slug, nil
}
