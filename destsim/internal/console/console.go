// Package console owns the pages of the simulated destination for a browser: its
// objects and speed, the stored records, the calls as they come, violations, faults and
// hooks. Each page is made from what the control endpoints answer.
package console

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/destsim/internal/meter"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/console"
)

//go:embed pages/*.html
var files embed.FS

// Simulator is what the pages use of the simulator.
type Simulator struct {
	Control console.Caller // past its guard
	Token   string         // the control token; "" is none
	Stamp   func() string  // changes with all that pages show
}

type site struct{ Simulator }

// New makes the console of a simulator.
func New(s Simulator) *console.Console {
	pages, err := fs.Sub(files, "pages")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	c := console.New(console.Options{
		Name: "simulator", Pages: pages, Token: s.Token, LoopbackToo: true, Stamp: s.Stamp,
		Nav: []console.Link{
			{Path: "/", Text: "Overview", Key: "o"}, {Path: "/records", Text: "Records", Key: "e"}, {Path: "/requests", Text: "Requests", Key: "r"},
			{Path: "/violations", Text: "Violations", Key: "v"}, {Path: "/faults", Text: "Faults", Key: "f"}, {Path: "/hooks", Text: "Hooks", Key: "h"},
		},
	})
	at := &site{s}
	c.Page("/{$}", "overview", at.overview)
	c.Action("/speed", "/", at.setSpeed)
	c.Page("/records", "records", at.records)
	c.Page("/requests", "requests", at.requests)
	c.Page("/requests/{seq}", "exchange", at.request)
	c.Action("/bodies", "/requests", at.keepBodies)
	c.Page("/violations", "violations", at.violations)
	c.Action("/violations", "/violations", at.arm)
	c.Page("/faults", "faults", at.faults)
	c.Action("/faults", "/faults", at.armFault)
	c.Action("/faults/disarm", "/faults", at.disarm)
	c.Page("/hooks", "hooks", at.hooks)
	c.Action("/hooks", "/hooks", at.callHook)
	return c
}

func get[T any](ctx context.Context, s *site, path string, query url.Values) (reply T, err error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	err = s.Control.Do(ctx, http.MethodGet, "/_control"+path, nil, &reply)
	return reply, err
}

// does makes a change and reports it on the page that it goes back to.
func (s *site) does(r *console.Request, method, path string, body any, note, back string) (string, error) {
	if err := s.Control.Do(r.Context(), method, "/_control"+path, body, nil); err != nil {
		return "", err
	}
	r.Done(note)
	return back, nil
}

// world is GET /_control/objects.
type world struct {
	Objects []struct {
		rpc.Object
		Operations []string `json:"operations"`
		Fields     []field  `json:"fields"`
		Records    int64    `json:"records"`
	} `json:"objects"`
	Speed     rpc.Speed `json:"speed"`
	RateLimit int64     `json:"rate_limit"`
	Enforced  bool      `json:"enforced"`
	Broken    bool      `json:"downstream_broken"`
}

type field struct {
	rpc.Field
	Unique    bool `json:"unique"`
	MaxLength int  `json:"max_length"`
	Custom    bool `json:"custom"`
}

// figures is GET /_control/figures.
type figures struct{ meter.Figures }

// Used is how many records came in a second at most, and Rate in the last ten seconds.
func (f figures) Used() (n int64) {
	for _, m := range f.Methods {
		n = max(n, m.PeakRecords)
	}
	return n
}

func (f figures) Rate() (n float64) {
	for _, m := range f.Methods {
		n += m.RecordsPerSecond
	}
	return n
}

func (s *site) overview(r *console.Request) (any, error) {
	ctx := r.Context()
	w, err := get[world](ctx, s, "/objects", nil)
	if err != nil {
		return nil, err
	}
	f, err := get[figures](ctx, s, "/figures", nil)
	if err != nil {
		return nil, err
	}
	armed, err := get[violationList](ctx, s, "/violations", url.Values{"armed": {"true"}})
	return struct {
		world
		Figures figures
		Armed   []violation
	}{w, f, armed.Violations}, err
}

// setSpeed changes what get_sync_speed and X-RateLimit-Limit declare.
func (s *site) setSpeed(r *console.Request) (string, error) {
	numbers := map[string]int64{}
	for _, name := range []string{"batch", "parallel", "second", "rate_limit"} {
		n, given, err := r.Number(name)
		if err == nil && !given {
			err = console.Refuse(http.StatusBadRequest, "%s: is required", name)
		}
		if err != nil {
			return "", err
		}
		numbers[name] = n
	}
	speed := rpc.Speed{MaximumBatchSize: numbers["batch"], MaximumParallelBatches: numbers["parallel"], MaximumRecordsPerSecond: numbers["second"]}
	for _, change := range []map[string]any{{"action": "set_speed", "speed": speed}, {"action": "set_rate_limit", "rate_limit": numbers["rate_limit"]}} {
		if err := s.Control.Do(r.Context(), http.MethodPost, "/_control/schema", change, nil); err != nil {
			return "", err
		}
	}
	r.Done("The declared speed is changed.")
	return "/", nil
}

