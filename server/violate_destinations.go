package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// Calls of /destinations as violations name them.
const (
	makesDestination   = "POST /destinations"
	fetchesDestination = "GET /destinations/*"
	listsDestinations  = "GET /destinations"
	savesDestination   = "PATCH /destinations/*"
)

// answersAt is a violation that changes one kind of answers.
func answersAt(id, changes, call string, change func(*apiAnswer)) violation {
	return breaks(id, changes, seams{tell: func(a *apiAnswer) {
		if a.is(call) {
			change(a)
		}
	}})
}

// showsAt is a violation that changes what such answers show, once for each
// thing of a list.
func showsAt(id, changes, call string, change func(map[string]any)) violation {
	return answersAt(id, changes, call, func(a *apiAnswer) { a.data(change) })
}

// also names the other checks that a violation trips.
func (v violation) also(id, why string) violation {
	v.Also = append(slices.Clone(v.Also), Also{id, why})
	return v
}

// destinationsViolations break the rules of DST: connections to destinations (spec 2.2).
func destinationsViolations() []violation {
	return slices.Concat(destinationViews(), destinationTests(), destinationSecrets())
}

func destinationViews() []violation {
	status := func(to int) func(*apiAnswer) {
		return func(a *apiAnswer) {
			if a.status < 300 {
				a.status = to
			}
		}
	}
	word := func(to string) func(*apiAnswer) {
		return func(a *apiAnswer) {
			if a.status < 300 {
				a.edit(func(body map[string]any) { body["status"] = to })
			}
		}
	}
	return []violation{
		showsAt("DST-001", "the list of destinations shows created_at in milliseconds", listsDestinations, func(d map[string]any) {
			d["created_at"] = json.Number("1767603600000")
		}).also("DST-007", "a number is not the created_at that was shown before"),
		showsAt("DST-001.2", "a fetched destination has no objects", fetchesDestination, func(d map[string]any) { delete(d, "objects") }),
		showsAt("DST-001.3", "the answer to a change writes last_tested_at in local time without zone", savesDestination, func(d map[string]any) {
			if at, ok := d["last_tested_at"].(string); ok {
				d["last_tested_at"] = strings.Replace(strings.TrimSuffix(at, "Z"), "T", " ", 1)
			}
		}).also("DST-020", "a time without a zone is no later moment"),
		showsAt("DST-001.4", "a new destination shows last_test_succeeded as a word", makesDestination, func(d map[string]any) {
			if passed, ok := d["last_test_succeeded"].(bool); ok {
				d["last_test_succeeded"] = map[bool]string{true: "yes", false: "no"}[passed]
			}
		}).also("DST-013", "the word is not true").also("DST-014", "the word is not false").also("DST-016", "the word is not false"),
		answersAt("DST-002", "making a destination answers 200", makesDestination, status(http.StatusOK)),
		answersAt("DST-002.2", "making a destination answers success", makesDestination, word("success")),
		showsAt("DST-003", "the list of destinations shows names in lower case", listsDestinations, func(d map[string]any) {
			if name, ok := d["name"].(string); ok {
				d["name"] = strings.ToLower(name)
			}
		}).also("DST-007", "the list is one of the places where a new name is looked for"),
		answersAt("DST-004", "a fetched destination has the status created", fetchesDestination, word("created")),
		answersAt("DST-004.2", "a destination is fetched with 203", fetchesDestination, status(http.StatusNonAuthoritativeInfo)),
		answersAt("DST-005", "the list of destinations shows every entry twice", listsDestinations, func(a *apiAnswer) {
			a.edit(func(body map[string]any) {
				data, _ := body["data"].([]any)
				body["data"] = slices.Concat(data, data)
			})
		}),
		answersAt("DST-005.2", "the list of destinations leaves out what is of the type custom_api", listsDestinations, func(a *apiAnswer) {
			a.edit(func(body map[string]any) {
				data, _ := body["data"].([]any)
				body["data"] = slices.DeleteFunc(data, func(one any) bool {
					d, _ := one.(map[string]any)
					return d["type"] == api.TypeCustomAPI
				})
			})
		}),
		answersAt("DST-006", "changing a destination answers success", savesDestination, word("success")),
		{Violation{ID: "DST-007", Changes: "a new name is answered and not stored"}, forgetsName},
		answersAt("DST-009", "an unknown destination is answered with 200 and no data", fetchesDestination, func(a *apiAnswer) {
			if a.status == http.StatusNotFound {
				a.status, a.body = http.StatusOK, []byte(`{"status":"not_found","data":null}`)
			}
		}),
		answersAt("DST-009.2", "changing an unknown destination answers 400", savesDestination, func(a *apiAnswer) {
			if a.status == http.StatusNotFound {
				a.status = http.StatusBadRequest
			}
		}),
		answersAt("DST-010", "an unknown destination has the status error", fetchesDestination, func(a *apiAnswer) {
			if a.status == http.StatusNotFound {
				a.edit(func(body map[string]any) { body["status"] = "error" })
			}
		}),
		showsAt("DST-011", "the answer to a change shows is_file_system_destination as null", savesDestination, func(d map[string]any) {
			d["is_file_system_destination"] = nil
		}),
		showsAt("DST-011.2", "the answer to a change leaves is_file_system_destination out", savesDestination, func(d map[string]any) {
			delete(d, "is_file_system_destination")
		}),
		answersAt("DST-029", "deleting a destination answers 204", "DELETE /destinations/*", func(a *apiAnswer) {
			if a.status == http.StatusOK {
				a.status, a.body = http.StatusNoContent, nil
			}
		}),
		{Violation{ID: "DST-029.2", Changes: "a deleted destination stays in the list"}, listsDeleted},
		answersAt("DST-028", "a connection of an unknown type is answered with 422", makesDestination, func(a *apiAnswer) {
			if a.status == http.StatusBadRequest && strings.Contains(string(a.body), "service_connection.type") {
				a.status = http.StatusUnprocessableEntity
			}
		}),
		breaks("DST-028.2", "a connection without a URL is made for an address that nobody has", seams{ask: func(q *apiRequest) {
			if q.is(makesDestination) {
				editCredentials(q, func(credentials map[string]any) {
					if credentials["webhook_url"] == nil {
						credentials["webhook_url"] = "http://127.0.0.1:1/"
					}
				})
			}
		}}),
	}
}

