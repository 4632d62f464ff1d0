package violation

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// also adds the other checks that a violation trips.
func also(v violation, others ...Also) violation {
	v.Also = others
	return v
}

// misshown changes what a call of the API answers as data.
func misshown(id, changes, pattern string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		// A sync looks the same in the list.
		if (a.Is(pattern) || pattern == readSync && a.Is("GET /syncs")) && a.Status < http.StatusBadRequest {
			a.Data(change)
		}
	}})
}

// misread changes what a call of the API asks for.
func misread(id, changes, pattern string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{ask: func(q *exchange.Request) {
		if q.Is(pattern) {
			q.Edit(change)
		}
	}})
}

// waved answers a new sync as made although it was refused for one field alone,
// with one of these words where there are any.
func waved(id, changes, field string, words ...string) violation {
	meant := func(p map[string]any) bool {
		return strings.HasPrefix(exchange.Text(p["field"]), field) && (len(words) == 0 ||
			slices.ContainsFunc(words, func(w string) bool { return strings.Contains(exchange.Text(p["message"]), w) }))
	}
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if !a.Is("POST /syncs") || a.Status != http.StatusBadRequest {
			return
		}
		a.Edit(func(m map[string]any) {
			problems, _ := m["errors"].([]any)
			for _, one := range problems {
				if p, _ := one.(map[string]any); !meant(p) {
					return
				}
			}
			clear(m)
			a.Status, m["status"], m["data"] = http.StatusOK, api.StatusCreated, map[string]any{"sync_id": 0}
		})
	}})
}

// pretended stores a field of new syncs in another way than it shows it: swap
// changes it in the request, and what was sent is shown. swap reports whether it
// did anything.
func pretended(id, changes, field string, swap func(map[string]any) bool) violation {
	return violation{Violation{ID: id, Changes: changes}, func(*Service) seams {
		var mu sync.Mutex
		sent := map[any]any{} // by the label of the sync
		return seams{
			ask: func(q *exchange.Request) {
				if !q.Is("POST /syncs") {
					return
				}
				q.Edit(func(m map[string]any) {
					value, there := m[field]
					if there && swap(m) {
						mu.Lock()
						defer mu.Unlock()
						sent[m["label"]] = value
					}
				})
			},
			tell: func(a *exchange.Answer) {
				if !a.Is("GET /syncs/*") {
					return
				}
				a.Data(func(m map[string]any) {
					mu.Lock()
					defer mu.Unlock()
					if value, there := sent[m["label"]]; there {
						m[field] = value
					}
				})
			},
		}
	}}
}

// kept stores a field of new syncs also where it does not apply.
func kept(id, changes, field string, applies func(map[string]any) bool) violation {
	return pretended(id, changes, field, func(m map[string]any) bool {
		if applies(m) {
			return false
		}
		delete(m, field)
		return true
	})
}

// replaced changes a value of a body into another one.
func replaced(field string, from, to any) func(map[string]any) {
	return func(m map[string]any) {
		if m[field] == from {
			m[field] = to
		}
	}
}

// guessed takes another value for an unknown one.
func guessed(field string, other any, known ...any) func(map[string]any) {
	return func(m map[string]any) {
		value, there := m[field]
		for _, k := range known {
			there = there && value != k
		}
		if there && value != nil {
			m[field] = other
		}
	}
}
