package source

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/api"
)

// emulatedTypes with their sample tables as they name them.
var emulatedTypes = map[string][]string{
	"snowflake":   {"DEMO.PUBLIC.COMPANIES", "DEMO.PUBLIC.USERS", "DEMO.SALES.ORDERS", "DEMO.TRACKING.EVENTS"},
	"big_query":   {"my-project-123.crm.companies", "my-project-123.crm.users", "my-project-123.sales.orders", "my-project-123.tracking.events"},
	"materialize": {"materialize.public.companies", "materialize.public.users", "materialize.sales.orders", "materialize.tracking.events"},
}

// warehouseFor opens an emulated warehouse of this test only.
func warehouseFor(t testing.TB, typ string, o Options) Source {
	if o.Warehouse == "" && o.Key == "" {
		o.Key = t.Name()
	}
	t.Cleanup(func() { Forget(o.Key) })
	return open(t, typ, validCredentials()[typ], o)
}

func TestWarehouseTables(t *testing.T) {
	users := map[string][]string{
		"snowflake": {"ID NUMBER(38,0) integer", "EMAIL VARCHAR(16777216) string", "FIRST_NAME VARCHAR(16777216) string", "LAST_NAME VARCHAR(16777216) string",
			"COMPANY_ID NUMBER(38,0) integer", "ACTIVE BOOLEAN boolean", "SCORE FLOAT float", "PROFILE VARIANT object", "CREATED_ON DATE date", "UPDATED_AT TIMESTAMP_TZ(9) date_time"},
		"big_query": {"id INT64 integer", "email STRING string", "first_name STRING string", "last_name STRING string",
			"company_id INT64 integer", "active BOOL boolean", "score FLOAT64 float", "profile JSON object", "created_on DATE date", "updated_at TIMESTAMP date_time"},
		"materialize": {"id bigint integer", "email text string", "first_name text string", "last_name text string",
			"company_id bigint integer", "active boolean boolean", "score double precision float", "profile jsonb object", "created_on date date", "updated_at timestamp with time zone date_time"},
	}
	var first []string
	for typ, want := range emulatedTypes {
		for _, o := range []Options{{}, {Warehouse: filepath.Join(t.TempDir(), "new", "wh.sqlite")}} {
			src := warehouseFor(t, typ, o)
			tables, err := src.Tables(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, names(tables))
			require.Equal(t, users[typ], short(tables[1].Columns))
			orders := Object{Schema: tables[2].TableSchema, Name: tables[2].TableName}
			columns, err := src.Columns(t.Context(), orders)
			require.NoError(t, err)
			require.Equal(t, tables[2].Columns, columns)
			require.Contains(t, strings.ToLower(columns[2].Type), "12,2", "the stored precision")
			rows := readAll(t, src, orders, nil, []string{columns[0].Name})
			require.Len(t, rows, 400)
			if first == nil {
				first = rows
			}
			require.Equal(t, first, rows, "the same data in every warehouse")
		}
	}
}

func TestWarehouseNames(t *testing.T) {
	src := warehouseFor(t, "snowflake", Options{})
	for _, o := range []Object{{Catalog: "DEMO", Schema: "PUBLIC", Name: "USERS"}, {Name: "users"}, {Schema: "public", Name: "Users"}, {Catalog: "demo", Schema: "SALES", Name: "ORDERS"}} {
		_, err := src.Columns(t.Context(), o)
		require.NoError(t, err, o)
	}
	for _, o := range []Object{{Catalog: "OTHER", Schema: "PUBLIC", Name: "USERS"}, {Schema: "SALES", Name: "USERS"}, {Name: "ORDERS"}} {
		_, err := src.Columns(t.Context(), o)
		require.ErrorIs(t, err, ErrNoTable, o)
	}
}

func TestWarehouseQueries(t *testing.T) {
	snow, big := warehouseFor(t, "snowflake", Options{}), warehouseFor(t, "big_query", Options{})
	for _, c := range []struct {
		src   Source
		query string
		want  []string
	}{
		{snow, "SELECT id FROM demo.public.users", []string{"ID NUMBER(38,0) integer"}},
		{snow, `SELECT u.EMAIL AS mail, o.AMOUNT FROM USERS u JOIN "SALES"."ORDERS" o ON o.USER_ID = u.ID`, []string{"mail VARCHAR(16777216) string", "AMOUNT NUMBER(12,2) decimal"}},
		{snow, "SELECT SALES.ORDERS.ID, 'SALES.ORDERS' AS t /* SALES.ORDERS */ FROM SALES.ORDERS", []string{"ID NUMBER(38,0) integer", "t VARIANT any"}},
		{snow, "SELECT sales.id FROM public.users sales", []string{"ID NUMBER(38,0) integer"}},
		{big, "SELECT amount FROM `my-project-123.sales.orders`", []string{"amount NUMERIC(12,2) decimal"}},
		{big, "SELECT amount FROM `my-project-123`.sales.orders", []string{"amount NUMERIC(12,2) decimal"}},
		{big, "SELECT amount FROM my-project-123.sales.orders o WHERE o.id = 1", []string{"amount NUMERIC(12,2) decimal"}},
	} {
		columns, err := c.src.Columns(t.Context(), Object{Query: c.query})
		require.NoError(t, err, c.query)
		require.Equal(t, c.want, short(columns), c.query)
	}
	for query, want := range map[string]QueryError{
		"SELECT ID FROM SALES.NOPE":                       {"no such table: SALES.NOPE", 0},
		"SELECT 'é', ID FROM DEMO.SALES.ORDERS WHER X Y":  {`near "X": syntax error`, 44},
		"SELECT NOPE, SALES.ORDERS.ID FROM SALES.ORDERS":  {"no such column: NOPE", 8},
		"SELECT SALES.ORDERS.ID, 5 FRM SALES.ORDERS X Y ": {"", 0},
	} {
		_, err := snow.Columns(t.Context(), Object{Query: query})
		var q *QueryError
		require.ErrorAs(t, err, &q, query)
		if want.Message != "" {
			require.Equal(t, want, *q, query)
		}
	}
}