// listsDeleted shows what was deleted as it was when it was made.
func listsDeleted(*Server) seams {
	var lock sync.Mutex
	made, gone := map[string]any{}, []any{} // by path
	return seams{tell: func(a *apiAnswer) {
		lock.Lock()
		defer lock.Unlock()
		switch {
		case a.is(makesDestination):
			a.data(func(d map[string]any) { made[a.r.URL.Path+"/"+fmt.Sprint(d["id"])] = d })
		case a.is("DELETE /destinations/*") && made[a.r.URL.Path] != nil:
			gone = append(gone, made[a.r.URL.Path])
		case a.is(listsDestinations):
			a.edit(func(body map[string]any) {
				if list, ok := body["data"].([]any); ok {
					body["data"] = append(list, gone...)
				}
			})
		}
	}}
}

// editCredentials changes the credentials of a connection that is made or saved.
func editCredentials(q *apiRequest, change func(map[string]any)) {
	q.edit(func(body map[string]any) {
		connection, _ := body["service_connection"].(map[string]any)
		if credentials, ok := connection["credentials"].(map[string]any); ok {
			change(credentials)
		}
	})
}

// forgetsName takes the name out of every change and shows it all the same.
func forgetsName(*Server) seams {
	var lock sync.Mutex
	asked := map[string]any{} // by path
	return seams{
		ask: func(q *apiRequest) {
			if !q.is(savesDestination) {
				return
			}
			q.edit(func(body map[string]any) {
				connection, _ := body["service_connection"].(map[string]any)
				lock.Lock()
				asked[q.r.URL.Path] = connection["name"]
				lock.Unlock()
				delete(connection, "name")
			})
		},
		tell: func(a *apiAnswer) {
			if a.is(savesDestination) {
				lock.Lock()
				defer lock.Unlock()
				if name := asked[a.r.URL.Path]; name != nil {
					a.data(func(d map[string]any) { d["name"] = name })
				}
			}
		},
	}
}

// testSteps changes every step of a shown connection test.
func testSteps(change func(step map[string]any)) func(map[string]any) {
	return func(d map[string]any) {
		results, _ := d["last_test_results"].(map[string]any)
		steps, _ := results["steps"].([]any)
		for _, one := range steps {
			if step, ok := one.(map[string]any); ok {
				change(step)
			}
		}
	}
}

