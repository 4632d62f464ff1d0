// Package source owns the reading side of the reference service: the types of
// sources with their configuration (spec 2.10), the test of a connection, the
// discovery of tables and columns, the check of a query, and rows as
// JSON text in the order of their keys.
//
// It refuses to know workspaces, syncs, mappings and destinations, where
// credentials are kept, and which columns a sync wants. It never writes into a
// source, except into the emulated warehouses that it keeps itself, and the
// state of syncs into its own schema where the user has chosen the engine that
// does so. No message of it holds a secret.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/api"
)

// Source is one connection that is open. It is safe for parallel use; Close
// does not end the reading of rows that others hold.
type Source interface {
	// Tables lists all tables with their columns, by catalog, schema and name.
	// IDs are 0: they are given by whoever stores the tables.
	Tables(ctx context.Context) ([]api.Table, error)
	// Columns of a table or of what a query selects, in their order. The error
	// is an ErrNoTable for an unknown table and a *QueryError for a query that
	// cannot be run or does more than read.
	Columns(ctx context.Context, object Object) ([]api.Column, error)
	Close() error
}

// Object is the object to read: a table by its name, or Query, which wins.
// Catalog and Schema may be empty where the name alone identifies the table.
type Object struct {
	Catalog, Schema, Name string
	Query                 string
}

// String names the object in messages; a query is not repeated.
func (o Object) String() string {
	if o.Query != "" {
		return "the query"
	}
	name := o.Name
	if o.Schema != "" {
		name = o.Schema + "." + name
	}
	if o.Catalog != "" {
		name = o.Catalog + "." + name
	}
	return fmt.Sprintf("%q", name)
}

// Options of an open source.
type Options struct {
	// Warehouse is the file of an emulated warehouse. "" keeps it in memory for
	// the life of the process, shared by all sources of the same Key.
	Warehouse string
	Key       string
	// Topics hands out the messages of a topic_log source; nil: it has none.
	Topics Topics
	// Now is the clock on which generated rows change, nil: time.Now; Since is
	// when the source was made, from which their steps count; zero: now.
	Now   func() time.Time
	Since time.Time
	// Files selects the files that may be read, and Network the addresses
	// that may be connected to; nil: all but /proc and /sys, and all.
	Files   *reach.Files
	Network *reach.Network
	// Scratch is the folder for rows that are sorted on disk; "" is the
	// system's folder for temporary files.
	Scratch string
	Limits  Limits
}

// Errors of this package, to be found with errors.Is.
var (
	// ErrNoTable: the source has no such table.
	ErrNoTable = errors.New("no such table")
	// ErrNoColumn: the object has no such column.
	ErrNoColumn = errors.New("no such column")
	// ErrReadOnly: statements are executed on emulated warehouses only.
	ErrReadOnly = errors.New("the source is only read")
	// ErrType: there is no such type of source.
	ErrType = errors.New("no such type of source")
)

// QueryError describes what is wrong with a query.
type QueryError struct {
	Message  string
	Position int // of the character, from 1; 0: not known
}

// Error is the source's own message, which may show a part of the query.
func (e *QueryError) Error() string {
	if e.Position > 0 {
		return fmt.Sprintf("%s (at character %d)", e.Message, e.Position)
	}
	return e.Message
}

// CredentialsError is what Open returns for credentials that CheckCredentials
// objects to.
type CredentialsError struct{ Problems []api.Problem }

// Error lists all problems; none repeats a value.
func (e *CredentialsError) Error() string {
	text := "check credentials: "
	for i, p := range e.Problems {
		if i > 0 {
			text += "; "
		}
		text += p.String()
	}
	return text
}

// Open connects to a source. The error is a *CredentialsError where the
// credentials are not even of the right shape.
func (c *Catalogue) Open(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options) (Source, error) {
	t, ok := c.types[typ]
	if !ok {
		return nil, fmt.Errorf("open source %q: %w", typ, ErrType)
	}
	if problems := c.CheckCredentials(typ, credentials); len(problems) > 0 {
		return nil, &CredentialsError{problems}
	}
	src, err := t.open(ctx, t, settings(credentials), o)
	if err != nil {
		return nil, clean(fmt.Errorf("open %s source: %w", typ, err), c.Secrets(typ, credentials))
	}
	return src, nil
}

// Open is that of the built-in catalogue.
func Open(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options) (Source, error) {
	return BuiltIn().Open(ctx, typ, credentials, o)
}
