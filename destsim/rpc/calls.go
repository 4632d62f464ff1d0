package rpc

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

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

// SyncBatch calls sync_batch. The results are in the order of the reply;
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

// readReply reads and decodes the body of a reply within the bound.
func (c *Client) readReply(resp *http.Response) ([]byte, error) {
	most := c.MaxReply
	if most <= 0 {
		most = DefaultMaxReply
	}
	raw := &bounded{r: resp.Body, left: most}
	decoded, err := decodeContent(raw, resp.Header.Get("Content-Encoding"))
	if err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	var body bytes.Buffer
	// Content-Length sets the first buffer, within reason: it may be false.
	body.Grow(int(min(max(resp.ContentLength, 0), LargeReply)) + bytes.MinRead)
	from := &bounded{r: decoded, left: most}
	if c.Large != nil {
		n, err := body.ReadFrom(io.LimitReader(from, LargeReply+1))
		if err == nil && n > LargeReply {
			ctx := context.Background()
			if resp.Request != nil {
				ctx = resp.Request.Context()
			}
			err = c.Large(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("read reply: %w", err)
		}
	}
	if _, err := body.ReadFrom(from); err != nil {
		return nil, fmt.Errorf("read reply: %w", err)
	}
	return body.Bytes(), nil
}

// decodeContent undoes a Content-Encoding: gzip and deflate are what the
// service offers.
func decodeContent(r io.Reader, encoding string) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return inflate(r)
	}
	return nil, fmt.Errorf("unknown content encoding %q", encoding)
}

// inflate reads the zlib format, which "deflate" names in HTTP, and the bare
// stream that many servers send under that name. A zlib head has method 8 and
// is a multiple of 31 as a 16-bit number (RFC 1950 section 2.2).
func inflate(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	head, err := br.Peek(2)
	if err != nil {
		return nil, fmt.Errorf("read deflate head: %w", err)
	}
	if head[0]&15 == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(br)
	}
	return flate.NewReader(br), nil
}

// bounded fails, where io.LimitReader would pretend an end, once more than
// left bytes are there.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrReplyTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n + int(b.left), ErrReplyTooLarge
	}
	return n, err
}
