package source

import (
	"context"
	"fmt"
	"io"

	"github.com/destkit/destkit/internal/source/internal/cell"
)

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
// the schema does not know is not read, and of a field that stands twice the
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
	body := message.Body[cell.SkipBlank(message.Body, 0):]
	err := cell.Members(body, func(key, value []byte) error {
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
