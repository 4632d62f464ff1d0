package source

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/destkit/destkit/server/api"
)

// Topics hands out what is stored of topics. It is the store's part of a
// topic_log source.
type Topics interface {
	// Schema of a topic (spec 2.12); the error is an ErrNoTable for an unknown one.
	Schema(ctx context.Context, topic string) (map[string]string, error)
	// Last is the position of the newest message; 0 when there never was one.
	Last(ctx context.Context, topic string) (int64, error)
	// Messages after a position, at most limit of them, oldest first.
	Messages(ctx context.Context, topic string, after int64, limit int) ([]Message, error)
}

// Message of a topic: a JSON object at a position above 0 that only grows.
type Message struct {
	Position int64
	Body     json.RawMessage
}

// Log is a Source of messages that are only ever added, each at a position
// above that of the one before.
type Log interface {
	// After reads some columns, all where columns is nil, of the messages after a
	// position, oldest first, up to the newest at the moment of the call.
	After(ctx context.Context, object Object, columns []string, after int64) (LogRows, error)
}

// LogRows are messages as rows, in the order of their positions.
type LogRows interface {
	Rows
	// Position of the message that Next gave last.
	Position() int64
	// Last is the position up to which this reads; nothing that is posted later
	// is below it.
	Last() int64
}

// topicType describes the log of topics, which the service keeps itself.
func topicType() *sourceType {
	d := describe("topic_log", "Topic log")
	d.Streaming = true
	return &sourceType{Description: d, steps: opening,
		open: func(_ context.Context, _ *sourceType, _ settings, o Options) (Source, error) {
			return &topicLog{o}, nil
		}}
}

// topicLog has topics, which its users name; it has no tables.
type topicLog struct{ options Options }

// Close has nothing to do.
func (t *topicLog) Close() error { return nil }

// Tables: a log has topics instead.
func (t *topicLog) Tables(context.Context) ([]api.Table, error) { return []api.Table{}, nil }

// Columns of the topic that Name names.
func (t *topicLog) Columns(ctx context.Context, object Object) ([]api.Column, error) {
	if object.Query != "" {
		return nil, noQueries("topic_log")
	}
	if t.options.Topics == nil {
		return nil, fmt.Errorf("find topic %s: %w", object, ErrNoTable)
	}
	schema, err := t.options.Topics.Schema(ctx, object.Name)
	if err != nil {
		return nil, fmt.Errorf("find topic %s: %w", object, err)
	}
	return TopicColumns(schema), nil
}

// TopicColumns are the columns of a topic with this schema (spec 2.12), by
// name. A number may be whole or not, so its kind is decimal; what was null in
// the sample message may be anything.
func TopicColumns(schema map[string]string) []api.Column {
	kinds := map[string]api.Kind{
		"string": api.KindString, "number": api.KindDecimal, "boolean": api.KindBoolean,
		"object": api.KindObject, "array": api.KindArray,
	}
	columns := []api.Column{}
	for _, name := range sortedKeys(schema) {
		kind, ok := kinds[schema[name]]
		if !ok {
			kind = api.KindAny
		}
		columns = append(columns, api.Column{Name: name, Type: schema[name], Kind: kind})
	}
	return columns
}
