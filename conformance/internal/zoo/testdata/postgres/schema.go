package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// field has the eight properties of a field.
type field struct {
	Name       string `json:"field_api_name"`
	Label      string `json:"label"`
	Identifier bool   `json:"identifier"`
	Required   bool   `json:"required"`
	Createable bool   `json:"createable"`
	Updateable bool   `json:"updateable"`
	Type       string `json:"type"`
	Array      bool   `json:"array"`
}

type table struct {
	name       string
	operations []string
	fields     []field
}

func (t *table) field(name string) *field {
	i := slices.IndexFunc(t.fields, func(f field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &t.fields[i]
}

func make8(name, kind string) field {
	return field{Name: name, Label: name, Createable: true, Updateable: true, Type: kind}
}

func key(f field) field { f.Identifier, f.Required = true, true; return f }

func required(f field) field { f.Required = true; return f }

func array(f field) field { f.Array = true; return f }

func tables() []*table {
	all := []string{"upsert", "insert", "update", "mirror"}
	return []*table{
		{"account", all, []field{
			key(make8("account_no", "string")), required(make8("name", "string")), make8("city", "string"), make8("bio", "string"),
			make8("visits", "integer"), make8("balance", "decimal"), make8("score", "float"), make8("active", "boolean"),
			make8("born_on", "date"), make8("seen_at", "date_time"), make8("changed_at", "date_time"), array(make8("tags", "string")),
		}},
		{"item", all, []field{
			key(make8("item_id", "integer")), make8("title", "string"), make8("price", "decimal"), make8("stock", "integer"),
		}},
	}
}

var columns = map[string]string{
	"string": "text", "integer": "bigint", "decimal": "numeric", "float": "double precision", "boolean": "boolean", "date": "date", "date_time": "timestamptz",
}

// column is the type of a column.
func (e *endpoint) column(f field) string {
	switch {
	case f.Array:
		return "text[]"
	case f.Name == "bio" && e.wrong("char-column"):
		return "char(5000)"
	case f.Name == "seen_at" && e.wrong("timestamp-without-zone"):
		return "timestamp"
	case f.Name == "seen_at" && e.habit("moments-to-the-second"):
		return "timestamptz(0)"
	case f.Type == "decimal" && e.wrong("numeric-of-two-places"):
		return "numeric(40, 2)"
	case f.Name == "score" && e.wrong("real-column"):
		return "real"
	}
	return columns[f.Type]
}

// create makes the tables of the endpoint in its own schema.
func (e *endpoint) create(ctx context.Context, schema string) error {
	c, err := e.pool.acquire(ctx)
	if err != nil {
		return err
	}
	defer e.pool.release(c)
	sql := "CREATE SCHEMA " + schema + ";"
	for _, t := range e.tables {
		var columns []string
		for _, f := range t.fields {
			def := f.Name + " " + e.column(f)
			if f.Identifier {
				def += " UNIQUE"
			}
			columns = append(columns, def)
		}
		sql += fmt.Sprintf("CREATE TABLE %s (%s);", t.name, strings.Join(columns, ", "))
	}
	if e.wrong("changed-at-by-trigger") {
		sql += `CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.changed_at IS NOT DISTINCT FROM OLD.changed_at THEN NEW.changed_at = now(); END IF; RETURN NEW; END $$;
			CREATE TRIGGER touch BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION touch();`
	}
	if e.habit("history-by-trigger") {
		sql += `CREATE TABLE history (at timestamptz DEFAULT now(), old jsonb, new jsonb);
			CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO history (old, new) VALUES (to_jsonb(OLD), to_jsonb(NEW)); RETURN coalesce(NEW, OLD); END $$;
			CREATE TRIGGER keep BEFORE INSERT OR UPDATE OR DELETE ON account FOR EACH ROW EXECUTE FUNCTION keep();`
	}
	_, err = c.Exec(ctx, sql)
	return err
}

// table is the one that params name.
func (e *endpoint) table(params json.RawMessage) (*table, error) {
	var p struct {
		Object struct {
			Name string `json:"object_api_name"`
		} `json:"object"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, badParams("params: %v", err)
	}
	for _, t := range e.tables {
		if t.name == p.Object.Name {
			return t, nil
		}
	}
	return nil, badParams("no such object")
}
