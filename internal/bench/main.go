// Command bench measures the goals of the toolkit and prints them as one table:
// the load generator against other generators and against the simulator, both
// alone, syncs, the REST service, and the judge.
//
// It starts the program as its users do and reads what it puts out; of the
// packages of the toolkit it knows nothing. What needs their insides is a
// benchmark or a test there, which is run and whose figures are read.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/lists"
)

// options are the flags.
type options struct {
	run     string
	seconds int
	rounds  int
	update  bool
}

func main() {
	var o options
	names := lists.Of(sections(o), func(s section) string { return s.name })
	flag.StringVar(&o.run, "run", "", "measure only the sections that match `REGEXP`, of "+strings.Join(names, ", "))
	flag.IntVar(&o.seconds, "seconds", 10, "how long one run takes")
	flag.IntVar(&o.rounds, "rounds", 3, "runs of each; medians are shown")
	flag.BoolVar(&o.update, "update", false, "write the table into docs/evidence/performance.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.measure(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure does all that was asked for. A goal that is missed is no error; a
// measurement that could not be made is one, and the others are made all the same.
func (o options) measure(ctx context.Context) error {
	if o.seconds < 1 || o.rounds < 1 || flag.NArg() > 0 {
		return errors.New("-seconds and -rounds are at least 1, and there are no arguments")
	}
	if o.update && o.run != "" {
		return errors.New("-update writes the whole table: leave -run out")
	}
	only, err := regexp.Compile(o.run)
	if err != nil {
		return fmt.Errorf("read -run: %w", err)
	}
	chosen := slices.DeleteFunc(sections(o), func(s section) bool { return !only.MatchString(s.name) })
	if len(chosen) == 0 {
		return fmt.Errorf("no section matches %q; -h lists them", o.run)
	}
	w, err := newWorkshop(ctx, o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.folder)
	rows, failed := w.sections(chosen)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	report := report{rows: rows, machine: thisMachine(), options: o, took: time.Since(w.began)}
	fmt.Println(report.text())
	if o.update {
		if err := report.write(filepath.Join(w.root, "docs", "evidence", "performance.md")); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d sections could not be measured: %s", len(failed), strings.Join(failed, "; "))
	}
	return nil
}

// sections measures one after the other. Where one cannot be measured, the others are
// still worth it: the table says what is missing.
func (w *workshop) sections(chosen []section) (rows []row, failed []string) {
	for i, s := range chosen {
		w.say("[%d/%d] %s", i+1, len(chosen), s.name)
		f, err := s.measure(w)
		if w.ctx.Err() != nil {
			return rows, failed
		}
		for _, x := range s.rows {
			r := row{wanted: x, absent: "could not be measured"}
			if f != nil {
				var absent error
				r, absent = f.row(x, w.options.rounds)
				err = errors.Join(err, absent)
			}
			w.say("  %s: %s, %s", r.goal, r.measured(), r.verdict())
			rows = append(rows, r)
		}
		if err != nil {
			w.say("%s: %v", s.name, err)
			failed = append(failed, fmt.Sprintf("%s: %v", s.name, err))
		}
	}
	return rows, failed
}

// workshop is where it is measured: the folder of the repository, a folder for
// what is written, the program and the peers.
type workshop struct {
	ctx     context.Context
	options options
	root    string
	folder  string // removed at the end
	program string
	tools   map[string]string // the peers that are there, by name
	began   time.Time
}

func newWorkshop(ctx context.Context, o options) (*workshop, error) {
	w := &workshop{ctx: ctx, options: o, began: time.Now()}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	w.root = strings.TrimSuffix(strings.TrimSpace(string(out)), "/go.mod")
	if w.folder, err = os.MkdirTemp("", "destkit-bench-"); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	w.findPeers()
	// As make build makes it: what is measured is what is shipped.
	w.say("building the program")
	w.program = w.folder + "/destkit"
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", w.program, "./cmd/destkit")
	build.Dir, build.Env = w.root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build the program: %w\n%s", err, text), os.RemoveAll(w.folder))
	}
	return w, nil
}

// say reports progress.
func (w *workshop) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// ended is a process that has done its work: both its outputs, and the seconds of the
// processor that it took.
type ended struct {
	text []byte
	cpu  float64
}

// finish runs a command to its end. An exit status other than 0 is an error that
// shows the end of what it said.
func (w *workshop) finish(env []string, name string, args ...string) (ended, error) {
	cmd := exec.CommandContext(w.ctx, name, args...)
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(), env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	e := ended{text: text.Bytes()}
	if cmd.ProcessState != nil {
		e.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	if err != nil {
		return e, fmt.Errorf("run %s: %w\n%s", name, err, tail(e.text))
	}
	return e, nil
}

// tail is the end of a text, for a message.
func tail(text []byte) string {
	return strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}
