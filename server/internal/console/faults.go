package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/destkit/destkit/internal/console"
)

// armedFault is one of GET /_control/faults.
type armedFault struct {
	ID      string          `json:"id"`
	Fault   json.RawMessage `json:"fault"`
	Armed   bool            `json:"armed"`
	Matched int64           `json:"matched"`
	Fired   int64           `json:"fired"`
}

// Kind is what the fault does, Where the calls that it strikes.
func (f armedFault) Kind() string  { return f.member("kind") }
func (f armedFault) Where() string { return f.member("operation") }

func (f armedFault) member(name string) string {
	var members map[string]any
	if json.Unmarshal(f.Fault, &members) != nil {
		return ""
	}
	text, _ := members[name].(string)
	return text
}

type faultsPage struct {
	Faults     []armedFault
	Operations []string
}

// Unfired is how many never fired.
func (p faultsPage) Unfired() (n int) {
	for _, f := range p.Faults {
		if f.Fired == 0 {
			n++
		}
	}
	return n
}

func (s *site) faults(r *console.Request) (any, error) {
	got, err := get[struct {
		Faults []armedFault `json:"faults"`
	}](r.Context(), s, "/faults", nil)
	return faultsPage{got.Faults, s.Operations}, err
}

// The fields of the form of a fault by their content.
var (
	faultTexts   = []string{"kind", "phase", "message", "latency", "operation"}
	faultNumbers = []string{"status", "organization_id", "workspace_id", "after_n", "first_n", "every", "times", "seed"}
)

// armFault passes the input to POST /_control/faults, which judges it.
func (s *site) armFault(r *console.Request) (string, error) {
	body := map[string]any{}
	for _, name := range faultTexts {
		if text := r.Form(name); text != "" {
			body[name] = text
		}
	}
	for _, name := range faultNumbers {
		n, given, err := r.Number(name)
		if err != nil {
			return "", err
		}
		if given {
			body[name] = n
		}
	}
	if text := r.Form("probability"); text != "" {
		p, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", console.Refuse(http.StatusBadRequest, "probability: must be a number from 0 to 1")
		}
		body["probability"] = p
	}
	if text := r.Form("retry_after"); text != "" {
		body["retry_after"] = text
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			body["retry_after"] = n
		}
	}
	armed, err := post[armedFault](r.Context(), s, "/faults", body)
	if err != nil {
		return "", err
	}
	r.Done(fmt.Sprintf("%s is armed.", armed.ID))
	return "/faults", nil
}

func (s *site) disarm(r *console.Request) (string, error) {
	path, what := "/_control/faults", "All faults are taken away."
	if id := r.Form("id"); id != "" {
		path, what = path+"/"+url.PathEscape(id), id+" is taken away."
	}
	if err := s.Control.Do(r.Context(), http.MethodDelete, path, nil, nil); err != nil {
		return "", err
	}
	r.Done(what)
	return "/faults", nil
}
