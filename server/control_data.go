package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/source"
	"github.com/destkit/destkit/server/store"
)

// dataRoutes stand at both ends of a sync: they make source data, and show what
// a destination has got.
func (s *Server) dataRoutes() []controlRoute {
	return []controlRoute{
		{"POST", "/topics/{id}/messages", "appends messages: a list of objects, or one object on each line", s.controlAppend},
		{"GET", "/topics/{id}/messages", "?after=&limit= lists messages, oldest first", s.controlMessages},
		{"POST", "/sources/{id}/execute", "runs sql on an emulated warehouse, all of it or nothing", s.controlExecute},
		{"GET", "/destinations/{id}/records", "?object=&after=&limit= lists what an emulated destination has stored", s.controlRecords},
	}
}

// maxMessages bounds one call that appends.
const maxMessages = 100_000

// messagesIn reads messages from a list or from lines.
func messagesIn(text []byte) ([]json.RawMessage, error) {
	// Both forms are told apart by their first character: a message is an object.
	text = bytes.TrimSpace(text)
	var list []json.RawMessage
	if len(text) > 0 && text[0] == '[' {
		if err := decodeStrictly(text, &list); err != nil {
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
				return nil, refuse(http.StatusBadRequest, "message %d cannot be read: %v", len(list)+1, err)
			}
			list = append(list, message)
		}
	}
	if len(list) == 0 || len(list) > maxMessages {
		return nil, refuse(http.StatusBadRequest, "the body must hold 1 to %d messages", maxMessages)
	}
	var problems []api.Problem
	for i, message := range list {
		if message = bytes.TrimSpace(message); message[0] != '{' {
			problems = append(problems, api.Problem{Field: fmt.Sprintf("[%d]", i), Message: "must be an object"})
		}
	}
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	return list, nil
}

// among looks through the sources and destinations of every organization: the
// store finds them by their workspace only, so that no operation of the API can
// reach those of another.
func among[T any](tx *store.Tx, find func(*outside) (T, error)) (T, error) {
	return everywhere(tx, func(organizationID int64) (found T, err error) {
		var all outside
		if err := all.gather(tx, organizationID); err != nil {
			return found, err
		}
		return find(&all)
	})
}

// anyTopic finds a topic by its id alone.
func anyTopic(tx *store.Tx, id int64) (*store.Topic, error) {
	return among(tx, func(all *outside) (*store.Topic, error) {
		for _, src := range all.sources {
			if topic, err := tx.Topic(src.ID, id); !errors.Is(err, store.ErrNotFound) {
				return topic, err
			}
		}
		return nil, store.ErrNotFound
	})
}

// pageAfter reads ?after=&limit=, by which long lists are read piece by piece.
func pageAfter(query url.Values, most int64) (after, limit int64, err error) {
	if after, err = integer(query, "after", 0, 0, 1<<62); err == nil {
		limit, err = integer(query, "limit", 1000, 1, most)
	}
	return after, limit, err
}

