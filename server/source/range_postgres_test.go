//go:build unix

package source

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRangesOfPostgresTables(t *testing.T) {
	src := open(t, "postgres", postgresDatabase(t, "ranges", `
		CREATE TABLE t (small int2, id int, big bigint PRIMARY KEY, code text, name varchar(20), u uuid, amount numeric);
		INSERT INTO t SELECT v % 32000, v - 700, v * 1000003 - 5, 'c"ode' || chr(1 + v % 300) || v, 'n' || v, md5(v::text)::uuid, v FROM generate_series(1, 1500) v;
		INSERT INTO t (big) VALUES (-9223372036854775808), (9223372036854775807);
		CREATE VIEW seen AS SELECT * FROM t;
		CREATE TABLE parts (k int, at date) PARTITION BY RANGE (at);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
		INSERT INTO parts SELECT v, '2024-06-01'::date + v FROM generate_series(1, 400) v;`), Options{})
	for _, column := range []string{"small", "id", "big", "code", "name", "u"} {
		t.Run(column, func(t *testing.T) { rangesOf(t, src, Object{Name: "t"}, column, column) })
	}
	rangesOf(t, src, Object{Name: "parts"}, "k", "k", "at")
	for object, column := range map[Object]string{{Name: "t"}: "amount", {Name: "seen"}: "id", {Query: "SELECT id FROM t"}: "id"} {
		sample, _, err := src.(Ranger).Sample(t.Context(), object, column)
		require.NoError(t, err)
		require.Empty(t, sample, "%s of %s", column, object)
	}
	_, err := src.(Ranger).Range(t.Context(), Object{Name: "t"}, []string{"amount"}, Range{Column: "amount", From: []byte("1")})
	require.ErrorIs(t, err, ErrNoRange)
	_, err = src.(Ranger).Range(t.Context(), Object{Name: "t"}, []string{"u"}, Range{Column: "u", From: []byte("1")})
	require.Error(t, err)
}
