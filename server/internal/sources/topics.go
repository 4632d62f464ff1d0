package sources

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/store"
)

// storedTopics hands the topics of one source to its readers.
type storedTopics struct {
	set      *Sources
	sourceID int64
}

// find reads the topic of a name within a view.
func (t storedTopics) find(ctx context.Context, name string, use func(*store.Tx, *store.Topic) error) error {
	return t.set.Shared.Store.View(ctx, func(tx *store.Tx) error {
		topic, err := tx.TopicByName(t.sourceID, name)
		if errors.Is(err, store.ErrNotFound) {
			return source.ErrNoTable
		}
		if err != nil {
			return err
		}
		return use(tx, topic)
	})
}

// Schema implements source.Topics.
func (t storedTopics) Schema(ctx context.Context, name string) (schema map[string]string, err error) {
	err = t.find(ctx, name, func(_ *store.Tx, topic *store.Topic) error {
		schema = topic.Schema
		return nil
	})
	return schema, err
}

// Last implements source.Topics.
func (t storedTopics) Last(ctx context.Context, name string) (last int64, err error) {
	err = t.find(ctx, name, func(tx *store.Tx, topic *store.Topic) (err error) {
		last, err = tx.LastMessage(topic.ID)
		return err
	})
	return last, err
}

// Messages implements source.Topics.
func (t storedTopics) Messages(ctx context.Context, name string, after int64, limit int) (list []source.Message, err error) {
	err = t.find(ctx, name, func(tx *store.Tx, topic *store.Topic) error {
		rows, err := tx.Messages(topic.ID, after, int64(limit))
		for _, m := range rows {
			list = append(list, source.Message{Position: m.Number, Body: m.Body})
		}
		return err
	})
	return list, err
}

// RetentionSetting is the setting of the store that keeps the retention of a topic.
func RetentionSetting(topicID int64) string { return fmt.Sprintf("retention of topic %d", topicID) }