// The bounds of the page of records.
const (
	recordsShown  = 50
	recordsAtOnce = 1000
	recordsLooked = 5000 // for a search
)

type storedRecord struct {
	ID     int64           `json:"id"`
	Fields json.RawMessage `json:"fields"`
}

type recordsPage struct {
	Objects []string
	Object  string
	Records []storedRecord
	Total   int64
	Next    int64 // the after of the next page; 0: none
	Looked  int64 // at so many records, where one searches
}

func (s *site) records(r *console.Request) (any, error) {
	w, err := get[world](r.Context(), s, "/objects", nil)
	if err != nil {
		return nil, err
	}
	p := recordsPage{Object: r.Query("object")}
	for _, o := range w.Objects {
		p.Objects = append(p.Objects, o.APIName)
	}
	if p.Object == "" && len(p.Objects) > 0 {
		p.Object = p.Objects[0]
	}
	if p.Object == "" {
		return p, nil
	}
	after, _ := strconv.ParseInt(r.Query("after"), 10, 64) // 0: from the first on
	wanted := []byte(strings.ToLower(r.Query("text")))
	limit := recordsShown
	if len(wanted) > 0 {
		limit = recordsAtOnce
	}
	for {
		got, err := get[struct {
			Records []storedRecord `json:"records"`
			Total   int64          `json:"total"`
			Next    *int64         `json:"next"`
		}](r.Context(), s, "/records", url.Values{"object": {p.Object}, "after": {fmt.Sprint(after)}, "limit": {fmt.Sprint(limit)}})
		if err != nil {
			return nil, err
		}
		p.Total = got.Total
		for _, one := range got.Records {
			p.Looked++
			after = one.ID
			if bytes.Contains(bytes.ToLower(one.Fields), wanted) {
				p.Records = append(p.Records, one)
			}
			if len(p.Records) == recordsShown {
				break
			}
		}
		if len(p.Records) == recordsShown || got.Next == nil || p.Looked >= recordsLooked {
			if got.Next != nil || len(p.Records) == recordsShown && p.Total > int64(len(p.Records)) {
				p.Next = after
			}
			return p, nil
		}
	}
}

// violation is one of GET /_control/violations.
type violation struct {
	ID      string `json:"id"`
	Changes string `json:"changes"`
	Also    []struct {
		ID  string `json:"id"`
		Why string `json:"why"`
	} `json:"also"`
	Armed bool `json:"armed"`
}

type violationList struct {
	Violations []violation `json:"violations"`
}

func (s *site) violations(r *console.Request) (any, error) {
	got, err := get[violationList](r.Context(), s, "/violations", nil)
	if err != nil {
		return nil, err
	}
	armed, wanted := 0, strings.ToLower(r.Query("text"))
	var shown []violation
	for _, v := range got.Violations {
		if v.Armed {
			armed++
		}
		if wanted == "" || strings.Contains(strings.ToLower(v.ID+" "+v.Changes), wanted) {
			shown = append(shown, v)
		}
	}
	// Armed ones first: they would be hard to find among hundreds.
	slices.SortStableFunc(shown, func(a, b violation) int { return strings.Compare(fmt.Sprint(b.Armed), fmt.Sprint(a.Armed)) })
	return struct {
		Violations []violation
		Armed, All int
	}{shown, armed, len(got.Violations)}, nil
}

// arm switches one violation on or off, or all off.
func (s *site) arm(r *console.Request) (string, error) {
	on, off := r.Form("on"), r.Form("off")
	got, err := get[violationList](r.Context(), s, "/violations", url.Values{"armed": {"true"}})
	if err != nil {
		return "", err
	}
	ids := []string{}
	for _, v := range got.Violations {
		if v.ID != off && off != "all" {
			ids = append(ids, v.ID)
		}
	}
	if on != "" {
		ids = append(ids, on)
	}
	note := "The simulator keeps " + off + " again."
	switch {
	case on != "":
		note = "The simulator breaks " + on + " from now on."
	case off == "all":
		note = "The simulator keeps all rules again."
	}
	return s.does(r, http.MethodPost, "/violations", map[string]any{"violate": ids}, note, "/violations")
}
