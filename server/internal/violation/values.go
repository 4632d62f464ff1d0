package violation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/api"
)

// asText is a value of a body as a string, as a careless serializer writes it.
func asText(v any) string { return fmt.Sprint(v) }

// inside is an object within an object of a body; an empty one where there is
// none, so that it can be changed without a look.
func inside(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := m[name].(map[string]any)
		if !ok {
			return map[string]any{}
		}
		m = next
	}
	return m
}

// also adds the other checks that a violation trips.
func also(v violation, others ...Also) violation {
	v.Also = others
	return v
}

// misshown changes what a call of the API answers as data.
func misshown(id, changes, pattern string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{tell: func(a *apiAnswer) {
		// A sync looks the same in the list.
		if (a.is(pattern) || pattern == readSync && a.is("GET /syncs")) && a.status < http.StatusBadRequest {
			a.data(change)
		}
	}})
}

// misread changes what a call of the API asks for.
func misread(id, changes, pattern string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{ask: func(q *apiRequest) {
		if q.is(pattern) {
			q.edit(change)
		}
	}})
}

// waved answers a new sync as made although it was refused for one field alone,
// with one of these words where there are any.
func waved(id, changes, field string, words ...string) violation {
	meant := func(p map[string]any) bool {
		return strings.HasPrefix(asText(p["field"]), field) && (len(words) == 0 ||
			slices.ContainsFunc(words, func(w string) bool { return strings.Contains(asText(p["message"]), w) }))
	}
	return breaks(id, changes, seams{tell: func(a *apiAnswer) {
		if !a.is("POST /syncs") || a.status != http.StatusBadRequest {
			return
		}
		a.edit(func(m map[string]any) {
			problems, _ := m["errors"].([]any)
			for _, one := range problems {
				if p, _ := one.(map[string]any); !meant(p) {
					return
				}
			}
			clear(m)
			a.status, m["status"], m["data"] = http.StatusOK, api.StatusCreated, map[string]any{"sync_id": 0}
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
			ask: func(q *apiRequest) {
				if !q.is("POST /syncs") {
					return
				}
				q.edit(func(m map[string]any) {
					value, there := m[field]
					if there && swap(m) {
						mu.Lock()
						defer mu.Unlock()
						sent[m["label"]] = value
					}
				})
			},
			tell: func(a *apiAnswer) {
				if !a.is("GET /syncs/*") {
					return
				}
				a.data(func(m map[string]any) {
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
