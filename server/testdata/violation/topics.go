package violation

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// Calls of models and topics as violations name them.
const (
	makesModel = "POST /sources/*/models"
	makesTopic = "POST /sources/*/topics"
	savesTopic = "PATCH /sources/*/topics/*"
)

// statusAt changes one HTTP status of one kind of answers to another.
func statusAt(id, changes, call string, from, to int) violation {
	return answersAt(id, changes, call, func(a *exchange.Answer) {
		if a.Status == from {
			a.Status = to
		}
	})
}

// wordAt changes the word that stands in the status of good answers, or of bad
// ones.
func wordAt(id, changes, call string, good bool, to string) violation {
	return answersAt(id, changes, call, func(a *exchange.Answer) {
		if a.Status < http.StatusMultipleChoices == good {
			a.Edit(func(body map[string]any) { body["status"] = to })
		}
	})
}

// modelsViolations break the rules of MDL: models (spec 2.11).
func modelsViolations() []violation {
	return []violation{
		showsAt("MDL-001", "a model does not show its source_object_id", makesModel, func(m map[string]any) { delete(m, "source_object_id") }),
		showsAt("MDL-001.2", "a model shows the id of its dataset as a text", makesModel, func(m map[string]any) {
			m["dataset_id"] = fmt.Sprint(m["dataset_id"])
			m["dataset_id="] = m["dataset_id"]
		}),
		showsAt("MDL-002", "a model has no key dataset_id=", makesModel, func(m map[string]any) { delete(m, "dataset_id=") }),
		showsAt("MDL-002.2", "the key dataset_id= of a model is 0", makesModel, func(m map[string]any) {
			m["dataset_id="] = json.Number("0")
		}),
		wordAt("MDL-003", "making a model answers success", makesModel, true, "success"),
		statusAt("MDL-003.2", "making a model answers 202", makesModel, http.StatusCreated, http.StatusAccepted),
		showsAt("MDL-004", "a model shows its query with a semicolon", makesModel, func(m map[string]any) {
			if query, ok := m["query"].(string); ok {
				m["query"] = query + ";"
			}
		}),
		showsAt("MDL-004.2", "a model shows its description without letters beyond ASCII", makesModel, func(m map[string]any) {
			if text, ok := m["description"].(string); ok {
				m["description"] = strings.Map(func(r rune) rune {
					if r > 0x7f {
						return '?'
					}
					return r
				}, text)
			}
		}),
		statusAt("MDL-007", "a model that cannot be is answered with 422", makesModel, http.StatusBadRequest, http.StatusUnprocessableEntity),
		statusAt("MDL-007.2", "a model of an unknown source is answered with 500", makesModel, http.StatusNotFound, http.StatusInternalServerError),
	}
}

// topicsViolations break the rules of TPC: topics (spec 2.12).
func topicsViolations() []violation {
	return append(topicShapes(), topicChanges()...)
}

// schemaAt changes the schemas that are shown of topics.
func schemaAt(id, changes string, change func(schema map[string]any)) violation {
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		if a.Is(makesTopic) || a.Is(savesTopic) {
			a.Data(func(t map[string]any) {
				if schema, ok := t["schema"].(map[string]any); ok {
					change(schema)
				}
			})
		}
	}})
}

// asksTopic changes the body of one kind of calls.
func asksTopic(id, changes, call string, change func(body map[string]any)) violation {
	return breaks(id, changes, seams{ask: func(q *exchange.Request) {
		if q.Is(call) {
			q.Edit(change)
		}
	}})
}

// topicShapes change what is shown of topics (spec 2.12).
func topicShapes() []violation {
	rename := func(which func(name string, kind any) string) func(map[string]any) {
		return func(schema map[string]any) {
			for name, kind := range maps.Clone(schema) {
				delete(schema, name)
				if to := which(name, kind); to != "" {
					schema[to] = kind
				}
			}
		}
	}
	return []violation{
		showsAt("TPC-001", "a new topic shows updated_at in seconds", makesTopic, func(t map[string]any) { t["updated_at"] = json.Number("1767603600") }),
		showsAt("TPC-001.2", "a changed topic shows its id as a text", savesTopic, func(t map[string]any) { t["id"] = fmt.Sprint(t["id"]) }),
		schemaAt("TPC-003", "fields without a value are not in the schema of a topic", rename(func(name string, kind any) string {
			if kind == "null" {
				return ""
			}
			return name
		})),
		schemaAt("TPC-003.2", "the fields in the schema of a topic are in lower case", rename(func(name string, _ any) string { return strings.ToLower(name) })),
		schemaAt("TPC-003.3", "nested fields stand in the schema of a topic with a dot", rename(func(name string, kind any) string {
			if kind == "object" {
				return name + ".name"
			}
			return name
		})),
		schemaAt("TPC-004", "numbers in the schema of a topic are named float", func(schema map[string]any) {
			for name, kind := range schema {
				if kind == "number" {
					schema[name] = "float"
				}
			}
		}).also("TPC-007", "the schema is compared after a change").also("TPC-008", "the schema is compared after a change"),
		breaks("TPC-004.2", "texts that look like numbers are numbers in the schema of a topic", seams{ask: func(q *exchange.Request) {
			if q.Is(makesTopic) {
				q.Edit(looksLikeNumber)
			}
		}}),
		showsAt("TPC-005", "a new topic shows its name in lower case", makesTopic, func(t map[string]any) {
			t["name"] = strings.ToLower(fmt.Sprint(t["name"]))
		}),
		asksTopic("TPC-005.2", "the description of a new topic is lost", makesTopic, func(body map[string]any) { delete(body, "description") }).
			also("TPC-001", "there is no description to be shown").
			also("TPC-007", "there is no description to be kept"),
		answersAt("TPC-009", "a topic that cannot be is answered with the status invalid", makesTopic, func(a *exchange.Answer) {
			if a.Status == http.StatusBadRequest {
				a.Edit(func(body map[string]any) { body["status"] = "invalid" })
			}
		}),
		statusAt("TPC-011", "an unknown topic is answered with 400", savesTopic, http.StatusNotFound, http.StatusBadRequest),
		statusAt("TPC-011.2", "a topic of an unknown source is answered with 403", makesTopic, http.StatusNotFound, http.StatusForbidden),
		showsAt("TPC-012", "a changed topic shows created_at as the time of the change", savesTopic, func(t map[string]any) { t["created_at"] = t["updated_at"] }),
		showsAt("TPC-012.2", "a changed topic keeps its updated_at", savesTopic, func(t map[string]any) { t["updated_at"] = t["created_at"] }),
	}
}

