package destsim

import "net/http"

// faultEndpoints are the control endpoints of faults.
var faultEndpoints = []endpoint{
	{"POST", "/_control/faults", `arms {"kind","when":{…},…}, gives its id`},
	{"GET", "/_control/faults", "lists faults and how often they fired; ?unfired=true those that never did"},
	{"GET", "/_control/faults/kinds", "lists the kinds of faults with their parameters"},
	{"DELETE", "/_control/faults", "disarms all"},
	{"DELETE", "/_control/faults/{id}", "disarms one"},
}

func (b *faultBoard) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /_control/faults", take(func(f Fault) (any, error) {
		id, err := b.arm(f)
		return struct {
			OK bool   `json:"ok"`
			ID string `json:"id"`
		}{true, id}, err
	}))
	mux.HandleFunc("GET /_control/faults", func(w http.ResponseWriter, r *http.Request) {
		unfired, err := flagOf(r.URL.Query(), "unfired")
		if err != nil {
			answer(w, nil, err)
			return
		}
		reply(w, http.StatusOK, map[string]any{"faults": b.all(unfired)})
	})
	mux.HandleFunc("GET /_control/faults/kinds", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"kinds": FaultKinds()})
	})
	mux.HandleFunc("DELETE /_control/faults", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, struct {
			OK       bool `json:"ok"`
			Disarmed int  `json:"disarmed"`
		}{true, b.disarmAll()})
	})
	mux.HandleFunc("DELETE /_control/faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := b.disarm(r.PathValue("id")); err != nil {
			reply(w, http.StatusNotFound, controlError{err.Error()})
			return
		}
		reply(w, http.StatusOK, okReply{OK: true})
	})
}