// showsTest changes what is shown of tests, wherever destinations are shown.
func showsTest(id, changes string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{tell: func(a *apiAnswer) {
		if a.is(makesDestination) || a.is(fetchesDestination) || a.is(listsDestinations) || a.is(savesDestination) {
			a.data(change)
		}
	}})
}

// answersTest changes what endpoints answer to test_connection.
func answersTest(id, changes string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{carry: func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
		resp, err := next(o)
		if o.method != rpc.MethodTestConnection {
			return resp, err
		}
		return rewrite(resp, err, change)
	}})
}

func destinationTests() []violation {
	return []violation{
		showsAt("DST-012", "the list of destinations shows steps of tests as texts", listsDestinations, func(d map[string]any) {
			if results, ok := d["last_test_results"].(map[string]any); ok {
				results["steps"] = []any{"test_connection failed: The API Key is invalid"}
			}
		}).also("DST-015", "a text has no error.message").also("DST-016", "a text has no error.message"),
		showsTest("DST-012.2", "a step that passed has the error false", testSteps(func(step map[string]any) {
			if step["error"] == nil {
				step["error"] = false
			}
		})).also("DST-019", "a passed step is to have no error"),
		showsAt("DST-013", "a fetched destination never has a test that succeeded", fetchesDestination, func(d map[string]any) {
			d["last_test_succeeded"] = false
		}).also("DST-019", "a fetch shows whether the latest test succeeded"),
		answersTest("DST-014", "success: false of test_connection is taken for a success", func(body map[string]any) {
			if result, ok := body["result"].(map[string]any); ok && result["success"] == false {
				result["success"] = true
			}
		}).also("DST-015", "what succeeds has no message"),
		showsTest("DST-015", "failed steps say only that they failed", testSteps(func(step map[string]any) {
			if step["error"] != nil {
				step["error"] = map[string]any{"message": "failed"}
			}
		})).also("DST-016", "the message of an error is gone too"),
		showsAt("DST-015.2", "a fetched destination shows the message of a failed step beside error", fetchesDestination, testSteps(func(step map[string]any) {
			if failure, ok := step["error"].(map[string]any); ok {
				step["message"], step["error"] = failure["message"], nil
			}
		})).also("DST-016", "the message of an error is moved too"),
		answersTest("DST-016", "the message of an error object is lost", func(body map[string]any) {
			if failure, ok := body["error"].(map[string]any); ok {
				failure["message"] = "unknown error"
			}
		}),
		breaks("DST-017", "a test that is answered with an error of HTTP counts as passed", seams{
			carry: func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
				resp, err := next(o)
				if o.method == rpc.MethodTestConnection && err == nil && resp.StatusCode >= 500 {
					return healthyTest(o, resp)
				}
				return resp, err
			},
		}),
		showsTest("DST-017.2", "a test that got no answer has no steps", func(d map[string]any) {
			results, _ := d["last_test_results"].(map[string]any)
			if steps, _ := results["steps"].([]any); len(steps) > 3 && d["last_test_succeeded"] == false {
				if step, ok := steps[3].(map[string]any); ok && step["status"] == "skipped" {
					results["steps"] = []any{}
				}
			}
		}),
		violation{Violation{ID: "DST-018", Changes: "an endpoint is tested once; later tests have the same result"}, testsOnce}.
			also("DST-008", "the test after the change is looked for").
			also("DST-017", "later failures are not seen").
			also("DST-019", "the first result stays"),
		showsAt("DST-019", "a fetched destination whose test succeeded shows the steps of a failure", fetchesDestination, func(d map[string]any) {
			if d["last_test_succeeded"] == true {
				testSteps(func(step map[string]any) { step["error"] = map[string]any{"message": "the endpoint did not answer"} })(d)
			}
		}),
		showsTest("DST-020", "last_tested_at is always the time of the creation", func(d map[string]any) { d["last_tested_at"] = d["created_at"] }),
	}
}

// healthyTest answers in place of the endpoint.
func healthyTest(o *sentCall, resp *http.Response) (*http.Response, error) {
	var call struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(o.body, &call)
	_ = resp.Body.Close()
	body := `{"jsonrpc":"2.0","id":` + string(call.ID) + `,"result":{"success":true}}`
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
}

