package api

import (
	"encoding/json"
	"slices"
)

// SourceType is a kind of source (spec 2.10).
type SourceType struct {
	DocumentationSlug          string       `json:"documentation_slug"`
	Label                      string       `json:"label"`
	ServiceName                string       `json:"service_name"`
	SupportedSyncEngines       []string     `json:"supported_sync_engines"`
	CreatableViaAPI            bool         `json:"creatable_via_api"`
	CreatableViaConnectLink    bool         `json:"creatable_via_connect_link"`
	SupportsWarehouseWriteback bool         `json:"supports_warehouse_writeback"`
	ConfigurationFields        ConfigFields `json:"configuration_fields"`
}

// ConfigFields wraps the fields as the wire has them (spec 2.10).
type ConfigFields struct {
	Fields []ConfigField `json:"fields"`
}

// ConfigField describes one credential of a connection (spec 2.10). Rules is a
// string in the spec dialect and a list of strings in the live one: see Rules.
type ConfigField struct {
	ID                  string   `json:"id"`
	Rules               Rules    `json:"rules"`
	Label               string   `json:"label"`
	Type                string   `json:"type"` // string, integer, boolean, object
	Placeholder         string   `json:"placholder"`
	Matches             string   `json:"matches"` // "": anything
	IsPasswordTypeField bool     `json:"is_password_type_field"`
	PossibleValues      []string `json:"possible_values"`
	ReadMore            string   `json:"read_more"`
	Hint                string   `json:"hint"`
	InputType           string   `json:"input_type"`
}

// Rules of a configuration field, such as "required". On the wire it is one
// string, joined by a bar, or with AsList a list of strings.
type Rules struct {
	Words  []string
	AsList bool
}

// MarshalJSON writes the form that AsList selects.
func (r Rules) MarshalJSON() ([]byte, error) {
	if r.AsList {
		if r.Words == nil {
			return []byte("[]"), nil
		}
		return json.Marshal(r.Words)
	}
	joined := ""
	for i, word := range r.Words {
		if i > 0 {
			joined += "|"
		}
		joined += word
	}
	return json.Marshal(joined)
}

// Source is one connection to read from. Credentials are never
// returned; ConnectionDetails holds their harmless part.
type Source struct {
	ID                 int64          `json:"id"`
	Name               string         `json:"name"`
	Label              string         `json:"label"`
	Type               string         `json:"type"`
	SyncEngine         string         `json:"sync_engine"` // basic, advanced
	CreatedAt          Time           `json:"created_at"`
	LastTestSucceeded  *bool          `json:"last_test_succeeded"`
	LastTestedAt       *Time          `json:"last_tested_at"`
	ConnectionDetails  map[string]any `json:"connection_details"`
	ReadOnlyConnection bool           `json:"read_only_connection"`
	// WritebackRetention is a number of days or null; empty where the dialect
	// leaves it out.
	WritebackRetention json.RawMessage `json:"warehouse_writeback_retention_in_days,omitempty"`
}

// Engines of a source (spec 2.10).
const (
	EngineBasic    = "basic"
	EngineAdvanced = "advanced"
)

// SourceConnection is the body of POST and PATCH /sources. In a PATCH
// nil fields keep the stored value. Label is the deprecated name.
type SourceConnection struct {
	Name               *string                    `json:"name"`
	Label              *string                    `json:"label"`
	Type               *string                    `json:"type"`
	SyncEngine         *string                    `json:"sync_engine"`
	Credentials        map[string]json.RawMessage `json:"credentials"`
	WritebackRetention *int64                     `json:"warehouse_writeback_retention_in_days"`
}

// Table is a table of a source with its columns. ID is stable as
// long as catalog, schema and name are.
type Table struct {
	Type         string   `json:"type"` // table
	ID           int64    `json:"id"`
	TableCatalog string   `json:"table_catalog"`
	TableSchema  string   `json:"table_schema"`
	TableName    string   `json:"table_name"`
	Columns      []Column `json:"columns,omitempty"`
}

// Column of a table, dataset or model. Type is the type's name as the source
// has it, such as "text (2000)"; Kind is one of the Kinds below and never on
// the wire.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Kind Kind   `json:"-"`
	// Unmapped: a sync of all properties makes no mapping of it by itself, since
	// its client has not accepted the column yet.
	Unmapped bool `json:"-"`
}

// Kind is what the values of a column are, whatever the source calls it.
type Kind string

// The kinds of columns.
const (
	KindBoolean  Kind = "boolean"
	KindInteger  Kind = "integer"
	KindFloat    Kind = "float"
	KindDecimal  Kind = "decimal"
	KindString   Kind = "string"
	KindDate     Kind = "date"
	KindDateTime Kind = "date_time" // a moment or a time stamp without zone
	KindArray    Kind = "array"
	KindObject   Kind = "object" // JSON
	KindBinary   Kind = "binary"
	KindAny      Kind = "any" // the source does not say
)

// Model is a named query of one source, deprecated (spec 2.11). DatasetIDAgain
// is the second key of the wire, literally "dataset_id=".
type Model struct {
	Type           string   `json:"type"` // model
	ID             int64    `json:"id"`
	Name           string   `json:"name"`
	Description    *string  `json:"description"`
	Query          string   `json:"query"`
	CompiledQuery  *string  `json:"compiled_query"`
	CreatedAt      Time     `json:"created_at"`
	UpdatedAt      Time     `json:"updated_at"`
	DatasetID      int64    `json:"dataset_id"`
	DatasetIDAgain int64    `json:"dataset_id="`
	SourceObjectID int64    `json:"source_object_id"`
	Columns        []Column `json:"columns"`
}

// Dataset replaces models.
type Dataset struct {
	ID                 int64           `json:"id"`
	Name               string          `json:"name"`
	Type               string          `json:"type"` // sql
	Description        *string         `json:"description"`
	Query              string          `json:"query"`
	SourceID           int64           `json:"source_id"`
	ResourceIdentifier string          `json:"resource_identifier"` // dataset:<slug>
	CachedRecordCount  *int64          `json:"cached_record_count"`
	Columns            []DatasetColumn `json:"columns"`
	CreatedAt          Time            `json:"created_at"`
	UpdatedAt          Time            `json:"updated_at"`
}

// FilterSegment is the part of a dataset that meets Query, a condition in SQL.
type FilterSegment struct {
	ID                int64   `json:"id"`
	Name              string  `json:"name"`
	Description       *string `json:"description"`
	SourceID          int64   `json:"source_id"`
	DatasetID         int64   `json:"dataset_id"`
	Query             string  `json:"query"`
	CachedRecordCount *int64  `json:"cached_record_count"`
	CreatedAt         Time    `json:"created_at"`
	UpdatedAt         Time    `json:"updated_at"`
}

// DatasetColumn is a column as datasets show it.
type DatasetColumn struct {
	Name     string `json:"name"`
	DataType string `json:"data_type"`
}

// Topic is a stream of messages (spec 2.12). Schema maps each field of the
// sample message to string, number, boolean, object, array or null.
type Topic struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Description *string           `json:"description"`
	CreatedAt   Time              `json:"created_at"`
	UpdatedAt   Time              `json:"updated_at"`
	Schema      map[string]string `json:"schema"`
}

// formTypes are the types of configuration fields that a form has an input for.
var formTypes = []string{"string", "integer", "boolean", "object", "array"}

// Linkable reports whether all credentials of a type can be given in a form.
func (fields ConfigFields) Linkable() bool {
	return !slices.ContainsFunc(fields.Fields, func(f ConfigField) bool { return !slices.Contains(formTypes, f.Type) })
}
