package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// topicRoutes are what producers and operators of a log have.
func (h *Handlers) topicRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/topics/{id}", "shows what a topic holds, its retention, and how far each sync has read", h.topic),
		call.Route("PATCH", "/topics/{id}", `{"retention":{"age":"168h","messages":1000}} says what is kept; what a sync has still to send always is`, h.setRetention),
		call.Route("POST", "/topics/{id}/messages", "appends messages: a list of objects, or one object on each line; live syncs run", h.appendMessages),
		call.Route("GET", "/topics/{id}/messages", "?after=&limit= lists messages, oldest first; next goes on", h.listMessages),
	}
}

// maxMessages bounds one call that appends.
const maxMessages = 100_000

// messagesIn reads messages from a list or from lines.
func messagesIn(text []byte) ([]json.RawMessage, error) {
	// The first character distinguishes the forms: a message is an object.
	text = bytes.TrimSpace(text)
	var list []json.RawMessage
	if len(text) > 0 && text[0] == '[' {
		if err := call.DecodeBody(text, &list); err != nil {
			return nil, err
		}
	} else {
		decoder := json.NewDecoder(bytes.NewReader(text))
		for {
			var message json.RawMessage
			err := decoder.Decode(&message)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, problem.Refuse(http.StatusBadRequest, "message %d cannot be read: %v", len(list)+1, err)
			}
			list = append(list, message)
		}
	}
	if len(list) == 0 || len(list) > maxMessages {
		return nil, problem.Refuse(http.StatusBadRequest, "the body must hold 1 to %d messages", maxMessages)
	}
	var problems []api.Problem
	for i, message := range list {
		place := fmt.Sprintf("[%d]", i)
		switch message = bytes.TrimSpace(message); {
		case message[0] != '{':
			problems = append(problems, api.Problem{Field: place, Message: "must be an object"})
		case !utf8.Valid(message):
			problems = append(problems, api.Problem{Field: place, Message: "must be UTF-8"})
		}
	}
	if len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	return list, nil
}

