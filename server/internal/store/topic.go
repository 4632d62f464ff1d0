package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Topic is a stream of messages (spec 2.12). Name is unique in its source.
// Schema maps the fields of the sample message to the names of their types.
type Topic struct {
	Row
	SourceID      int64
	Name          string
	Description   *string
	SampleMessage json.RawMessage
	Schema        map[string]string
}

// Message is one entry of a topic's log. Number counts from 1 without gaps.
type Message struct {
	Number int64
	At     time.Time
	Body   json.RawMessage
}

// Topics belong to a source. Messages go with one.
var Topics = define(Table[Topic]{
	name: "topics", kind: "topic", scope: "source_id", counted: true,
	columns: []string{"source_id", "name", "description", "sample_message", "fields"},
	cells: func(t *Topic) []any {
		return []any{&t.SourceID, &t.Name, &t.Description, &t.SampleMessage, &t.Schema}
	},
	duplicate: func(t *Topic) (string, string) { return "name", t.Name },
	uses:      []use{{"sync", "SELECT count(*) FROM syncs WHERE topic_id = ?"}},
})

// AppendMessages adds messages to the end of a topic's log and gives the numbers
// of the first and the last of them; for none, both are the end of the log.
func (tx *Tx) AppendMessages(topicID int64, bodies []json.RawMessage) (first, last int64, err error) {
	last, err = tx.insert("UPDATE topics SET last_message = last_message + ? WHERE id = ? RETURNING last_message",
		int64(len(bodies)), topicID)
	if err == nil && last == 0 && len(bodies) > 0 {
		err = ErrNotFound
	}
	if err != nil {
		return 0, 0, fmt.Errorf("append to topic %d: %w", topicID, err)
	}
	first = last - int64(len(bodies)) + 1
	for i, body := range bodies {
		_, err := tx.exec("INSERT INTO topic_messages (topic_id, number, at, body) VALUES (?, ?, ?, ?)",
			topicID, first+int64(i), tx.now, string(body))
		if err != nil {
			return 0, 0, fmt.Errorf("append to topic %d: %w", topicID, err)
		}
	}
	return min(first, last), last, nil
}

// Messages reads at most limit messages with a number above after, in order.
func (tx *Tx) Messages(topicID, after, limit int64) ([]Message, error) {
	var found []Message
	err := tx.query("SELECT number, at, body FROM topic_messages WHERE topic_id = ? AND number > ? ORDER BY number LIMIT ?",
		func(c sqlite.Row) error {
			s := scan{cells: c}
			found = append(found, Message{Number: s.number(), At: s.time(), Body: json.RawMessage(s.text())})
			return nil
		}, topicID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read messages of topic %d: %w", topicID, err)
	}
	return found, nil
}

// TopicByName reads a topic of a source by its name.
func (tx *Tx) TopicByName(sourceID int64, name string) (*Topic, error) {
	return Topics.one(tx, "source_id = ? AND name = ?", sourceID, name)
}

// LastMessage is the number of the newest message of a topic, 0 when there never
// was one.
func (tx *Tx) LastMessage(topicID int64) (int64, error) {
	return tx.messageNumber(topicID, "SELECT last_message FROM topics WHERE id = ?", topicID)
}

// LastMessageBefore is the number of the newest message that was appended before
// a moment; 0 when there is none.
func (tx *Tx) LastMessageBefore(topicID int64, at time.Time) (int64, error) {
	// A clock that was set back leaves older moments behind newer ones.
	return tx.messageNumber(topicID, "SELECT coalesce(min(number) - 1, (SELECT last_message FROM topics WHERE id = ?)) FROM topic_messages WHERE topic_id = ? AND at >= ?",
		topicID, topicID, at)
}

// CountMessages is how many messages of a topic are kept.
func (tx *Tx) CountMessages(topicID int64) (int64, error) {
	return tx.messageNumber(topicID, "SELECT count(*) FROM topic_messages WHERE topic_id = ?", topicID)
}

func (tx *Tx) messageNumber(topicID int64, query string, args ...any) (n int64, err error) {
	err = tx.query(query, func(c sqlite.Row) error {
		s := scan{cells: c}
		n = s.number()
		return nil
	}, args...)
	if err != nil {
		return 0, fmt.Errorf("count messages of topic %d: %w", topicID, err)
	}
	return n, nil
}

// DropMessages removes the messages of a topic up to a number and returns their
// number. Numbers count on.
func (tx *Tx) DropMessages(topicID, upTo int64) (int64, error) {
	dropped, err := tx.exec("DELETE FROM topic_messages WHERE topic_id = ? AND number <= ?", topicID, upTo)
	if err != nil {
		return 0, fmt.Errorf("drop messages of topic %d: %w", topicID, err)
	}
	return dropped, nil
}
