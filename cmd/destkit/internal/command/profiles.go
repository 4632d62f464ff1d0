package command

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	runtime "runtime/pprof"
	"slices"
	"strings"

	"github.com/pkg/profile"
	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/reach"
)

// ServeProfiles answers requests below …/pprof/ with profiles of this process,
// as net/http/pprof does below /debug/pprof/. That package puts its handlers on
// http.DefaultServeMux as well, which nothing here serves. Its cmdline and
// symbol are left out: arguments may hold the secret part of a URL, and profiles
// of Go carry their symbols.
func ServeProfiles(w http.ResponseWriter, r *http.Request) {
	_, name, below := strings.Cut(r.URL.Path, "/pprof/")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case !below:
		// Relative, since a prefix may have been taken off this path.
		w.Header().Set("Location", "pprof/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	case name == "":
		list(w)
	case name == "profile":
		pprof.Profile(w, r)
	case name == "trace":
		pprof.Trace(w, r)
	case runtime.Lookup(name) != nil:
		pprof.Handler(name).ServeHTTP(w, r)
	default:
		http.Error(w, "there is no such profile; the page above lists them", http.StatusNotFound)
	}
}

// list is the page of all profiles, for people.
func list(w http.ResponseWriter) {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><html lang=\"en\"><title>destkit: profiles</title>\n<table>\n" +
		"<tr><td><td><a href=\"profile?seconds=10\">profile</a><td>where the processor's time goes, for ?seconds=\n" +
		"<tr><td><td><a href=\"trace?seconds=1\">trace</a><td>an execution trace for ?seconds=, for go tool trace\n")
	profiles := runtime.Profiles()
	slices.SortFunc(profiles, func(a, b *runtime.Profile) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, p := range profiles {
		fmt.Fprintf(&b, "<tr><td>%d<td><a href=\"%[2]s?debug=1\">%[2]s</a><td>%s\n", p.Count(), p.Name(), meanings[p.Name()])
	}
	b.WriteString("</table>\n<p>Without debug=1 it is for go tool pprof, with ?seconds= the difference over that time.\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}

// meanings say what the profiles of the runtime are; one that is not here
// is shown without a word.
var meanings = map[string]string{
	"allocs": "all memory ever allocated", "block": "where goroutines waited, with --profile-block",
	"goroutine": "the stacks of all goroutines; ?debug=2 in full", "heap": "the memory in use; ?gc=1 collects first",
	"mutex": "contended locks, with --profile-mutex", "threadcreate": "what made threads of the system",
}

// ForThisMachine keeps a port that is open for figures from showing more than
// that to others: the peer must be on loopback, under a name of loopback.
func ForThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reach.AdmitLoopback(r) != nil {
			http.Error(w, "profiles are for this machine alone, at 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Profiling holds the flags --profile-cpu DIR and so on. One profile can be
// taken at a time.
type Profiling struct {
	dirs map[string]*string
}

// modes are the profiles on offer, by the last part of their flag.
var modes = []struct {
	name, what string
	mode       func(*profile.Profile)
}{
	{"cpu", "where the processor's time goes", profile.CPUProfile},
	{"mem", "the memory in use", profile.MemProfileHeap},
	{"allocs", "all memory ever allocated", profile.MemProfileAllocs},
	{"mutex", "contended locks", profile.MutexProfile},
	{"block", "where goroutines wait", profile.BlockProfile},
	{"trace", "an execution trace", profile.TraceProfile},
}

// Register adds the flags to a long-running command and keeps them apart from
// each other.
func (p *Profiling) Register(cmd *cobra.Command) {
	p.dirs = map[string]*string{}
	var names []string
	for _, m := range modes {
		name := "profile-" + m.name
		p.dirs[m.name] = cmd.Flags().String(name, "", "write a profile of "+m.what+" into `DIR` (for go tool pprof or trace)")
		names = append(names, name)
	}
	cmd.MarkFlagsMutuallyExclusive(names...)
}

// Start begins the requested profile; the function that it returns ends it
// and is never nil. Signals stay with the command.
func (p *Profiling) Start() (stop func(), err error) {
	for _, m := range modes {
		dir := *p.dirs[m.name]
		if dir == "" {
			continue
		}
		// The library ends the process when it cannot write; look first.
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return func() {}, exit.Usage(fmt.Errorf("make profile folder: %w", err))
		}
		probe, err := os.CreateTemp(dir, ".probe")
		if err != nil {
			return func() {}, exit.Usage(fmt.Errorf("write into profile folder: %w", err))
		}
		probe.Close()
		os.Remove(probe.Name())
		return profile.Start(m.mode, profile.ProfilePath(dir), profile.NoShutdownHook, profile.Quiet).Stop, nil
	}
	return func() {}, nil
}