// appendMessages does for a topic what a producer would (spec 2.12), and starts
// the runs of live syncs.
func (h *Handlers) appendMessages(c *call.Control) (any, error) {
	text, err := c.Text(call.MaxControlBody)
	if err != nil {
		return nil, err
	}
	list, err := messagesIn(text)
	if err != nil {
		return nil, err
	}
	// The numbers of the messages, by which a reader goes on.
	made := struct {
		First   int64    `json:"first"`
		Last    int64    `json:"last"`
		Misfits []misfit `json:"misfits,omitempty"`
	}{}
	var runs []*store.SyncRun
	err = h.Shared.Store.Update(c.R.Context(), func(tx *store.Tx) error {
		topic, err := call.Named(c, tx, store.Topics, "topic")
		if err != nil {
			return err
		}
		if made.First, made.Last, err = tx.AppendMessages(topic.ID, list); err != nil {
			return err
		}
		made.Misfits = misfits(topic.Schema, made.First, list)
		if _, err = h.expire(tx, topic.ID); err != nil {
			return err
		}
		runs, err = h.Live.Posted(tx, topic.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		h.Runs.Launch(run)
	}
	return call.Status(http.StatusCreated, made), nil
}

// listMessages shows what a topic holds, which the API never does.
func (h *Handlers) listMessages(c *call.Control) (any, error) {
	query, err := c.Query("after", "limit")
	if err != nil {
		return nil, err
	}
	after, limit, err := pageAfter(query, 10_000)
	if err != nil {
		return nil, err
	}
	type shown struct {
		Number int64           `json:"number"`
		At     api.Time        `json:"at"`
		Body   json.RawMessage `json:"message"`
	}
	page := struct {
		Messages []shown `json:"messages"`
		Total    int64   `json:"total"` // of those kept
		Next     *int64  `json:"next"`  // the after of the next page; null on the last one
	}{Messages: []shown{}}
	err = h.Shared.Store.View(c.R.Context(), func(tx *store.Tx) error {
		topic, err := call.Named(c, tx, store.Topics, "topic")
		if err != nil {
			return err
		}
		if page.Total, err = tx.CountMessages(topic.ID); err != nil {
			return err
		}
		rows, err := tx.Messages(topic.ID, after, limit+1)
		if int64(len(rows)) > limit {
			rows = rows[:limit]
			page.Next = &rows[limit-1].Number
		}
		for _, m := range rows {
			page.Messages = append(page.Messages, shown{m.Number, api.Time{Time: m.At}, m.Body})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// topicState is a topic as its operator sees it.
type topicState struct {
	ID        int64          `json:"id"`
	Name      string         `json:"name"`
	Messages  int64          `json:"messages"` // kept
	Dropped   int64          `json:"dropped"`  // by the retention
	Last      int64          `json:"last"`     // the number of the newest message
	Retention topicRetention `json:"retention"`
	Readers   []topicReader  `json:"readers"`
}

// topicReader is how far a sync is: messages up to Position are settled.
type topicReader struct {
	SyncID   int64 `json:"sync_id"`
	Live     bool  `json:"live"`
	Paused   bool  `json:"paused"`
	Position int64 `json:"position"`
	Behind   int64 `json:"behind"`
}

// stateOf gathers the state of a topic.
func (h *Handlers) stateOf(tx *store.Tx, topic *store.Topic) (state topicState, err error) {
	state = topicState{ID: topic.ID, Name: topic.Name, Readers: []topicReader{}}
	if state.Messages, err = tx.CountMessages(topic.ID); err != nil {
		return state, err
	}
	if state.Last, err = tx.LastMessage(topic.ID); err != nil {
		return state, err
	}
	state.Dropped = state.Last - state.Messages
	if state.Retention, err = retentionOf(tx, topic.ID); err != nil {
		return state, err
	}
	readers, err := tx.SyncsOfTopic(topic.ID)
	for _, y := range readers {
		r := topicReader{SyncID: y.ID, Live: y.Config.Mode != nil && y.Config.Mode.Type == api.ModeLive, Paused: y.Config.Paused}
		if r.Position, err = h.Position(y.ID); err != nil {
			return state, err
		}
		r.Behind = state.Last - r.Position
		state.Readers = append(state.Readers, r)
	}
	return state, err
}

// topic shows the counters of a topic.
func (h *Handlers) topic(c *call.Control) (any, error) {
	return store.Read(c.R.Context(), h.Shared.Store, func(tx *store.Tx) (none topicState, err error) {
		topic, err := call.Named(c, tx, store.Topics, "topic")
		if err != nil {
			return none, err
		}
		return h.stateOf(tx, topic)
	})
}

// setRetention sets the retention, and drops the rest at once and with
// each message that comes.
func (h *Handlers) setRetention(c *call.Control) (any, error) {
	var body struct {
		Retention *topicRetention `json:"retention"`
	}
	if err := c.Body(&body); err != nil {
		return nil, err
	}
	if body.Retention == nil {
		return nil, problem.InvalidField("retention", "is required: age as a duration such as 168h, messages as a number, or {} to keep everything")
	}
	if age := body.Retention.Age; age != "" {
		if d, err := time.ParseDuration(age); err != nil || d <= 0 {
			return nil, problem.InvalidField("retention.age", "must be a duration above 0, such as 168h")
		}
	}
	if body.Retention.Messages < 0 {
		return nil, problem.InvalidField("retention.messages", "must be 0 (no bound) or more")
	}
	return store.Change(c.R.Context(), h.Shared.Store, func(tx *store.Tx) (none topicState, err error) {
		topic, err := call.Named(c, tx, store.Topics, "topic")
		if err != nil {
			return none, err
		}
		text, err := json.Marshal(body.Retention)
		if err != nil {
			return none, err
		}
		if err := tx.SetSetting(sources.RetentionSetting(topic.ID), string(text)); err != nil {
			return none, err
		}
		if _, err := h.expire(tx, topic.ID); err != nil {
			return none, err
		}
		return h.stateOf(tx, topic)
	})
}
