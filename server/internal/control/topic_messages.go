package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// misfit is a message that the schema of its topic does not describe. It is
// kept all the same, as a log takes what producers send: a value that cannot be
// cast makes its record invalid, and the sender is notified at once.
type misfit struct {
	Number  int64  `json:"number"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// maxMisfits bounds how many are shown of one call.
const maxMisfits = 20

// misfits compares messages with the schema (spec 2.12).
func misfits(schema map[string]string, first int64, list []json.RawMessage) []misfit {
	found := []misfit{}
	for i, message := range list {
		var fields map[string]json.RawMessage
		if json.Unmarshal(message, &fields) != nil {
			continue // refused before
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			is, want := rawjson.TypeOf(fields[name]), schema[name]
			problem := ""
			switch {
			case want == "":
				problem = "is not in the schema of the topic, and is not read"
			case want != "null" && is != "null" && is != want:
				problem = fmt.Sprintf("is of type %s, and the schema of the topic says %s", is, want)
			default:
				continue
			}
			if found = append(found, misfit{first + int64(i), name, problem}); len(found) == maxMisfits {
				return found
			}
		}
	}
	return found
}

// topicRetention is how long and how many messages of a topic are kept; zero fields
// keep all.
type topicRetention struct {
	Age      string `json:"age"` // a duration such as 168h, on the service's clock
	Messages int64  `json:"messages"`
}

// retentionOf reads the retention of a topic.
func retentionOf(tx *store.Tx, topicID int64) (r topicRetention, err error) {
	text, err := tx.Setting(sources.RetentionSetting(topicID))
	if errors.Is(err, store.ErrNotFound) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err
}

// expire drops the messages of a topic that its retention does not keep, but
// none that a sync has still to send: a record is never lost.
func (h *Handlers) expire(tx *store.Tx, topicID int64) (dropped int64, err error) {
	r, err := retentionOf(tx, topicID)
	if err != nil || r == (topicRetention{}) {
		return 0, err
	}
	last, err := tx.LastMessage(topicID)
	if err != nil {
		return 0, err
	}
	upTo := int64(0)
	if r.Messages > 0 {
		upTo = last - r.Messages
	}
	if age, err := time.ParseDuration(r.Age); err == nil && age > 0 {
		old, err := tx.LastMessageBefore(topicID, h.Clock.Now().Add(-age))
		if err != nil {
			return 0, err
		}
		upTo = max(upTo, old)
	}
	readers, err := tx.SyncsOfTopic(topicID)
	if err != nil {
		return 0, err
	}
	for _, y := range readers {
		mark, err := h.Position(y.ID)
		if err != nil {
			return 0, err
		}
		upTo = min(upTo, mark)
	}
	return tx.DropMessages(topicID, upTo)
}
