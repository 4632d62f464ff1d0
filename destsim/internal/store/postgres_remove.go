package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Remove deletes the schema of a store that is the URL of a database.
func Remove(name string) error {
	if !IsURL(name) {
		return errors.New("remove store: only the one in a database can be removed; a file is its owner's")
	}
	config, schema, err := parsePostgres(name)
	if err != nil {
		return fmt.Errorf("remove store: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), postgresPatience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil {
		defer closeConnection(conn)
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return dropSchema(ctx, tx, schema) })
	}
	if err != nil {
		return fmt.Errorf("remove store in PostgreSQL: %w", explainPostgres(err))
	}
	return nil
}

// dropSchema waits for batches under way, and for one that is just being made.
func dropSchema(ctx context.Context, tx pgx.Tx, schema string) error {
	s := &postgresStore{schema: schema, class: classOf(schema)}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", s.class, lockStart); err != nil {
		return err
	}
	there, empty, err := s.look(ctx, tx)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err == nil && !there && !empty:
		err = s.foreign()
	case err == nil && there:
		err = s.checkVersion(ctx, tx)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
	return err
}