// controlAppend does for a topic what a producer would (spec 2.12).
func (s *Server) controlAppend(c *controlCall) (any, error) {
	text, err := c.text(maxControlBody)
	if err != nil {
		return nil, err
	}
	list, err := messagesIn(text)
	if err != nil {
		return nil, err
	}
	// The numbers of the messages, by which a reader goes on.
	var first, last int64
	err = s.store.Update(c.r.Context(), func(tx *store.Tx) error {
		topic, err := anyTopic(tx, c.id())
		if errors.Is(err, store.ErrNotFound) {
			return gone("topic", c.id())
		}
		if err == nil {
			first, last, err = tx.AppendMessages(topic.ID, list)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return controlReply{http.StatusCreated, map[string]int64{"first": first, "last": last}}, nil
}

// controlMessages shows what a topic holds, which the API never does.
func (s *Server) controlMessages(c *controlCall) (any, error) {
	query, err := c.query("after", "limit")
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
	list := []shown{}
	err = s.store.View(c.r.Context(), func(tx *store.Tx) error {
		topic, err := anyTopic(tx, c.id())
		if errors.Is(err, store.ErrNotFound) {
			return gone("topic", c.id())
		}
		if err != nil {
			return err
		}
		rows, err := tx.Messages(topic.ID, after, limit)
		for _, m := range rows {
			list = append(list, shown{m.Number, api.Time{Time: m.At}, m.Body})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"messages": list}, nil
}

// controlExecute changes what an emulated warehouse holds, as its owner would.
func (s *Server) controlExecute(c *controlCall) (any, error) {
	var body struct {
		SQL string `json:"sql"`
	}
	if err := c.body(&body); err != nil {
		return nil, err
	}
	if strings.TrimSpace(body.SQL) == "" {
		return nil, invalidField("sql", "is required")
	}
	if err := s.execute(c.r.Context(), c.id(), body.SQL); err != nil {
		return nil, err
	}
	return done, nil
}

// execute runs statements on an emulated warehouse.
func (s *Server) execute(ctx context.Context, id int64, sql string) error {
	var access sourceAccess
	err := s.store.View(ctx, func(tx *store.Tx) error {
		src, err := among(tx, func(all *outside) (*store.Source, error) {
			for _, src := range all.sources {
				if src.ID == id {
					return src, nil
				}
			}
			return nil, store.ErrNotFound
		})
		if errors.Is(err, store.ErrNotFound) {
			return gone("source", id)
		}
		if err == nil {
			access, err = s.sourceAccess(tx, src)
		}
		return err
	})
	if err != nil {
		return err
	}
	// A real source belongs to somebody, and is only ever read.
	if kind, _ := source.Type(access.typ); !kind.Emulated {
		return refuse(http.StatusBadRequest, "source %d is of type %s; statements run on emulated warehouses only", id, access.typ)
	}
	// A statement that never ends must not hold the call, nor a restore that waits
	// for it.
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	// The credentials of the documented failing test fail here as well.
	src, err := access.open(ctx)
	if err != nil {
		return refuse(http.StatusBadRequest, "the source cannot be opened: %s", access.clean(err.Error()))
	}
	defer src.Close()
	if err := source.Execute(ctx, src, strings.TrimSpace(sql)); err != nil {
		return invalidField("sql", "%s", access.clean(err.Error()))
	}
	return nil
}

// controlRecords shows what arrived, so that a test can look at the other end.
func (s *Server) controlRecords(c *controlCall) (any, error) {
	query, err := c.query("object", "after", "limit")
	if err != nil {
		return nil, err
	}
	after, limit, err := pageAfter(query, 100_000)
	if err != nil {
		return nil, err
	}
	// Objects are tables: there is no list over all of them.
	if query.Get("object") == "" {
		return nil, invalidField("object", "is required")
	}
	d, err := s.anyDestination(c.r.Context(), c.id())
	if err != nil {
		return nil, err
	}
	// Custom destinations keep their records themselves; nobody here has them.
	kept, err := s.gate.Store(d.ID, d.Type)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "destination %d keeps no records here: %v", d.ID, err)
	}
	if kept.Records == nil {
		return nil, refuse(http.StatusBadRequest, "the store of destination %d does not show its records", d.ID)
	}
	records, total, err := kept.Records(query.Get("object"), after, int(limit))
	if err != nil {
		return nil, invalidField("object", "%v", err)
	}
	// A list on the wire, also when it is empty.
	if records == nil {
		records = []json.RawMessage{}
	}
	return map[string]any{"records": records, "total": total}, nil
}

// anyDestination finds a destination by its id alone.
func (s *Server) anyDestination(ctx context.Context, id int64) (found *store.Destination, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		found, err = among(tx, func(all *outside) (*store.Destination, error) {
			for _, d := range all.destinations {
				if d.ID == id {
					return d, nil
				}
			}
			return nil, store.ErrNotFound
		})
		if errors.Is(err, store.ErrNotFound) {
			return gone("destination", id)
		}
		return err
	})
	return found, err
}
