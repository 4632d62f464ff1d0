//go:build unix

package source

import "testing"

func BenchmarkPostgresRows(b *testing.B) {
	src := open(b, "postgres", postgresDatabase(b, "benched", `CREATE TABLE users (id bigint PRIMARY KEY, email text, first_name text, last_name text, company_id int, city text, balance numeric(12,2), active boolean, signed_up_on date, updated_at timestamptz);
		INSERT INTO users SELECT n, 'amber.basin' || n || '@example.com', 'Margaret', 'Kowalski', n % 1000, 'Edinburgh', n / 100.0, n % 2 = 0, '2024-02-29', '2024-02-29T10:11:12Z' FROM generate_series(1, 200000) AS n;
		ANALYZE users;`), Options{})
	b.Run("unordered", func(b *testing.B) { benchmarkRows(b, src, Object{Name: "users"}, nil) })
	b.Run("by-id", func(b *testing.B) { benchmarkRows(b, src, Object{Name: "users"}, []string{"id"}) })
	b.Run("by-email", func(b *testing.B) { benchmarkRows(b, src, Object{Name: "users"}, []string{"email"}) })
	b.Run("by-date", func(b *testing.B) { benchmarkRows(b, src, Object{Name: "users"}, []string{"signed_up_on", "id"}) })
}
