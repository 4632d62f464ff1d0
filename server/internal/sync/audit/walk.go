package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// subject is one identifier with all that is known of it.
type subject struct {
	key     []byte
	row     *row // nil: the source does not have it
	history history
	stored  *Stored // nil: the destination does not have it
}

// pageBytes bounds what subjects of one look-up hold.
const pageBytes = 8 << 20

// streams are the four that are merged, each in the order of the identifiers.
type streams struct {
	rows   *rows
	events *events
	state  *states
	listed *listed

	row    *row
	stored *Stored
}

// walk goes through all identifiers that anybody knows, page by page.
func (a *audit) walk(ctx context.Context) error {
	if err := a.readMark(); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	s, err := a.open(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer s.Close()
	var page []*subject
	size := 0
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		one, err := s.next(a)
		if err != nil {
			return err
		}
		if one != nil {
			page = append(page, one)
			size += one.size()
		}
		if len(page) > 0 && (one == nil || len(page) == LookupSize || size > pageBytes) {
			if err := a.settle(ctx, page); err != nil {
				return err
			}
			page, size = page[:0], 0
		}
		if one == nil {
			return nil
		}
	}
}

// open begins to read. The result holds the open streams also with an error.
func (a *audit) open(ctx context.Context) (s *streams, err error) {
	s = &streams{}
	// The state before the logs, the logs before the destination: a run that
	// works meanwhile adds to data that is read later, and never takes away.
	if s.state, err = a.openStates(); err != nil {
		return s, err
	}
	if s.events, err = a.openEvents(ctx); err != nil {
		return s, err
	}
	if s.rows, err = a.openRows(ctx); err != nil {
		return s, err
	}
	if s.listed, err = a.list(ctx); err != nil {
		return s, &ReadError{"destination", err}
	}
	if s.row, err = s.rows.next(); err != nil {
		return s, err
	}
	s.stored, err = s.listed.next()
	return s, err
}

// next gathers all that is known of the least identifier; nil at the end.
func (s *streams) next(a *audit) (*subject, error) {
	var key []byte
	least := func(k []byte) {
		if k != nil && (key == nil || bytes.Compare(k, key) < 0) {
			key = k
		}
	}
	if s.row != nil {
		least(s.row.key)
	}
	least(s.state.key())
	if s.stored != nil {
		least(s.stored.Identifier)
	}
	if !s.events.end {
		least(s.events.key)
	}
	if key == nil {
		return nil, nil
	}
	one := &subject{key: bytes.Clone(key)}
	return one, s.gather(a, one)
}

// gather advances each stream that is at the identifier.
func (s *streams) gather(a *audit, one *subject) (err error) {
	if s.row != nil && bytes.Equal(s.row.key, one.key) {
		one.row = s.row
		if s.row, err = s.rows.next(); err != nil {
			return err
		}
	}
	known := false
	if bytes.Equal(s.state.key(), one.key) {
		if one.history.state, err = s.state.take(); err != nil {
			return err
		}
		known = true
	}
	if !s.events.end && bytes.Equal(s.events.key, one.key) {
		known = true
		if err := s.events.read(a, one.key, &one.history); err != nil {
			return err
		}
	}
	if known {
		a.report.Checked.Ledger++
	}
	if s.stored != nil && bytes.Equal(s.stored.Identifier, one.key) {
		one.stored = s.stored
		if s.stored, err = s.listed.next(); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the disk.
func (s *streams) Close() error {
	var errs []error
	if s.state != nil {
		errs = append(errs, s.state.Close())
	}
	if s.events != nil {
		errs = append(errs, s.events.Close())
	}
	if s.rows != nil {
		errs = append(errs, s.rows.Close())
	}
	if s.listed != nil {
		errs = append(errs, s.listed.Close())
	}
	return errors.Join(errs...)
}

func (one *subject) size() int {
	n := len(one.key)
	if one.row != nil {
		n += len(one.row.record)
	}
	for _, payload := range one.history.payloads {
		n += len(payload)
	}
	for _, payload := range one.history.refused {
		n += len(payload)
	}
	return n
}

// settle looks up the stored records, and judges.
func (a *audit) settle(ctx context.Context, page []*subject) error {
	if a.job.Destination.Lookup != nil {
		identifiers := make([][]byte, len(page))
		byKey := make(map[string]*subject, len(page))
		for i, one := range page {
			identifiers[i], byKey[string(one.key)] = one.key, one
		}
		found, err := a.job.Destination.Lookup(ctx, identifiers)
		if err != nil {
			return err
		}
		for i := range found {
			if one := byKey[string(found[i].Identifier)]; one != nil {
				one.stored = &found[i]
			}
		}
	}
	for _, one := range page {
		if r := one.row; r != nil && (r.copies > 1 || r.invalid != "") {
			a.invalids += r.copies
		}
		if one.stored != nil {
			a.report.Checked.Destination += one.stored.Count
		}
		a.judge(one)
	}
	return nil
}
