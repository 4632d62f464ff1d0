package violation

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// namesObject changes the name of an object in the path; raw is how the client
// wrote it.
func namesObject(id, changes string, change func(raw string) (decoded string)) violation {
	return breaks(id, changes, seams{ask: func(q *exchange.Request) {
		before, raw, found := strings.Cut(q.HTTP.URL.EscapedPath(), "/objects/")
		if q.HTTP.Method != http.MethodGet || !found {
			return
		}
		q.HTTP.URL.Path, q.HTTP.URL.RawPath = before+"/objects/"+change(raw), ""
	}})
}

func unescaped(raw string) string {
	if s, err := url.PathUnescape(raw); err == nil {
		return s
	}
	return raw
}

// objectNames break the way from a full_name in a path to its object (spec 4).
func objectNames() []violation {
	return []violation{
		violation{Violation{ID: "DOB-004", Changes: "the object that was listed first is answered for every name"}, firstObject}.
			also("DOB-005", "no other name is found"),
		answersAt("DOB-004.2", "a fetched object has the status ok", fetchesObject, func(a *exchange.Answer) {
			if a.Status == http.StatusOK {
				a.Edit(func(body map[string]any) { body["status"] = "ok" })
			}
		}).also("DOB-005", "the envelope is looked at for every name"),
		namesObject("DOB-005", "the path of an object is split after decoding", unescaped),
		namesObject("DOB-005.2", "the name of an object is decoded as in a query: a plus is a space", func(raw string) string {
			if s, err := url.QueryUnescape(raw); err == nil && !strings.Contains(s, "/") {
				return s
			}
			return unescaped(raw)
		}),
		namesObject("DOB-005.3", "the name of an object is decoded twice", func(raw string) string { return unescaped(unescaped(raw)) }),
		answersAt("DOB-006", "an object that does not exist is answered with 200 and no data", fetchesObject, func(a *exchange.Answer) {
			if a.Status == http.StatusNotFound {
				a.Status, a.Body = http.StatusOK, []byte(`{"status":"not_found","data":null}`)
			}
		}),
	}
}

// firstObject remembers the first name of every list, and asks for nothing else.
func firstObject(*Service) seams {
	var lock sync.Mutex
	first := map[string]string{} // by path of the list
	return seams{
		tell: func(a *exchange.Answer) {
			var list struct {
				Data []struct {
					FullName string `json:"full_name"`
				}
			}
			if a.Is(listsObjects) && json.Unmarshal(a.Body, &list) == nil && len(list.Data) > 0 {
				lock.Lock()
				first[a.HTTP.URL.Path] = list.Data[0].FullName
				lock.Unlock()
			}
		},
		ask: func(q *exchange.Request) {
			before, _, found := strings.Cut(q.HTTP.URL.EscapedPath(), "/objects/")
			lock.Lock()
			defer lock.Unlock()
			if name := first[before+"/objects"]; found && name != "" {
				q.HTTP.URL.Path, q.HTTP.URL.RawPath = before+"/objects/"+name, before+"/objects/"+url.PathEscape(name)
			}
		},
	}
}
