package chronicle

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Entry is one entry of a journal; Key is what Find looks for.
type Entry struct {
	Key  string
	Text []byte
}

// Bounds are how many entries of a kind are kept, and how many bytes; for a while it
// may be a tenth more.
type Bounds struct{ Entries, Bytes int64 }

// Batch is what one process has to add to a journal.
type Batch struct {
	Entries []Entry // oldest first
	Lost    int64   // older ones that are counted and not kept
	// Again says that this is another attempt: the answer to the one before was
	// lost, and it may have been done.
	Again bool
}

// errWritten ends an attempt that was not needed.
var errWritten = errors.New("the batch is written already")

// Add writes the entries of one kind, all or none, and forgets the oldest beyond
// the bounds.
func (c *Chronicle) Add(ctx context.Context, kind string, bounds Bounds, batch Batch) error {
	keys, texts, size := make([]string, len(batch.Entries)), make([][]byte, len(batch.Entries)), int64(0)
	for i, e := range batch.Entries {
		keys[i], texts[i] = e.Key, e.Text
		size += int64(len(e.Text))
	}
	err := c.loosely(ctx, func(tx pgx.Tx) error {
		// The row is locked from here to the commit: also against the attempt
		// before, where that is still on its way.
		var last, kept, bytes int64
		err := tx.QueryRow(ctx, `INSERT INTO journals (kind, last, base, entries, bytes) VALUES ($1, $2, 0, $3, $4)
			ON CONFLICT (kind) DO UPDATE SET last = journals.last + excluded.last, entries = journals.entries + excluded.entries, bytes = journals.bytes + excluded.bytes
			RETURNING last, entries, bytes`, kind, batch.Lost+int64(len(keys)), len(keys), size).Scan(&last, &kept, &bytes)
		if err != nil {
			return err
		}
		if batch.Again {
			var written bool
			err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM journal WHERE kind = $1 AND key <> '' AND key = ANY ($2))", kind, keys).Scan(&written)
			if err != nil {
				return err
			}
			if written {
				return errWritten // and the counts as they were
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO journal (kind, number, key, entry)
			SELECT $1, $2 + e.at, e.key, e.entry FROM unnest($3::text[], $4::bytea[]) WITH ORDINALITY AS e (key, entry, at)`,
			kind, last-int64(len(keys)), keys, texts)
		if err != nil {
			return err
		}
		return prune(ctx, tx, kind, kept, bytes, bounds)
	})
	if err != nil && !errors.Is(err, errWritten) {
		return fmt.Errorf("write journal of %s: %w", kind, err)
	}
	return nil
}

// prune forgets what is beyond the bounds, once a tenth has come together: to find
// out which entries have to go means to look at all.
func prune(ctx context.Context, tx pgx.Tx, kind string, entries, bytes int64, bounds Bounds) error {
	if entries <= bounds.Entries+bounds.Entries/10 && bytes <= bounds.Bytes+bounds.Bytes/10 {
		return nil
	}
	_, err := tx.Exec(ctx, `DELETE FROM journal WHERE kind = $1 AND number IN (SELECT number FROM (
		SELECT number, row_number() OVER newest AS place, sum(octet_length(entry)) OVER newest AS upto
		FROM journal WHERE kind = $1 WINDOW newest AS (ORDER BY number DESC)) kept WHERE place > $2 OR upto > $3)`,
		kind, bounds.Entries, bounds.Bytes)
	if err != nil {
		return err
	}
	// Anew, and not by what was deleted: the entries do not outlive a fall of the
	// server, and this row does.
	_, err = tx.Exec(ctx, `UPDATE journals SET (entries, bytes) = (SELECT count(*), coalesce(sum(octet_length(entry)), 0)
		FROM journal WHERE kind = $1) WHERE kind = $1`, kind)
	return err
}

// Totals say where a journal stands: how many entries there were since it was
// emptied, and how many of them are not kept any more.
type Totals struct{ All, Dropped int64 }

// Each reads the entries behind a number, oldest first, until each wants no more.
// Numbers go up by one; one that is missing was lost.
func (c *Chronicle) Each(ctx context.Context, kind string, after int64, each func(number int64, text []byte) (more bool, err error)) (totals Totals, err error) {
	same := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, c.pool, same, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT last - base, last - base - (SELECT count(*) FROM journal WHERE kind = $1)
			FROM journals WHERE kind = $1`, kind).Scan(&totals.All, &totals.Dropped)
		if none(err) {
			return nil
		} else if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "SELECT number, entry FROM journal WHERE kind = $1 AND number > $2 ORDER BY number", kind, after)
		if err != nil {
			return err
		}
		defer rows.Close()
		for more := true; more && rows.Next(); {
			var number int64
			var text []byte
			if err := rows.Scan(&number, &text); err != nil {
				return err
			}
			if more, err = each(number, text); err != nil {
				return err
			}
		}
		rows.Close()
		return rows.Err()
	})
	if err != nil {
		return Totals{}, fmt.Errorf("read journal of %s: %w", kind, err)
	}
	return totals, nil
}

// Find is the newest entry with a key; number 0 when none is kept.
func (c *Chronicle) Find(ctx context.Context, kind, key string) (number int64, text []byte, err error) {
	err = c.pool.QueryRow(ctx, "SELECT number, entry FROM journal WHERE kind = $1 AND key = $2 ORDER BY number DESC LIMIT 1", kind, key).Scan(&number, &text)
	if err != nil && !none(err) {
		return 0, nil, fmt.Errorf("look into journal of %s: %w", kind, err)
	}
	return number, text, nil
}

// Clear forgets all entries of a kind. Numbers go on, by which readers go on.
func (c *Chronicle) Clear(ctx context.Context, kind string) error {
	err := c.loosely(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE journals SET base = last, entries = 0, bytes = 0 WHERE kind = $1", kind); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DELETE FROM journal WHERE kind = $1", kind)
		return err
	})
	if err != nil {
		return fmt.Errorf("empty journal of %s: %w", kind, err)
	}
	return nil
}

// Numbers takes the next n numbers of a sequence for this process alone, and gives
// the first. The first of all is 1.
func (c *Chronicle) Numbers(ctx context.Context, sequence string, n int64) (first int64, err error) {
	err = c.pool.QueryRow(ctx, `INSERT INTO journals (kind, last, base, entries, bytes) VALUES ($1, $2, 0, 0, 0)
		ON CONFLICT (kind) DO UPDATE SET last = journals.last + excluded.last RETURNING last - $2 + 1`, sequence, n).Scan(&first)
	if err != nil {
		return 0, fmt.Errorf("take numbers of %s: %w", sequence, err)
	}
	return first, nil
}