// looksLikeNumber makes numbers of the texts in a sample message.
func looksLikeNumber(body map[string]any) {
	message, _ := body["sample_message"].(map[string]any)
	for name, value := range message {
		if text, ok := value.(string); ok && text != "" && strings.Trim(text, "0123456789") == "" {
			message[name] = json.Number(text)
		}
	}
}

// topicChanges break how topics are made and changed (spec 4, 4.1.8).
func topicChanges() []violation {
	return []violation{
		asksTopic("TPC-007", "a change of the name alone takes the description of a topic away", savesTopic, func(body map[string]any) {
			if _, given := body["description"]; !given && body["name"] != nil {
				body["description"] = nil
			}
		}),
		{Violation{ID: "TPC-008", Changes: "fields that the new sample message lacks stay in the schema of a topic"}, growingSchema},
		asksTopic("TPC-008.2", "a new sample message of a topic is ignored", savesTopic, func(body map[string]any) {
			if _, is := body["sample_message"].(map[string]any); is {
				delete(body, "sample_message")
			}
		}),
		asksTopic("TPC-009.2", "a topic without a sample message is made with one field", makesTopic, func(body map[string]any) {
			if _, given := body["sample_message"]; !given {
				body["sample_message"] = map[string]any{"message": ""}
			}
		}),
		asksTopic("TPC-009.3", "of a list of sample messages the first is taken", makesTopic, func(body map[string]any) {
			if list, is := body["sample_message"].([]any); is && len(list) > 0 {
				body["sample_message"] = list[0]
			}
		}),
		asksTopic("TPC-009.4", "a topic without a name gets one", makesTopic, func(body map[string]any) {
			if body["name"] == nil {
				body["name"] = "topic"
			}
		}),
		{Violation{ID: "TPC-010", Changes: "the name of a refused change of a topic is kept"}, halfChange},
		answersAt("TPC-010.2", "a refused change of a topic has the status invalid", savesTopic, func(a *exchange.Answer) {
			if a.Status == http.StatusBadRequest {
				a.Edit(func(body map[string]any) { body["status"] = "invalid" })
			}
		}),
	}
}

// growingSchema shows every field that a topic has ever had.
func growingSchema(*Service) seams {
	var lock sync.Mutex
	known := map[string]map[string]any{} // by id
	return seams{tell: func(a *exchange.Answer) {
		if !a.Is(makesTopic) && !a.Is(savesTopic) {
			return
		}
		a.Data(func(t map[string]any) {
			lock.Lock()
			defer lock.Unlock()
			id := fmt.Sprint(t["id"])
			schema, ok := t["schema"].(map[string]any)
			if !ok {
				return
			}
			if known[id] == nil {
				known[id] = map[string]any{}
			}
			maps.Copy(known[id], schema)
			maps.Copy(schema, known[id])
		})
	}}
}

// halfChange keeps the name of a change whose sample message is wrong, and
// brings it in with the next one.
func halfChange(*Service) seams {
	var lock sync.Mutex
	kept := map[string]any{} // by path
	return seams{ask: func(q *exchange.Request) {
		if !q.Is(savesTopic) {
			return
		}
		q.Edit(func(body map[string]any) {
			lock.Lock()
			defer lock.Unlock()
			message, given := body["sample_message"]
			if _, is := message.(map[string]any); given && !is {
				kept[q.HTTP.URL.Path] = body["name"]
			} else if name := kept[q.HTTP.URL.Path]; name != nil && body["name"] == nil {
				body["name"] = name
			}
		})
	}}
}
