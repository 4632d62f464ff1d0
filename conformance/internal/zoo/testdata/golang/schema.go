// Package golang is a custom destination as an author writes it with net/http,
// with the mistakes that the zoo knows built in.
package golang

// field has the eight properties of list_fields.
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
	Name, Label string
	Operations  []string
	Fields      []field
}

func plain(name, kind string) field {
	return field{Name: name, Label: name, Createable: true, Updateable: true, Type: kind}
}

func key(name, kind string) field {
	f := plain(name, kind)
	f.Identifier, f.Required = true, true
	return f
}

func list(name, kind string) field {
	f := plain(name, kind)
	f.Array = true
	return f
}

func required(name, kind string) field {
	f := plain(name, kind)
	f.Required = true
	return f
}

// tables are what the endpoint has: the first with several fields of every
// type, the last one never named in a run.
func tables() []*table {
	return []*table{
		{
			Name: "account", Label: "Accounts", Operations: []string{"upsert", "insert", "update", "mirror"},
			Fields: []field{
				key("account_key", "string"), required("name", "string"), plain("city", "string"), plain("remark", "string"),
				plain("seats", "integer"), plain("logins", "integer"), plain("revenue", "decimal"), plain("discount", "decimal"),
				plain("score", "float"), plain("weight", "float"), plain("active", "boolean"), plain("trial", "boolean"),
				plain("signed_on", "date"), plain("renewed_on", "date"), plain("seen_at", "date_time"), plain("changed_at", "date_time"),
				list("tags", "string"), list("codes", "integer"),
			},
		},
		{
			Name: "invoice", Label: "Invoices", Operations: []string{"upsert", "update", "mirror"},
			Fields: []field{
				key("number", "integer"), key("reference", "string"), plain("memo", "string"), plain("total", "decimal"), plain("lines", "integer"),
			},
		},
		{
			Name: "session", Label: "Sessions", Operations: []string{"upsert", "mirror"},
			Fields: []field{key("session_key", "string"), plain("page", "string"), plain("started_at", "date_time")},
		},
	}
}

func (t *table) field(name string) (field, bool) {
	for _, f := range t.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return field{}, false
}
