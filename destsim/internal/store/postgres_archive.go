package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Dump reads in one transaction, which sees one moment: PostgreSQL keeps it
// apart from what batches write meanwhile. Only what replaces everything waits.
func (s *postgresStore) Dump(fixed func(lastID int64), each func(table string, r Row) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	var refused error
	err := pgx.BeginTxFunc(s.life, s.pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(s.life, "SELECT pg_advisory_xact_lock_shared($1, $2)", s.class, lockWorld); err != nil {
			return err
		}
		// The first statement has fixed the moment, perhaps before it had the lock.
		if _, err := tx.Exec(s.life, "COMMIT AND CHAIN"); err != nil {
			return err
		}
		var last int64
		if err := tx.QueryRow(s.life, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM record_ids").Scan(&last); err != nil {
			return err
		}
		fixed(last)
		rows, err := tx.Query(s.life, "SELECT t.name, r.id, r.data FROM records r JOIN tables t ON t.num = r.tbl ORDER BY r.id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name []byte
			var r Row
			if err := rows.Scan(&name, &r.ID, &r.Data); err != nil {
				return err
			}
			if refused = each(string(name), r); refused != nil {
				return refused
			}
		}
		return rows.Err()
	})
	if refused != nil {
		return refused // it is the reader's
	}
	if err != nil {
		return fmt.Errorf("read store: %w", explainPostgres(err))
	}
	return nil
}

// postgresStage keeps a few rows, and fills a temporary table with what are
// more, on a connection of its own. Batches go on until Commit.
type postgresStage struct {
	s       *postgresStore
	conn    *pgxpool.Conn
	pending [][]any
	spilled bool // there is a temporary table
	drop    func()
}

// stagedAtOnce bounds the rows that wait in memory.
const stagedAtOnce = 2000

const postgresStaging = "CREATE TEMPORARY TABLE staged (name bytea NOT NULL, id bigint NOT NULL, data bytea NOT NULL)"

func (s *postgresStore) Stage() (Stage, error) {
	conn, err := s.pool.Acquire(s.life)
	if err != nil {
		return nil, fmt.Errorf("stage store: %w", explainPostgres(err))
	}
	st := &postgresStage{s: s, conn: conn}
	st.drop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), postgresRollback)
		defer cancel()
		if st.spilled {
			_ = conn.Conn().Close(ctx) // and the table with it
		}
		conn.Release()
	})
	return st, nil
}

func (st *postgresStage) Put(name string, r Row) error {
	st.pending = append(st.pending, []any{[]byte(name), r.ID, append([]byte(nil), r.Data...)})
	if len(st.pending) < stagedAtOnce {
		return nil
	}
	return st.push()
}

// push empties the memory.
func (st *postgresStage) push() error {
	if !st.spilled {
		if _, err := st.conn.Exec(st.s.life, postgresStaging); err != nil {
			return fmt.Errorf("stage store: %w", explainPostgres(err))
		}
		st.spilled = true
	}
	_, err := st.conn.CopyFrom(st.s.life, pgx.Identifier{"pg_temp", "staged"}, []string{"name", "id", "data"}, pgx.CopyFromRows(st.pending))
	st.pending = st.pending[:0]
	if err != nil {
		return fmt.Errorf("stage store: %w", explainPostgres(err))
	}
	return nil
}

// Commit moves everything in one transaction, when no batch is under way. The
// index is built by the first batch, which knows the unique fields.
func (st *postgresStage) Commit(lastID int64) error {
	defer st.drop()
	if st.spilled {
		if err := st.push(); err != nil {
			return err
		}
	}
	ctx := st.s.life
	err := pgx.BeginFunc(ctx, st.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", st.s.class, lockWorld); err != nil {
			return err
		}
		if err := empty(ctx, tx); err != nil {
			return err
		}
		q := &pgx.Batch{}
		q.Queue("UPDATE tables SET uniques = NULL")
		st.move(q)
		q.Queue("SELECT setval('record_ids', $1, $2)", max(lastID, 1), lastID > 0)
		return tx.SendBatch(ctx, q).Close()
	})
	if err != nil {
		return fmt.Errorf("replace store: %w", explainPostgres(err))
	}
	return nil
}

// move asks for the rows to be stored.
func (st *postgresStage) move(q *pgx.Batch) {
	from, args := "pg_temp.staged", []any{}
	if !st.spilled {
		names, ids, data := make([][]byte, len(st.pending)), make([]int64, len(st.pending)), make([][]byte, len(st.pending))
		for i, r := range st.pending {
			names[i], ids[i], data[i] = r[0].([]byte), r[1].(int64), r[2].([]byte)
		}
		from, args = "unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS u(name, id, data)", []any{names, ids, data}
	}
	q.Queue("INSERT INTO tables (name) SELECT DISTINCT name FROM "+from+" ON CONFLICT (name) DO NOTHING", args...)
	q.Queue("INSERT INTO records (tbl, id, data) SELECT t.num, s.id, s.data FROM (SELECT name, id, data FROM "+from+") s JOIN tables t ON t.name = s.name", args...)
}

// Discard drops what was staged.
func (st *postgresStage) Discard() { st.drop() }
