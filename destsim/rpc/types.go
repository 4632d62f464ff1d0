// Package rpc has the wire types of the custom destination protocol v1 (JSON-RPC 2.0
// over HTTP POST, spec 4.2), requests and responses as bytes, and a one-shot client.
// It refuses to know any server, any judge and any storage.
//
// Values travel as validated raw JSON text, so integers beyond 2^53, decimals,
// date_times, nulls and any Unicode pass through unchanged.
package rpc

import "encoding/json"

// Version is the JSON-RPC version of every request and response (spec 4.2).
const Version = "2.0"

// The six methods of the protocol (spec 4.2).
const (
	MethodTestConnection      = "test_connection"
	MethodListObjects         = "list_objects"
	MethodListFields          = "list_fields"
	MethodSupportedOperations = "supported_operations"
	MethodGetSyncSpeed        = "get_sync_speed"
	MethodSyncBatch           = "sync_batch"
)

// Methods lists the six methods in the order of spec 4.2.
func Methods() []string {
	return []string{
		MethodTestConnection, MethodListObjects, MethodListFields,
		MethodSupportedOperations, MethodGetSyncSpeed, MethodSyncBatch,
	}
}

// Operations of a sync (spec 4.2). OperationDelete is never advertised: it is
// the operation of the batches in which a mirror sync removes records.
const (
	OperationUpsert = "upsert"
	OperationInsert = "insert"
	OperationUpdate = "update"
	OperationMirror = "mirror"
	OperationDelete = "delete"
)

// The seven field types of the protocol (published protocol text of 2024).
const (
	TypeBoolean  = "boolean"
	TypeDecimal  = "decimal"   // a JSON string on the wire
	TypeFloat    = "float"     // a JSON number
	TypeInteger  = "integer"   // a JSON number without fraction
	TypeDate     = "date"      // "2021-03-29"
	TypeDateTime = "date_time" // UTC, "2021-03-29T16:32:23Z"
	TypeString   = "string"
)

// FieldTypes lists the seven field types.
func FieldTypes() []string {
	return []string{
		TypeBoolean, TypeDecimal, TypeFloat, TypeInteger,
		TypeDate, TypeDateTime, TypeString,
	}
}

// CanCreateOnWrite is the only published value of Object.CanCreateFields.
const CanCreateOnWrite = "on_write"

// Error codes of JSON-RPC 2.0. The protocol adds none.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
	CodeServerError    = -32000
)

// Object is one entry of the result of list_objects.
type Object struct {
	APIName         string `json:"object_api_name"`
	Label           string `json:"label"`
	CanCreateFields string `json:"can_create_fields,omitempty"`
}

// Ref is the object as written in params: exactly two keys.
func (o Object) Ref() ObjectRef { return ObjectRef{APIName: o.APIName, Label: o.Label} }

// ObjectRef names an object in the params of list_fields,
// supported_operations and in a sync plan.
type ObjectRef struct {
	APIName string `json:"object_api_name"`
	Label   string `json:"label"`
}

// Field is one entry of the result of list_fields; all eight keys are always
// present on the wire.
type Field struct {
	APIName    string `json:"field_api_name"`
	Label      string `json:"label"`
	Identifier bool   `json:"identifier"`
	Required   bool   `json:"required"`
	Createable bool   `json:"createable"`
	Updateable bool   `json:"updateable"`
	Type       string `json:"type"`
	Array      bool   `json:"array"`
}

// Speed is the result of get_sync_speed; each number is an integer of 1 or
// more. The service caps MaximumParallelBatches at 50.
type Speed struct {
	MaximumBatchSize        int64 `json:"maximum_batch_size"`
	MaximumParallelBatches  int64 `json:"maximum_parallel_batches"`
	MaximumRecordsPerSecond int64 `json:"maximum_records_per_second"`
}

// SchemaField is one mapped field of a sync plan.
type SchemaField struct {
	ActiveIdentifier bool  `json:"active_identifier"`
	Field            Field `json:"field"`
}

// SyncPlan is the first key of the params of sync_batch. Schema holds only the
// mapped fields, keyed by field_api_name, exactly one of them the active
// identifier.
type SyncPlan struct {
	Object    ObjectRef              `json:"object"`
	Operation string                 `json:"operation"`
	SyncRunID int64                  `json:"sync_run_id"`
	SyncID    int64                  `json:"sync_id"`
	Schema    map[string]SchemaField `json:"schema"`
}

// Record is one record of a batch as raw JSON values by field_api_name.
type Record map[string]json.RawMessage

// BatchParams are the params of sync_batch: exactly two keys.
type BatchParams struct {
	SyncPlan SyncPlan `json:"sync_plan"`
	Records  []Record `json:"records"`
}

// Request is one call: the key order is the published one.
type Request struct {
	JSONRPC string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      string          `json:"id"`
	// RawID is the id as it stood in the body, to be echoed byte for byte; nil
	// when the request had none.
	RawID json.RawMessage `json:"-"`
}

// Error is the error object of a response (spec 7.2.2).
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// RecordResult is the verdict on one record (spec 7.2.4). Identifier is the
// raw JSON value that was sent.
type RecordResult struct {
	Identifier   json.RawMessage `json:"identifier"`
	Success      bool            `json:"success"`
	ErrorMessage string          `json:"error_message,omitempty"`
}

// BatchResult is the result of sync_batch.
type BatchResult struct {
	RecordResults []RecordResult `json:"record_results"`
}

// ActiveIdentifier names the field that is the active identifier; ok is false
// unless exactly one is.
func (p SyncPlan) ActiveIdentifier() (name string, ok bool) {
	n := 0
	for key, f := range p.Schema {
		if f.ActiveIdentifier {
			name = key
			n++
		}
	}
	if n != 1 {
		return "", false
	}
	return name, true
}
