package demo

import "fmt"

// The table of the demo, in an emulated warehouse: no client has to install one.
const (
	catalog   = "DEMO"
	schema    = "PUBLIC"
	tableName = "CONTACTS"
)

// mapped are the columns and the fields that they go to; the first one is the
// identifier.
var mapped = []struct{ column, field string }{
	{"EMAIL", "email"},
	{"LAST_NAME", "last_name"},
	{"FIRST_NAME", "first_name"},
	{"AGE", "age"},
	{"BALANCE", "balance"},
	{"SUBSCRIBED", "subscribed"},
	{"SEEN_AT", "last_seen_at"},
}

// portion is how many rows one call inserts: the service bounds its time.
const portion = 100_000

// table are the statements, a call each, that make the table with rows
// numbered from 1.
func table(rows int64) []string {
	all := []string{`CREATE TABLE CONTACTS (ID INTEGER PRIMARY KEY, EMAIL TEXT, LAST_NAME TEXT, FIRST_NAME TEXT,
  AGE INTEGER, BALANCE DECIMAL(12,2), SUBSCRIBED BOOLEAN, SEEN_AT DATETIME)`}
	for from := int64(1); from <= rows; from += portion {
		all = append(all, insertRows(from, min(from+portion-1, rows)))
	}
	return all
}

// insertRows adds the rows from to to.
func insertRows(from, to int64) string {
	return fmt.Sprintf(`WITH RECURSIVE numbers(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO CONTACTS SELECT n, printf('person%%08d@example.com', n), 'Family ' || (n %% 977), 'Given ' || (n %% 89),
  18 + n %% 70, printf('%%d.%%02d', n %% 10000, n %% 100), n %% 2, printf('2026-01-%%02dT%%02d:00:00Z', 1 + n %% 28, n %% 24)
FROM numbers;`, from, to)
}

// updateRows changes the first rows.
func updateRows(rows int64) string {
	return fmt.Sprintf("UPDATE CONTACTS SET LAST_NAME = 'Married ' || ID, AGE = AGE + 1 WHERE ID <= %d;", rows)
}

// deleteRows removes rows from the middle, far from those that were changed.
func deleteRows(from, to int64) string {
	return fmt.Sprintf("DELETE FROM CONTACTS WHERE ID BETWEEN %d AND %d;", from, to)
}
