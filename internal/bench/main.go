// Command bench measures the goals of the toolkit and prints them as one table:
// the load generator against other generators and against the simulator, both
// alone, syncs, the REST service, and the judge.
//
// It starts the program as its users do and reads what it puts out; of the
// packages of the toolkit it knows nothing. What needs their insides is a
// benchmark or a test there, which is run and whose figures are read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	run     string
	seconds int
	rounds  int
	update  bool
	list    bool
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "measure only the sections that match `REGEXP`")
	flag.IntVar(&o.seconds, "seconds", 10, "how long one run takes")
	flag.IntVar(&o.rounds, "rounds", 3, "runs of each; medians are shown")
	flag.BoolVar(&o.update, "update", false, "write the table into docs/evidence/performance.md")
	flag.BoolVar(&o.list, "list", false, "list the sections with an estimate of their time")
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
	chosen, estimate, err := o.choose()
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range chosen {
			fmt.Printf("%-20s about %s\n", s.name, s.takes)
		}
		return nil
	}
	w, err := newWorkshop(ctx, o)
	if err != nil {
		return err
	}
	defer w.close()
	versions, missing := w.versions()
	w.say("%d sections, about %s", len(chosen), estimate.Round(time.Minute))
	rows, failed := w.sections(chosen)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	report := report{rows: rows, machine: thisMachine(), options: o, missing: missing, versions: versions, took: time.Since(w.began)}
	fmt.Print(report.text())
	if o.update {
		path := filepath.Join(w.root, "docs", "evidence", "performance.md")
		if err := report.write(path); err != nil {
			return err
		}
		w.say("wrote %s", path)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d sections could not be measured: %s", len(failed), strings.Join(failed, "; "))
	}
	return nil
}

// choose finds the sections, in the order of the table, and about how long they take.
func (o options) choose() (chosen []section, estimate time.Duration, err error) {
	only, err := regexp.Compile(o.run)
	if err != nil {
		return nil, 0, fmt.Errorf("read -run: %w", err)
	}
	for _, s := range sections(o) {
		if only.MatchString(s.name) {
			chosen = append(chosen, s)
			estimate += s.takes
		}
	}
	if len(chosen) == 0 {
		return nil, 0, fmt.Errorf("no section matches %q; -list lists them", o.run)
	}
	return chosen, estimate, nil
}

// sections measures one after the other. Where one cannot be measured, the others are
// still worth it: the table says what is missing.
func (w *workshop) sections(chosen []section) (rows []row, failed []string) {
	for i, s := range chosen {
		w.say("[%d/%d] %s, about %s", i+1, len(chosen), s.name, s.takes)
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