// testsOnce keeps how the first test of an endpoint was answered, and never
// asks again.
func testsOnce(*Server) seams {
	type kept struct {
		resp *http.Response
		body []byte
		err  error
	}
	var lock sync.Mutex
	first := map[string]kept{} // by URL
	return seams{carry: func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
		if o.method != rpc.MethodTestConnection {
			return next(o)
		}
		lock.Lock()
		defer lock.Unlock()
		k, tested := first[o.r.URL.String()]
		if !tested {
			k.resp, k.err = next(o)
			if k.err == nil {
				k.body, k.err = io.ReadAll(k.resp.Body)
				_ = k.resp.Body.Close()
			}
			first[o.r.URL.String()] = k
		}
		if k.err != nil {
			return nil, k.err
		}
		again := *k.resp
		again.Header, again.Body = k.resp.Header.Clone(), io.NopCloser(bytes.NewReader(k.body))
		var call struct{ ID any }
		_ = json.Unmarshal(o.body, &call)
		return rewrite(&again, nil, func(body map[string]any) { body["id"] = call.ID })
	}}
}

// addresses are the URLs of connections by the paths of their destinations.
type addresses struct {
	lock   sync.Mutex
	byPath map[string]string
	marked map[string]bool // URLs
}

// note reads them from the answer to a creation.
func (d *addresses) note(a *apiAnswer) {
	if !a.is(makesDestination) {
		return
	}
	a.data(func(data map[string]any) {
		details, _ := data["connection_details"].(map[string]any)
		address, _ := details["webhook_url"].(string)
		d.lock.Lock()
		defer d.lock.Unlock()
		if d.byPath == nil {
			d.byPath, d.marked = map[string]string{}, map[string]bool{}
		}
		d.byPath[a.r.URL.Path+"/"+fmt.Sprint(data["id"])] = address
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
func dropsToken(drops func(connection map[string]any) bool) func(*Server) seams {
	return func(*Server) seams {
		var known addresses
		return seams{
			ask: func(q *apiRequest) {
				if !q.is(savesDestination) {
					return
				}
				q.edit(func(body map[string]any) {
					if connection, ok := body["service_connection"].(map[string]any); ok && drops(connection) {
						known.mark(q.r.URL.Path)
					}
				})
			},
			tell: known.note,
			carry: func(o *sentCall, next func(*sentCall) (*http.Response, error)) (*http.Response, error) {
				if known.has(o.r.URL.String()) {
					o.r.Header.Del("Authorization")
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
func showsCredential(name string, show func(details map[string]any, given any)) func(*Server) seams {
	return func(*Server) seams {
		var lock sync.Mutex
		given := map[any]any{} // by URL
		return seams{
			ask: func(q *apiRequest) {
				if q.is(makesDestination) {
					editCredentials(q, func(credentials map[string]any) {
						lock.Lock()
						defer lock.Unlock()
						if address, ok := credentials["webhook_url"].(string); ok && credentials[name] != nil {
							given[address] = credentials[name]
						}
					})
				}
			},
			tell: func(a *apiAnswer) {
				if !a.is(fetchesDestination) {
					return
				}
				a.data(func(d map[string]any) {
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
		breaks("DST-022", "a change of api_version is refused", seams{ask: func(q *apiRequest) {
			if q.is(savesDestination) {
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
		breaks("DST-023", "a change of the token is taken and has no effect", seams{ask: func(q *apiRequest) {
			if q.is(savesDestination) {
				editCredentials(q, func(credentials map[string]any) {
					if token, ok := credentials["auth_token"].(string); ok && token != "" {
						delete(credentials, "auth_token")
					}
				})
			}
		}}),
		{Violation{ID: "DST-024", Changes: "auth_token null takes the token away"}, dropsToken(withoutToken(nil))},
		{Violation{ID: "DST-024.2", Changes: "an empty auth_token takes the token away"}, dropsToken(withoutToken(""))},
		{Violation{ID: "DST-025", Changes: "a fetched destination shows its token"}, showsCredential("auth_token", func(details map[string]any, token any) {
			details["auth_token"] = token
		})},
		{Violation{ID: "DST-026", Changes: "a fetched destination shows the values of its secret headers"}, showsCredential("custom_headers", func(details map[string]any, headers any) {
			details["custom_headers"] = headers
		})},
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
