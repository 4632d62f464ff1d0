package api

import "encoding/json"

// TypeCustomAPI is the connection type of a custom destination;
// TypeLocalFiles writes CSV or JSON lines into a folder (ours).
const (
	TypeCustomAPI  = "custom_api"
	TypeLocalFiles = "local_files"
)

// Destination is one connection to write to (spec 2.2). Type is published and
// not in the specification. IsFileSystemDestination is nil where the dialect
// leaves it out.
type Destination struct {
	ID                      int64                `json:"id"`
	Name                    string               `json:"name"`
	Type                    string               `json:"type"`
	CreatedAt               Time                 `json:"created_at"`
	LastTestResults         *TestResults         `json:"last_test_results"`
	LastTestSucceeded       *bool                `json:"last_test_succeeded"`
	LastTestedAt            *Time                `json:"last_tested_at"`
	ConnectionDetails       map[string]any       `json:"connection_details"`
	IsFileSystemDestination *bool                `json:"is_file_system_destination,omitempty"`
	Objects                 []*DestinationObject `json:"objects"`
}

// TestResults are the steps of one connection test in their order (spec 2.2).
type TestResults struct {
	Steps []TestStep `json:"steps"`
}

// The states of a step of a connection test.
const (
	StepPassed  = "passed"
	StepFailed  = "failed"
	StepSkipped = "skipped"
)

// TestStep is one step of a connection test; Error is null unless it failed.
type TestStep struct {
	Step   string     `json:"step"`
	Status string     `json:"status"`
	Error  *StepError `json:"error"`
}

// StepError holds why a step failed (spec 7.1.3).
type StepError struct {
	Message string `json:"message"`
}

// ServiceConnection is the body of POST and PATCH /destinations (spec 4).
// In a PATCH nil fields keep the stored value.
type ServiceConnection struct {
	Name        *string                    `json:"name"`
	Type        *string                    `json:"type"`
	Credentials map[string]json.RawMessage `json:"credentials"`
}

// CustomHeader is one extra header of a custom destination. Value is
// null in replies when IsSecret.
type CustomHeader struct {
	Value    *string `json:"value"`
	IsSecret bool    `json:"is_secret"`
}

// CustomAPICredentials are the credentials of a custom destination (spec 5.2).
type CustomAPICredentials struct {
	APIVersion    int                     `json:"api_version"`
	WebhookURL    string                  `json:"webhook_url"`
	AuthToken     string                  `json:"auth_token,omitempty"`
	CustomHeaders map[string]CustomHeader `json:"custom_headers,omitempty"`
}

// DestinationObject is what records are written into (spec 2.3). Pointers
// marked omitempty are nil where the dialect leaves them out.
type DestinationObject struct {
	Label                              string              `json:"label"`
	FullName                           string              `json:"full_name"`
	SupportedOperations                []string            `json:"supported_operations"`
	PrimaryIdentifierMappingAttributes *PrimaryIdentifiers `json:"primary_identifier_mapping_attributes,omitempty"`
	AllowCustomFields                  bool                `json:"allow_custom_fields"`
	SupportedCustomFieldTypes          *[]CustomFieldType  `json:"supported_custom_field_types,omitempty"`
	AllowCaseSensitiveFields           bool                `json:"allow_case_sensitive_fields"`
	AdvancedConfigurationFields        []AdvancedField     `json:"advanced_configuration_field_definitions"`
	SupportsFieldOrdering              bool                `json:"supports_field_ordering"`
	CanBeSyncDestination               bool                `json:"can_be_sync_destination"`
	IsAudienceDestination              *bool               `json:"is_audience_destination,omitempty"`
	Fields                             []DestinationField  `json:"fields"`
	ConfigurableFieldDefinitions       map[string]string   `json:"configurable_field_definitions"`
}

// Field finds a field by its full_name; nil when there is none.
func (o *DestinationObject) Field(fullName string) *DestinationField {
	for i := range o.Fields {
		if o.Fields[i].FullName == fullName {
			return &o.Fields[i]
		}
	}
	return nil
}

// PrimaryIdentifiers sets how upsert and mirror identify records (spec 2.3).
type PrimaryIdentifiers struct {
	Upsert IdentifierRule `json:"upsert"`
	Mirror IdentifierRule `json:"mirror"`
}

// IdentifierRule is one entry of PrimaryIdentifiers.
type IdentifierRule struct {
	Required           bool    `json:"required"`
	HideDestinationKey bool    `json:"hide_destination_key"`
	Notes              *string `json:"notes"`
}

// CustomFieldType is a type that a field created on write may have (spec 2.3).
type CustomFieldType struct {
	Type  string `json:"type"`
	Array bool   `json:"array"`
}

// AdvancedField describes one key of a sync's advanced_configuration (spec 2.4).
type AdvancedField struct {
	Name            string          `json:"name"`
	Type            string          `json:"type"` // string, integer, boolean
	Label           string          `json:"label"`
	InputType       string          `json:"input_type"` // text, textarea, dropdown, checkbox
	Placeholder     string          `json:"placeholder"`
	Default         json.RawMessage `json:"default,omitempty"`
	SortOrder       int             `json:"sort_order"`
	Required        *bool           `json:"required,omitempty"`
	SupportedValues []string        `json:"supported_values,omitempty"`
}

// DestinationField is one field of an object (spec 2.5). Type is one of the
// seven types of the custom destination protocol.
type DestinationField struct {
	Label                   string   `json:"label"`
	FullName                string   `json:"full_name"`
	Createable              bool     `json:"createable"`
	Updateable              bool     `json:"updateable"`
	Operations              []string `json:"operations"`
	Array                   bool     `json:"array"`
	PreserveValuesSupported bool     `json:"preserve_values_supported"`
	RequiredForMapping      bool     `json:"required_for_mapping"`
	CanBeUpsertKey          bool     `json:"can_be_upsert_key"`
	CanBeUpdateKey          bool     `json:"can_be_update_key"`
	CanBeInsertKey          bool     `json:"can_be_insert_key"`
	CanBeReferenceKey       bool     `json:"can_be_reference_key"`
	LookupObject            string   `json:"lookup_object"` // "": no lookup
	Type                    string   `json:"type"`
}

// The seven types of a field.
const (
	TypeBoolean  = "boolean"
	TypeDecimal  = "decimal"
	TypeFloat    = "float"
	TypeInteger  = "integer"
	TypeDate     = "date"
	TypeDateTime = "date_time"
	TypeString   = "string"
)

// Connector is a destination type of GET /connectors.
type Connector struct {
	DocumentationSlug       string       `json:"documentation_slug"`
	Label                   string       `json:"label"`
	ServiceName             string       `json:"service_name"`
	AuthenticationKind      string       `json:"authentication_kind"` // credentials, none
	CreatableViaAPI         bool         `json:"creatable_via_api"`
	CreatableViaConnectLink bool         `json:"creatable_via_connect_link"`
	Emulated                bool         `json:"emulated"` // ours: kept by a simulator, without a call to the outside
	ConfigurationFields     ConfigFields `json:"configuration_fields"`
}
