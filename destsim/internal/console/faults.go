package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/console"
)

// armedFault is one of GET /_control/faults.
type armedFault struct {
	ID    string `json:"id"`
	Fault struct {
		Kind string `json:"kind"`
	} `json:"fault"`
	Armed   bool  `json:"armed"`
	Matched int64 `json:"matched"`
	Fired   int64 `json:"fired"`
}

// faultKind is one of GET /_control/faults/kinds.
type faultKind struct {
	Name  string   `json:"name"`
	Does  string   `json:"does"`
	Takes []string `json:"takes"`
}

func (s *site) faults(r *console.Request) (any, error) {
	got, err := get[struct {
		Faults []armedFault `json:"faults"`
	}](r.Context(), s, "/faults", nil)
	if err != nil {
		return nil, err
	}
	kinds, err := get[struct {
		Kinds []faultKind `json:"kinds"`
	}](r.Context(), s, "/faults/kinds", nil)
	return struct {
		Faults []armedFault
		Kinds  []faultKind
	}{got.Faults, kinds.Kinds}, err
}

// armFault hands the form to POST /_control/faults: parameters that only some kinds
// have are written as JSON.
func (s *site) armFault(r *console.Request) (string, error) {
	body := map[string]any{}
	if text := r.Form("more"); text != "" {
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			return "", console.Refuse(http.StatusBadRequest, "parameters: must be a JSON object such as {\"status\": 503}")
		}
	}
	body["kind"] = r.Form("kind")
	if at := r.Form("at"); at != "" {
		body["at"] = at
	}
	when := map[string]any{}
	for _, name := range []string{"method", "object", "operation", "identifier"} {
		if text := r.Form(name); text != "" {
			when[name] = text
		}
	}
	for _, name := range []string{"first", "every", "from", "to", "times"} {
		n, given, err := r.Number(name)
		if err != nil {
			return "", err
		}
		if given {
			when[name] = n
		}
	}
	if text := r.Form("probability"); text != "" {
		p, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", console.Refuse(http.StatusBadRequest, "probability: must be a number from 0 to 1")
		}
		when["probability"] = p
	}
	if len(when) > 0 {
		body["when"] = when
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := s.Control.Do(r.Context(), http.MethodPost, "/_control/faults", body, &made); err != nil {
		return "", err
	}
	r.Done("The fault " + made.ID + " is armed.")
	return "/faults", nil
}

func (s *site) disarm(r *console.Request) (string, error) {
	path, note := "/faults", "All faults are disarmed."
	if id := r.Form("id"); id != "" {
		path, note = path+"/"+url.PathEscape(id), "The fault "+id+" is disarmed."
	}
	return s.does(r, http.MethodDelete, path, nil, note, "/faults")
}

func (s *site) hooks(r *console.Request) (any, error) {
	return get[world](r.Context(), s, "/objects", nil)
}

// hookNotes say what a hook did; its answer can hold a token, and is not shown.
var hookNotes = map[string]string{
	"restart": "The simulator has restarted.", "alter_schema begin": "The schema is altered.", "alter_schema end": "The schema is as before.",
	"break_downstream begin": "The downstream system is down.", "break_downstream end": "The downstream system is up again.",
	"rotate_token begin": "The token is rotated; the old one is refused.", "rotate_token end": "The old token holds again.",
}

func (s *site) callHook(r *console.Request) (string, error) {
	name, action, _ := strings.Cut(r.Form("hook"), " ")
	if r.Form("hook") == "reset" {
		return s.does(r, http.MethodPost, "/reset", nil, "Records are forgotten, and every change is reverted.", "/hooks")
	}
	note, known := hookNotes[r.Form("hook")]
	if !known {
		return "", console.Refuse(http.StatusBadRequest, "hook: choose one of the buttons")
	}
	body := map[string]string{"hook": name, "object": r.Form("object"), "action": action}
	return s.does(r, http.MethodPost, "/hooks/"+url.PathEscape(name), body, note, "/hooks")
}