func TestWarehouseExecute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wh.sqlite")
	src := warehouseFor(t, "snowflake", Options{Warehouse: path})
	require.NoError(t, Execute(t.Context(), src, `
		CREATE TABLE SALES.RETURNS (ID INTEGER PRIMARY KEY, REASON VARCHAR(20), AMOUNT DECIMAL(9,3)); -- ;
		INSERT INTO DEMO.SALES.RETURNS VALUES (1, 'broken', 1.5), (2, 'late; very', 2);
		DELETE FROM USERS WHERE ID > 1;
		DROP TABLE TRACKING.EVENTS;`))
	check := func(src Source) {
		tables, err := src.Tables(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"DEMO.PUBLIC.COMPANIES", "DEMO.PUBLIC.USERS", "DEMO.SALES.ORDERS", "DEMO.SALES.RETURNS"}, names(tables))
		require.Equal(t, []string{"ID NUMBER(38,0) integer", "REASON VARCHAR(20) string", "AMOUNT NUMBER(9,3) decimal"}, short(tables[3].Columns))
		require.Equal(t, []string{`["broken"]`, `["late; very"]`}, readAll(t, src, Object{Schema: "SALES", Name: "RETURNS"}, []string{"REASON"}, []string{"ID"}))
		require.Len(t, readAll(t, src, Object{Query: "SELECT * FROM PUBLIC.USERS"}, nil, nil), 1)
	}
	check(src)
	for sql, want := range map[string]string{
		"DELETE FROM USERS; INSERT INTO NOPE VALUES (1)":                      "no such table: NOPE",
		"DELETE FROM USERS; INSERT INTO SALES.RETURNS VALUES (1, NULL, NULL)": "UNIQUE constraint failed",
		"DELETE FROM USERS; ATTACH '/tmp/x' AS x":                             "is not allowed here",
		"DELETE FROM USERS; COMMIT":                                           "is not allowed here",
		"DELETE FROM USERS; PRAGMA application_id = 1":                        "is not allowed here",
		"DELETE FROM USERS; SELECT\x00":                                       "NUL",
		"DELETE FROM USERS; DELETE FROM":                                      "incomplete input",
	} {
		err := Execute(t.Context(), src, sql)
		var q *QueryError
		require.ErrorAs(t, err, &q, sql)
		require.Contains(t, q.Message, want, sql)
	}
	check(src) // nothing of the failed ones
	check(warehouseFor(t, "snowflake", Options{Warehouse: path}))
}

func TestWarehouseInMemory(t *testing.T) {
	one := warehouseFor(t, "snowflake", Options{Key: "one " + t.Name()})
	two := warehouseFor(t, "snowflake", Options{Key: "two " + t.Name()})
	require.NoError(t, Execute(t.Context(), one, "DELETE FROM USERS"))
	again := warehouseFor(t, "snowflake", Options{Key: "one " + t.Name()})
	require.Empty(t, readAll(t, again, Object{Name: "USERS"}, nil, nil), "shared by key")
	require.Len(t, readAll(t, two, Object{Name: "USERS"}, nil, nil), 300, "apart by key")
	Forget("one " + t.Name())
	again = warehouseFor(t, "snowflake", Options{Key: "one " + t.Name()})
	require.Len(t, readAll(t, again, Object{Name: "USERS"}, nil, nil), 300, "new after it was forgotten")
}

// TestWarehouseOpenedAtOnce: the sample is made once.
func TestWarehouseOpenedAtOnce(t *testing.T) {
	for _, o := range []Options{{Key: t.Name()}, {Warehouse: filepath.Join(t.TempDir(), "wh.sqlite")}} {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				src, err := Open(t.Context(), "materialize", credentials(validCredentials()["materialize"]), o)
				if err == nil {
					var tables []api.Table
					tables, err = src.Tables(t.Context())
					if err == nil && len(tables) != 4 {
						t.Errorf("%d tables", len(tables))
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		Forget(o.Key)
	}
}

func TestWarehouseForeignFile(t *testing.T) {
	for path, says := range map[string]string{
		database(t, "CREATE TABLE precious (a)"):                            "the file is a database of another program",
		testkit.WriteFile(t, "text", strings.Repeat("not a database ", 50)): "file is not a database",
	} {
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = Open(t.Context(), "snowflake", credentials(validCredentials()["snowflake"]), Options{Warehouse: path})
		require.ErrorContains(t, err, says)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}
