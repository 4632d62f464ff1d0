package source

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneTopic is a store with one topic.
type oneTopic struct{ schema map[string]string }

func (o oneTopic) Schema(_ context.Context, topic string) (map[string]string, error) {
	if topic != "orders" {
		return nil, ErrNoTable
	}
	return o.schema, nil
}

func (o oneTopic) Messages(context.Context, string, int64, int) ([]Message, error) { return nil, nil }

func TestTopicColumns(t *testing.T) {
	schema := map[string]string{"s": "string", "n": "number", "b": "boolean", "o": "object", "a": "array", "x": "null"}
	want := []string{"a array array", "b boolean boolean", "n number decimal", "o object object", "s string string", "x null any"}
	require.Equal(t, want, short(TopicColumns(schema)))

	src := open(t, "topic_log", nil, Options{Topics: oneTopic{schema}})
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Empty(t, tables)
	columns, err := src.Columns(t.Context(), Object{Name: "orders"})
	require.NoError(t, err)
	require.Equal(t, want, short(columns))
	_, err = src.Columns(t.Context(), Object{Name: "nope"})
	require.ErrorIs(t, err, ErrNoTable)
	_, err = open(t, "topic_log", nil, Options{}).Columns(t.Context(), Object{Name: "orders"})
	require.ErrorIs(t, err, ErrNoTable)
}
