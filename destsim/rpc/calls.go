package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/internal/rawjson"
)

// TestResult is the result of test_connection (spec 4.2, 7.2.3).
type TestResult struct {
	Success      bool   `json:"success"`
	ErrorMessage string `json:"error_message,omitempty"`
}

// objectParams are the params of list_fields and supported_operations: exactly
// this key.
type objectParams struct {
	Object ObjectRef `json:"object"`
}

// TestConnection calls test_connection. A result with success false is no Go
// error. An error_message that is not a string stays its JSON text.
func (c *Client) TestConnection(ctx context.Context) (TestResult, error) {
	var raw struct {
		Success      bool            `json:"success"`
		ErrorMessage json.RawMessage `json:"error_message"`
	}
	if err := c.Call(ctx, MethodTestConnection, nil, &raw); err != nil {
		return TestResult{}, err
	}
	return TestResult{Success: raw.Success, ErrorMessage: rawjson.MessageText(raw.ErrorMessage)}, nil
}

// ListObjects calls list_objects.
func (c *Client) ListObjects(ctx context.Context) ([]Object, error) {
	var result struct {
		Objects []Object `json:"objects"`
	}
	err := c.Call(ctx, MethodListObjects, nil, &result)
	return result.Objects, err
}

// ListFields calls list_fields for one object.
func (c *Client) ListFields(ctx context.Context, object ObjectRef) ([]Field, error) {
	var result struct {
		Fields []Field `json:"fields"`
	}
	err := c.Call(ctx, MethodListFields, objectParams{object}, &result)
	return result.Fields, err
}

// SupportedOperations calls supported_operations for one object.
func (c *Client) SupportedOperations(ctx context.Context, object ObjectRef) ([]string, error) {
	var result struct {
		Operations []string `json:"operations"`
	}
	err := c.Call(ctx, MethodSupportedOperations, objectParams{object}, &result)
	return result.Operations, err
}

// GetSyncSpeed calls get_sync_speed with {}: a JSON-RPC library refuses the
// sync_plan of the oldest text.
func (c *Client) GetSyncSpeed(ctx context.Context) (Speed, error) {
	var result Speed
	err := c.Call(ctx, MethodGetSyncSpeed, nil, &result)
	return result, err
}

// SyncBatch calls sync_batch. The results stand in the order of the reply;
// which record each one answers is for the caller to find out by its
// identifier. An error_message that is not a string stays its JSON text.
func (c *Client) SyncBatch(ctx context.Context, params BatchParams) (BatchResult, error) {
	if params.Records == nil {
		params.Records = []Record{}
	}
	var raw json.RawMessage
	if err := c.Call(ctx, MethodSyncBatch, params, &raw); err != nil {
		return BatchResult{}, err
	}
	result := BatchResult{RecordResults: make([]RecordResult, 0, len(params.Records))}
	err := ScanResults(raw, func(identifier []byte, success bool, message []byte) error {
		result.RecordResults = append(result.RecordResults, RecordResult{
			Identifier:   bytes.Clone(identifier),
			Success:      success,
			ErrorMessage: rawjson.MessageText(message),
		})
		return nil
	})
	if err != nil {
		return BatchResult{}, fmt.Errorf("call %s: %w", MethodSyncBatch, err)
	}
	return result, nil
}
