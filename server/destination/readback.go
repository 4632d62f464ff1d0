package destination

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// HookClient gives the client for a read-back hook: its name is resolved, its
// certificate verified and its address dialled as those of destinations, and
// plain http is for loopback unless Options.AllowPlainHTTP. problem says why the
// address must not be called.
func (g *Gate) HookClient(address string) (client *http.Client, problem string) {
	if _, problem = checkURL(address, g.options.AllowPlainHTTP); problem != "" {
		return nil, problem
	}
	p, _ := g.pool(postPool)
	return &http.Client{Transport: p.transport, CheckRedirect: noRedirect}, ""
}

// EachStored hands all records of an object to fn, as the store of an emulated
// destination has them: no call of the protocol is made. Errors of fn come back
// as they are.
func (g *Gate) EachStored(id int64, typ, object string, fn func(fields map[string]json.RawMessage) error) error {
	store, err := g.Store(id, typ)
	if err != nil {
		return err
	}
	if store.Records == nil {
		return fmt.Errorf("list records of %q: the store does not show them", clip(object, 64))
	}
	for after := int64(0); ; {
		page, _, err := store.Records(object, after, swapPage)
		if err != nil {
			return fmt.Errorf("list records of %q: %w", clip(object, 64), err)
		}
		for _, text := range page {
			var record struct {
				ID     int64                      `json:"id"`
				Fields map[string]json.RawMessage `json:"fields"`
			}
			if err := json.Unmarshal(text, &record); err != nil {
				return fmt.Errorf("read record of %q: %w", clip(object, 64), err)
			}
			after = max(after, record.ID)
			if err := fn(record.Fields); err != nil {
				return err
			}
		}
		if len(page) < swapPage {
			return nil
		}
	}
}
