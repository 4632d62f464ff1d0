package violation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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

// showsCredential remembers a credential of every URL, and shows it among the
// connection details.
func showsCredential(name string, show func(details map[string]any, given any)) func(*Service) seams {
	return func(*Service) seams {
		var lock sync.Mutex
		given := map[any]any{} // by URL
		return seams{
			ask: func(q *exchange.Request) {
				if q.Is(makesDestination) {
					editCredentials(q, func(credentials map[string]any) {
						lock.Lock()
						defer lock.Unlock()
						if address, ok := credentials["webhook_url"].(string); ok && credentials[name] != nil {
							given[address] = credentials[name]
						}
					})
				}
			},
			tell: func(a *exchange.Answer) {
				if !a.Is(fetchesDestination) {
					return
				}
				a.Data(func(d map[string]any) {
					lock.Lock()
					defer lock.Unlock()
					details, _ := d["connection_details"].(map[string]any)
					if address, ok := details["webhook_url"].(string); ok && given[address] != nil {
						show(details, given[address])
					}
				})
			},
		}
	}
}

// destinationSecrets break what becomes of credentials (spec 5.2).
func destinationSecrets() []violation {
	return []violation{
		violation{Violation{ID: "DST-008", Changes: "a change without credentials drops the token of the connection"}, dropsToken(func(connection map[string]any) bool {
			return connection["credentials"] == nil
		})}.also("DST-024", "the change that shows whether the token is still there has no credentials"),
		showsAt("DST-021", "the list of destinations shows no value of any custom header", listsDestinations, func(d map[string]any) {
			details, _ := d["connection_details"].(map[string]any)
			headers, _ := details["custom_headers"].(map[string]any)
			for _, one := range headers {
				one.(map[string]any)["value"] = nil
			}
		}),
		showsAt("DST-021.2", "a new destination shows its URL without path and query", makesDestination, func(d map[string]any) {
			details, _ := d["connection_details"].(map[string]any)
			if u, err := url.Parse(fmt.Sprint(details["webhook_url"])); err == nil {
				details["webhook_url"] = u.Scheme + "://" + u.Host
			}
		}),
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
		violation{Violation{ID: "DST-025", Changes: "a fetched destination shows its token"}, showsCredential("auth_token", func(details map[string]any, token any) {
			details["auth_token"] = token
		})}.also("DST-031", "the destination is one of the places that tell of a sync"),
		violation{Violation{ID: "DST-026", Changes: "a fetched destination shows the values of its secret headers"}, showsCredential("custom_headers", func(details map[string]any, headers any) {
			details["custom_headers"] = headers
		})}.also("DST-031", "the destination is one of the places that tell of a sync"),
		showsTest("DST-027", "the message of a failed step names the URL", func(d map[string]any) {
			details, _ := d["connection_details"].(map[string]any)
			testSteps(func(step map[string]any) {
				if failure, ok := step["error"].(map[string]any); ok {
					failure["message"] = fmt.Sprintf("Post %q: %v", details["webhook_url"], failure["message"])
				}
			})(d)
		}),
	}
}
