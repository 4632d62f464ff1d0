package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// topicBody is the body of POST and PATCH below /sources/{id}/topics (spec 4).
// Nil fields of a PATCH keep the stored value.
type topicBody struct {
	Name          *string         `json:"name"`
	Description   *string         `json:"description"`
	SampleMessage json.RawMessage `json:"sample_message"`
}

// apply sets what the body holds and names all that is wrong with it. A new
// sample message makes a new schema (spec 4.1.8).
func (b topicBody) apply(c *call.Call, t *store.Topic) error {
	var problems []api.Problem
	if b.Name != nil {
		t.Name = strings.TrimSpace(*b.Name)
	}
	problems = append(problems, organizations.CheckName("name", t.Name)...)
	if c.Has("description") { // null takes it away
		t.Description = b.Description
	}
	// null is the same as leaving it out: a topic always has a schema.
	if len(b.SampleMessage) > 0 && string(b.SampleMessage) != "null" {
		t.SampleMessage = b.SampleMessage
		// Derived from the whole new message: fields that it lacks are gone.
		schema, err := SchemaOf(b.SampleMessage)
		if err != nil {
			problems = append(problems, api.Problem{Field: "sample_message", Message: err.Error()})
		}
		t.Schema = schema
	}
	if len(t.SampleMessage) == 0 {
		problems = append(problems, api.Problem{Field: "sample_message", Message: "is required: one message as an object"})
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// SchemaOf maps each field of a message to the name of its type (spec 2.12). A
// message without fields is refused: nothing could ever be mapped from it.
func SchemaOf(message json.RawMessage) (map[string]string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(message, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("must be an object")
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("has no fields; send a message with every field that messages will have")
	}
	schema := make(map[string]string, len(fields))
	for name, value := range fields {
		if name == "" {
			return nil, fmt.Errorf("has a field without a name; columns need one")
		}
		schema[name] = rawjson.TypeOf(value)
	}
	return schema, nil
}

// topicOf shows a topic (spec 2.12).
func topicOf(t *store.Topic) api.Topic {
	return api.Topic{
		ID: t.ID, Name: t.Name, Description: t.Description, Schema: t.Schema,
		CreatedAt: api.Time{Time: t.CreatedAt}, UpdatedAt: api.Time{Time: t.UpdatedAt},
	}
}

// ownTopic finds the topic of the path below the source of the path.
var ownTopic = one(sourceOfPath, "topic_id", store.Topics.Read)

// createTopic adds a topic to a source that streams; other sources have tables.
func (h *Handlers) createTopic(c *call.Call, body topicBody) (*call.Reply, error) {
	t := &store.Topic{}
	if err := c.Update(func(tx *store.Tx) error {
		src, err := ownSource(c, tx)
		if err != nil {
			return err
		}
		// Before the body: nothing in it could be right here.
		if !h.Sources.Described(src.Type).Streaming {
			return problem.Refuse(http.StatusBadRequest, "a source of type %s has no topics; create a source of type topic_log", src.Type)
		}
		t.SourceID = src.ID
		if err := body.apply(c, t); err != nil {
			return err
		}
		return store.Topics.Create(tx, t)
	}); err != nil {
		return nil, err
	}
	return call.Created(topicOf(t))
}

// deleteTopic removes a topic with its messages, unless a sync reads it.
func deleteTopic(tx *store.Tx, sourceID, id int64) error {
	t, err := store.Topics.Read(tx, sourceID, id)
	if err != nil {
		return err
	}
	if err := tx.DeleteSetting(sources.RetentionSetting(t.ID)); err != nil {
		return err
	}
	return store.Topics.Delete(tx, sourceID, id)
}
