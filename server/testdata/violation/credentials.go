package violation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// addresses are the URLs of connections by the paths of their destinations.
type addresses struct {
	lock   sync.Mutex
	byPath map[string]string
	marked map[string]bool // URLs
}

// note reads them from the answer to a creation.
func (d *addresses) note(a *exchange.Answer) {
	if !a.Is(makesDestination) {
		return
	}
	a.Data(func(data map[string]any) {
		details, _ := data["connection_details"].(map[string]any)
		address, _ := details["webhook_url"].(string)
		d.lock.Lock()
		defer d.lock.Unlock()
		if d.byPath == nil {
			d.byPath, d.marked = map[string]string{}, map[string]bool{}
		}
		d.byPath[a.HTTP.URL.Path+"/"+fmt.Sprint(data["id"])] = address
	})
}

// mark remembers the connection of a path.
func (d *addresses) mark(path string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if address := d.byPath[path]; address != "" {
		d.marked[address] = true
	}
}

func (d *addresses) has(address string) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.marked[address]
}

// dropsToken calls an endpoint without its token after a change that drops says
// something about; the change is handed on without what it said.
func dropsToken(drops func(connection map[string]any) bool) func(*Service) seams {
	return func(*Service) seams {
		var known addresses
		return seams{
			ask: func(q *exchange.Request) {
				if !q.Is(savesDestination) {
					return
				}
				q.Edit(func(body map[string]any) {
					if connection, ok := body["service_connection"].(map[string]any); ok && drops(connection) {
						known.mark(q.HTTP.URL.Path)
					}
				})
			},
			tell: known.note,
			carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
				if known.has(o.HTTP.URL.String()) {
					o.HTTP.Header.Del("Authorization")
				}
				return next(o)
			},
		}
	}
}

// withoutToken tells a change that sets the token to this, and takes it out.
func withoutToken(value any) func(map[string]any) bool {
	return func(connection map[string]any) bool {
		credentials, _ := connection["credentials"].(map[string]any)
		token, given := credentials["auth_token"]
		if !given || token != value {
			return false
		}
		delete(credentials, "auth_token")
		return true
	}
}

// destinationSecrets break what becomes of credentials (spec 5.2).
func destinationSecrets() []violation {
	return []violation{
		violation{Violation{ID: "DST-008", Changes: "a change without credentials drops the token of the connection"}, dropsToken(func(connection map[string]any) bool {
			return connection["credentials"] == nil
		})}.also("DST-024", "the change that shows whether the token is still there has no credentials"),
		breaks("DST-022", "a change of api_version is refused", seams{ask: func(q *exchange.Request) {
			if q.Is(savesDestination) {
				editCredentials(q, func(credentials map[string]any) {
					if credentials["api_version"] != nil {
						credentials["api_version"] = json.Number("0")
					}
				})
			}
		}}),
		showsAt("DST-022.2", "the answer to a change shows api_version as a text", savesDestination, func(d map[string]any) {
			if details, ok := d["connection_details"].(map[string]any); ok {
				details["api_version"] = "v1"
			}
		}),
		breaks("DST-023", "a change of the token is taken and has no effect", seams{ask: func(q *exchange.Request) {
			if q.Is(savesDestination) {
				editCredentials(q, func(credentials map[string]any) {
					if token, ok := credentials["auth_token"].(string); ok && token != "" {
						delete(credentials, "auth_token")
					}
				})
			}
		}}),
		{Violation{ID: "DST-024", Changes: "auth_token null takes the token away"}, dropsToken(withoutToken(nil))},
		{Violation{ID: "DST-024.2", Changes: "an empty auth_token takes the token away"}, dropsToken(withoutToken(""))},
	}
}
