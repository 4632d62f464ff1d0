package demo

import (
	"context"
	"path/filepath"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
)

// judged is one judgement of the demo.
type judged struct {
	Title  string
	Report *conformance.Report
	Page   string // the file of its HTML report, beside the page of the demo
	Want   int    // exit status
}

// judgeAll judges the destination as it should be, and with a rule broken.
func (d *Demo) judgeAll(ctx context.Context) error {
	for _, j := range []struct {
		name, title string
		violate     []string
		want        int
	}{
		{"clean", "A destination that obeys every rule", nil, exit.OK},
		{"broken", "The same destination with " + broken + " broken", []string{broken}, exit.GateFailed},
	} {
		foreign.Printf(d.Out, "\n%s, judged over https with writes, read-back and hooks:\n\n", j.title)
		result, err := d.judge(ctx, j.violate)
		if err != nil {
			return err
		}
		one := judged{Title: j.title, Report: result, Want: j.want}
		if err := d.deliver(j.name, &one); err != nil {
			return err
		}
		d.judgements = append(d.judgements, one)
		if result.ExitStatus != j.want {
			d.wrong("the judge of %q ends with the exit status %d instead of %d", j.title, result.ExitStatus, j.want)
		}
	}
	return nil
}

// judge starts a destination with the given rules broken and judges it. It goes
// the way of any user, over TLS and through the hooks file.
func (d *Demo) judge(ctx context.Context, violate []string) (_ *conformance.Report, err error) {
	port, err := NewDestination(ctx, destsim.Config{Violate: violate})
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := port.Stop(); err == nil {
			err = failed
		}
	}()
	hooks, err := configfile.DecodeHooks("hooks", destsim.Config{}.HooksFile(port.URL))
	if err != nil {
		return nil, err
	}
	step, done := outputs.Progress(d.Screen, d.quiet)
	result, err := destination.Run(ctx, destination.Target{URL: port.URL + "/", Token: Token}, conformance.Options{
		Write: true, Objects: []string{Object}, Roots: port.roots(), Hooks: hooks, Progress: step,
		Readback: conformance.HookSpec{URL: port.URL + "/_control/readback"}, Version: command.ReadBuild().Version,
	})
	done()
	if err != nil {
		return nil, command.JudgeFailure(err)
	}
	return result, nil
}

// deliver shows one judgement and writes it as a page and as JSON for
// 'destkit replay'.
func (d *Demo) deliver(name string, one *judged) error {
	data := filepath.Join(d.dir, name+".json")
	one.Page = name + ".html"
	written := outputs.List{{Format: report.JSON, File: data}, {Format: report.HTML, File: filepath.Join(d.dir, one.Page)}}
	if err := written.Write(d.Out, one.Report, report.Options{}); err != nil {
		return exit.Untested(err)
	}
	err := report.WriteText(d.Out, one.Report, report.Options{
		Color: command.Colourful(d.Out, false), Width: command.Width(d.Out), ReportFile: data, Group: outputs.Groups(d.Out),
	})
	if err != nil {
		return exit.Untested(err)
	}
	return nil
}
