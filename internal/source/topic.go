package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// Topics hands out the stored messages of topics. It is the store's part
// of a topic_log source.
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
// name. A number may be whole or not, so its kind is decimal; a null in the
// sample message may be anything.
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

var (
	_ Reader = (*topicLog)(nil)
	_ Log    = (*topicLog)(nil)
)

// topicPage is how many messages are read at once.
const topicPage = 1000

// Rows implements Reader: all messages of a topic.
func (t *topicLog) Rows(ctx context.Context, object Object, columns, order []string) (Rows, error) {
	rows, chosen, err := t.read(ctx, object, columns, order, 0)
	if err != nil {
		return nil, err
	}
	return arranged(ctx, rows, chosen, false, t.options.Scratch)
}

// After implements Log.
func (t *topicLog) After(ctx context.Context, object Object, columns []string, after int64) (LogRows, error) {
	rows, _, err := t.read(ctx, object, columns, nil, after)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// read begins behind a position. Messages never change, so all that was there
// when the reading began is a consistent snapshot.
func (t *topicLog) read(ctx context.Context, object Object, columns, order []string, after int64) (*topicRows, selection, error) {
	all, err := t.Columns(ctx, object)
	if err != nil {
		return nil, selection{}, err
	}
	chosen, err := choose(object, all, columns, order)
	if err != nil {
		return nil, chosen, err
	}
	last, err := t.options.Topics.Last(ctx, object.Name)
	if err != nil {
		return nil, chosen, fmt.Errorf("read topic %s: %w", object, err)
	}
	r := &topicRows{
		ctx: ctx, topics: t.options.Topics, topic: object.Name, after: after, last: last,
		places: map[string][]int{}, cells: make([][]byte, len(chosen.wanted)), row: cell.NewRow(len(chosen.wanted)),
	}
	for i, column := range chosen.wanted {
		name := all[column].Name
		r.places[name] = append(r.places[name], i)
	}
	return r, chosen, nil
}

// topicRows turns messages into rows, page by page.
type topicRows struct {
	ctx    context.Context
	topics Topics
	topic  string
	after  int64 // the position of the last message
	last   int64
	page   []Message
	places map[string][]int // of a column in the row
	cells  [][]byte         // of the message
	row    cell.Row
}

// Close has nothing to do: no page outlives its call.
func (r *topicRows) Close() error { return nil }

// Position implements LogRows.
func (r *topicRows) Position() int64 { return r.after }

// Last implements LogRows.
func (r *topicRows) Last() int64 { return r.last }

// Next implements Rows. A field that a message does not have is null, one that
// the schema does not know is not read, and of a field that occurs twice the
// last counts: one message that is odd must not stop all that come after it.
func (r *topicRows) Next() ([][]byte, error) {
	if len(r.page) == 0 {
		if err := r.fetch(); err != nil {
			return nil, err
		}
	}
	message := r.page[0]
	r.page, r.after = r.page[1:], message.Position
	for i := range r.cells {
		r.cells[i] = cell.Null
	}
	err := cell.Members(message.Body, func(key, value []byte) error {
		for _, place := range r.places[string(key)] {
			r.cells[place] = value
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read message %d of topic %q: %w", message.Position, r.topic, err)
	}
	r.row.Reset()
	for _, value := range r.cells {
		r.row.Buf = cell.AppendCanonical(r.row.Buf, value)
		r.row.End()
	}
	return r.row.Values(), nil
}

// fetch reads the next page, which ends where the reading does.
func (r *topicRows) fetch() error {
	if r.after >= r.last {
		return io.EOF
	}
	page, err := r.topics.Messages(r.ctx, r.topic, r.after, topicPage)
	if err != nil {
		return fmt.Errorf("read topic %q: %w", r.topic, err)
	}
	for len(page) > 0 && page[len(page)-1].Position > r.last {
		page = page[:len(page)-1]
	}
	if len(page) == 0 { // the rest was removed meanwhile
		r.after = r.last
		return io.EOF
	}
	r.page = page
	return nil
}
