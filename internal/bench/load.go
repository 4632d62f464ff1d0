package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// work is what is sent: the object, the template of its records and how many
// make a batch. One record in a hundred has a value that the simulator refuses.
type work struct {
	name, object, template string
	size, connections      int
}

// ages are 99 that are integers and one that is none.
var ages = func() (words string) {
	for i := range 99 {
		words += strconv.Itoa(20+i%60) + " "
	}
	return words + "x"
}()

// moments are 99 that are moments and one that is none.
var moments = func() (words string) {
	for i := range 99 {
		words += fmt.Sprintf("2021-03-29T16:32:%02dZ ", i%60)
	}
	return words + "never"
}()

// The bodies of the table of goals: s1 is mostly head and plan, f1 has the plan
// of ten fields, b1000 is mostly records. Refused are values that the simulator
// has to look at to know: an age that is no integer, a moment that is none.
var (
	tenFields = `{"last_name":"Lovelace {{int 100 999}}","first_name":"Ada {{int 10 99}}","age":"{{pick ` + ages + `}}",` +
		`"score":"{{int 0 50}}","balance":"12{{int 10 99}}.50","subscribed":"{{bool}}","birth_date":"{{date}}","last_seen_at":"{{date_time}}","tags":["a","b"]}`
	s1    = work{"s1", "event", `{"occurred_at":"{{pick ` + moments + `}}"}`, 1, 32}
	f1    = work{"f1", "contact", tenFields, 1, 32}
	b1000 = work{"b1000", "contact", tenFields, 1000, 8}
)

// loaded is what `destkit load --json` says, as far as it is needed here.
type loaded struct {
	Seconds           float64          `json:"seconds"`
	RequestsPerSecond float64          `json:"requests_per_second"`
	RecordsPerSecond  float64          `json:"records_per_second"`
	Requests          int64            `json:"requests"`
	Records           int64            `json:"records"`
	Acknowledged      int64            `json:"records_acknowledged"`
	Errors            int64            `json:"errors"`
	ErrorsByKind      map[string]int64 `json:"errors_by_kind"`
	ErrorMessages     []struct {
		Kind, Message string
	} `json:"error_messages"`
	Latency     percentiles `json:"latency"`
	ServiceTime percentiles `json:"service_time"`
	Generator   struct {
		Unsent     int64   `json:"requests_unsent"`
		CPUSeconds float64 `json:"cpu_seconds"`
	} `json:"generator"`
	WarmUp *struct {
		Seconds                   float64
		Requests, Records, Errors int64
	} `json:"warm_up"`
	Search *struct {
		Rate          float64 `json:"requests_per_second"`
		Confirmed     bool    `json:"confirmed"`
		Knee          int     `json:"knee_connections"`
		ClosedMaximum float64 `json:"closed_loop_requests_per_second"`
		Connections   int     `json:"connections"`
	} `json:"search"`

	cpu, kernel float64 // seconds of the whole process, and those of the kernel among them
	bySim       float64 // seconds of the simulator meanwhile
}

type percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// bad is what went wrong beside records that the simulator was to refuse.
func (l *loaded) bad() int64 { return l.Errors - l.ErrorsByKind["record_refused"] }

// prepare writes the template of some work.
func (w *workshop) prepare(what work) (file string, err error) {
	file = filepath.Join(w.folder, what.name+".template.json")
	if err := os.WriteFile(file, []byte(what.template), 0o600); err != nil {
		return "", fmt.Errorf("write a template: %w", err)
	}
	return file, nil
}

// load runs `destkit load` against a URL.
func (w *workshop) load(url, roots string, what work, flags ...string) (*loaded, error) {
	// The program writes its result into a file: what it prints is for people.
	template, err := w.prepare(what)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(w.folder, "load-*.json")
	if err != nil {
		return nil, fmt.Errorf("make a file: %w", err)
	}
	file.Close()
	// The seed chooses the share of refused records of the few batches that are
	// prepared, and the keys; it is the same in every run.
	args := append([]string{"load", url + "/", "--write", "--object", what.object, "--template", template,
		"--batch-size", strconv.Itoa(what.size), "--seed", "2", "--quiet", "--json", file.Name()}, flags...)
	if roots != "" {
		args = append(args, "--tls-roots", roots)
	}
	e, err := w.finish(nil, w.program, args...)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("read the result of a load: %w", err)
	}
	l := &loaded{cpu: e.cpu, kernel: e.kernel}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("read the result of a load: %w", err)
	}
	return l, nil
}

// checkedLoad is a load that must have told every record
// that was refused from every one that was stored, as the simulator counts them.
func (w *workshop) checkedLoad(s *simulator, what work, flags ...string) (*loaded, error) {
	before, err := s.verdicts()
	if err != nil {
		return nil, err
	}
	began, err := s.cpu()
	if err != nil {
		return nil, err
	}
	l, err := w.load(s.url, s.roots, what, flags...)
	if err != nil {
		return nil, err
	}
	ended, err := s.cpu()
	if err != nil {
		return nil, err
	}
	// With what it takes to be asked for its plan and its metrics: nothing beside
	// seconds of batches.
	l.bySim = ended - began
	after, err := s.verdicts()
	if err != nil {
		return nil, err
	}
	return l, l.agrees(verdicts{after.stored - before.stored, after.refused - before.refused})
}

// agrees holds what the load has counted against what the simulator has.
func (l *loaded) agrees(v verdicts) error {
	// The simulator has counted the warm-up, too; the result has it apart.
	records, refused := l.Records, l.ErrorsByKind["record_refused"]
	if l.WarmUp != nil {
		records, refused = records+l.WarmUp.Records, refused+l.WarmUp.Errors
	}
	switch {
	case l.bad() != 0 && len(l.ErrorMessages) > 0:
		return fmt.Errorf("check the load: %d errors that are no refused records: %v, %v", l.bad(), l.ErrorsByKind, l.ErrorMessages)
	case refused == 0:
		return fmt.Errorf("check the load: no record of %d was refused", records)
	case refused != v.refused || records-refused != v.stored:
		return fmt.Errorf("check the load: it counts %d stored and %d refused, the simulator %d and %d", records-refused, refused, v.stored, v.refused)
	}
	return nil
}
