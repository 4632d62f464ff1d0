package source

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneTopic is a store with one topic.
type oneTopic struct {
	schema   map[string]string
	messages []string
}

func (o oneTopic) Schema(_ context.Context, topic string) (map[string]string, error) {
	if topic != "orders" {
		return nil, ErrNoTable
	}
	return o.schema, nil
}

func (o oneTopic) Last(context.Context, string) (int64, error) { return int64(len(o.messages)), nil }

// Messages gives smaller pages than requested, and more messages than at first.
func (o oneTopic) Messages(_ context.Context, _ string, after int64, limit int) (page []Message, err error) {
	all := append(slices.Clone(o.messages), `{"s":"later"}`)
	for i := after; i < int64(len(all)) && len(page) < min(limit, 2); i++ {
		page = append(page, Message{Position: i + 1, Body: json.RawMessage(all[i])})
	}
	return page, nil
}

func TestTopicColumns(t *testing.T) {
	schema := map[string]string{"s": "string", "n": "number", "b": "boolean", "o": "object", "a": "array", "x": "null"}
	want := []string{"a array array", "b boolean boolean", "n number decimal", "o object object", "s string string", "x null any"}
	require.Equal(t, want, short(TopicColumns(schema)))

	src := open(t, "topic_log", nil, Options{Topics: oneTopic{schema: schema}})
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

// TestTopicRows: messages come in their order up to the newest of the beginning,
// a missing field is null, an unknown one is not read, and keys have one form.
func TestTopicRows(t *testing.T) {
	topic := oneTopic{map[string]string{"s": "string", "n": "number"}, []string{
		`{"s":"a","n":1}`, ` { "n" : 12345678901234567890.10 , "x":[{"s":"no"}], "s" : "\u0062\/" }`, `{}`, `{"s":"c","s":"d","n":null}`, `{"n":"text"}`,
	}}
	src := open(t, "topic_log", nil, Options{Topics: topic})
	want := []string{`[1,"a"]`, `[12345678901234567890.10,"b/"]`, `[null,null]`, `[null,"d"]`, `["text",null]`}
	require.Equal(t, want, readAll(t, src, Object{Name: "orders"}, nil, nil))
	require.Equal(t, []string{`["a"]`, `["b/"]`, `["d"]`, `[null]`, `[null]`}, readAll(t, src, Object{Name: "orders"}, []string{"s"}, []string{"s"}))

	rows, err := src.(Log).After(t.Context(), Object{Name: "orders"}, []string{"s", "s"}, 2)
	require.NoError(t, err)
	require.EqualValues(t, 5, rows.Last())
	var got []string
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got = append(got, strings.Repeat("-", int(rows.Position()))+string(row[0])+string(row[1]))
	}
	require.Equal(t, []string{"---nullnull", `----"d""d"`, "-----nullnull"}, got)
	_, err = src.(Log).After(t.Context(), Object{Name: "orders"}, []string{"x"}, 0)
	require.ErrorIs(t, err, ErrNoColumn)
	_, err = src.(Log).After(t.Context(), Object{Name: "nope"}, nil, 0)
	require.ErrorIs(t, err, ErrNoTable)
}
