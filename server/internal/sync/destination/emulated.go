package destination

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// Emulator opens the store behind an emulated destination, or makes it. It is
// handed in by the program, since this package never imports a simulator. key
// is unique and safe as a file name; the same key opens the same records.
type Emulator func(key string, objects []catalogue.EmulatedObject) (*Emulated, error)

// Emulated is an open store. Endpoint is needed; any function may be nil.
type Emulated struct {
	// Endpoint answers the custom destination protocol (spec 4.2), in process.
	Endpoint http.Handler
	// Snapshot and Restore write and read everything that is stored.
	Snapshot func(io.Writer) error
	Restore  func(io.Reader) error
	// Records lists up to limit records of an object with an id above after, in
	// the order of their creation, as {"id", "fields"}, with their total number.
	Records func(object string, after int64, limit int) (records []json.RawMessage, total int, err error)
	// Close frees the store and keeps the records; Remove, called after Close,
	// deletes them.
	Close  func() error
	Remove func() error
}

// emulatedHost takes the place of the host of a real endpoint.
const emulatedHost = "emulated"

// emulatedKind is a type of the catalogue.
func emulatedKind(g *Gate, e *catalogue.Entry) *kind {
	return &kind{
		connector: e.Connector(g.options.Emulate != nil),
		emulated:  e,
		rules:     func(c *check) { entryRules(c, e) },
		details: func(credentials Credentials) map[string]any {
			details, account := e.Details(credentials)
			inAccount(details, account, e.Account.Name)
			return details
		},
		secrets: func(credentials Credentials) []string { return e.Secrets(credentials) },
		open: func(id int64, credentials Credentials) (Connection, error) {
			return g.openEmulated(id, e, credentials)
		},
	}
}

// closeStore closes a store; its records stay.
func closeStore(e *Emulated) error {
	if e.Close == nil {
		return nil
	}
	if err := e.Close(); err != nil {
		return fmt.Errorf("close emulated destination: %w", err)
	}
	return nil
}

// Store gives the open store of an emulated destination, for its records and
// for snapshots; an error for other types.
func (g *Gate) Store(id int64, typ string) (*Emulated, error) {
	k, err := g.kindOf(typ)
	if err != nil {
		return nil, err
	}
	if k.emulated == nil {
		return nil, fmt.Errorf("type %s is not emulated", typ)
	}
	return g.store(id, k.emulated)
}

// ErrRemoved is the error of a call that was under way when its emulated destination was
// deleted.
var ErrRemoved = errors.New("the destination was deleted")

// store opens a store once for all connections of a destination.
func (g *Gate) store(id int64, e *catalogue.Entry) (*Emulated, error) {
	g.opening.Lock() // one at a time: opening one key twice would be two stores
	defer g.opening.Unlock()
	g.mu.Lock()
	known, removed := g.emulated[id], g.removed[id]
	g.mu.Unlock()
	switch {
	case removed:
		return nil, ErrRemoved
	case known != nil:
		return known, nil
	}
	s, err := g.emulate(fmt.Sprintf("destination-%d", id), e)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.emulated[id] = s
	g.mu.Unlock()
	return s, nil
}

// emulate opens a store by its key.
func (g *Gate) emulate(key string, e *catalogue.Entry) (*Emulated, error) {
	if g.options.Emulate == nil {
		return nil, fmt.Errorf("type %s is emulated, and this service has no simulator for it", e.ServiceName)
	}
	s, err := g.options.Emulate(key, e.EmulatedObjects())
	if err != nil {
		return nil, fmt.Errorf("open emulated %s: %w", key, err)
	}
	return s, nil
}

// openEmulated looks the store up for every call: the destination may be
// forgotten, restored or reset while a connection is held.
func (g *Gate) openEmulated(id int64, e *catalogue.Entry, credentials Credentials) (Connection, error) {
	c := &emulatedConnection{entry: e, credentials: credentials}
	var err error
	if id == 0 { // its store goes with the connection
		c.own, err = g.emulate(fmt.Sprintf("unsaved-%d", g.fresh.Add(1)), e)
	} else {
		_, err = g.store(id, e)
	}
	if err != nil {
		return nil, err
	}
	transport := &inProcess{limit: g.options.MaxReply, handler: func() (http.Handler, error) {
		s, err := c.store() // again: the destination may have been forgotten meanwhile
		if err != nil {
			return nil, err
		}
		return s.Endpoint, nil
	}}
	c.caller = &caller{
		gate: g, limiter: g.Limiter(id), id: id, typ: e.ServiceName, endpoint: emulatedHost, host: emulatedHost,
		clean: newRedactor(e.Secrets(credentials)), refused: e.Refuses(credentials),
		client: rpc.Client{
			Large: enter,
			URL:   "http://" + emulatedHost + "/", Header: http.Header{"User-Agent": {g.options.UserAgent}},
			MaxReply: g.options.MaxReply, HTTP: &http.Client{Transport: observer{transport}, CheckRedirect: noRedirect},
		},
	}
	return c, nil
}

// emulatedConnection is an emulated destination that is open.
type emulatedConnection struct {
	*caller
	entry       *catalogue.Entry
	credentials Credentials
	own         *Emulated // of a destination without an id
}

// store gives the store that answers at this moment.
func (c *emulatedConnection) store() (*Emulated, error) {
	if c.own != nil {
		return c.own, nil
	}
	return c.gate.store(c.id, c.entry)
}

// Close takes the store of an unsaved destination along: no call could find it
// again.
func (c *emulatedConnection) Close() error {
	if c.own == nil {
		return nil
	}
	err := closeStore(c.own)
	if c.own.Remove != nil {
		err = errors.Join(err, c.own.Remove())
	}
	return err
}

// Test checks the credentials, refuses the word that the catalogue documents,
// and calls test_connection of the store.
func (c *emulatedConnection) Test(ctx context.Context) api.TestResults {
	p := &probe{}
	p.step(StepCredentials, func() string {
		if _, problems := c.gate.CheckConnection(c.entry.ServiceName, c.credentials, nil); len(problems) > 0 {
			return problems[0].String()
		}
		return ""
	})
	p.step(StepAuthentication, func() string {
		return c.refused
	})
	p.step(StepTestConnection, func() string {
		raw, x, failed := c.exchange(ctx, rpc.MethodTestConnection, nil)
		defer x.leave()
		if failed != nil {
			return failed.Message
		}
		return c.testResult(raw)
	})
	return p.results
}

// entryRules adds what single fields cannot say.
func entryRules(c *check, e *catalogue.Entry) {
	for _, p := range e.Lacking(c.merged) {
		if !c.failed(p.Field) {
			c.bad(p.Field, "%s", p.Message)
		}
	}
}
