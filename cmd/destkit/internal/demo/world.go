package demo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/loads"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/cmd/destkit/internal/serve"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/loadpage"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
	"github.com/destkit/destkit/server"
)

// Places are the parts of the demo's data.
type Places struct{ Service, Key, Destination string }

func places(dir string) Places {
	return Places{filepath.Join(dir, "service"), filepath.Join(dir, "master.key"), filepath.Join(dir, "destination.db")}
}

// Port is a handler that is served on loopback.
type Port struct {
	*command.Background
	Certificates *destsim.Certificates // nil: plain http
}

// stop ends it; its own error counts where there is no other.
func (p *Port) stop(err *error) { *err = cmp.Or(*err, p.Stop()) }

// roots trusts the destination alone.
func (p *Port) roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.Certificates.CAPEM())
	return roots
}

// NewDestination serves a simulator over https. Tests put something in front of it.
func NewDestination(ctx context.Context, config destsim.Config, front ...func(http.Handler) http.Handler) (*Port, error) {
	config.Token = Token
	sim, err := destsim.New(config)
	if err != nil {
		return nil, exit.Untested(err)
	}
	certificates, err := destsim.NewCertificates(nil)
	if err != nil {
		return nil, exit.Untested(errors.Join(err, sim.Close()))
	}
	port := &command.Port{Addr: "127.0.0.1:0", Handler: sim}
	for _, f := range front {
		port.Handler = f(port.Handler)
	}
	if port.TLS, err = certificates.TLSConfig(sim.TLSViolation()); err != nil {
		return nil, exit.Untested(errors.Join(err, sim.Close()))
	}
	served, err := command.StartPort(ctx, port, sim.Close)
	if err != nil {
		return nil, err
	}
	return &Port{served, certificates}, nil
}

// callTimeout bounds one call of the demo: an audit of many rows takes minutes.
const callTimeout = 15 * time.Minute

// NewService serves the service on a data directory, as 'destkit serve'
// does, and returns a client of it with the key of its workspace. Tests change its
// configuration.
func NewService(ctx context.Context, files Places, trusted []byte, change ...func(*server.Config)) (*Port, *syncs.Client, error) {
	key, err := serve.MakeKeyFile(files.Key)
	if err != nil {
		return nil, nil, err
	}
	s := serve.Flags{}
	s.Config.Dir, s.Config.MasterKey, s.Config.Trusted = files.Service, key.Bytes, trusted
	s.Config.Version, s.Config.Owner = command.ReadBuild().Version, "destkit demo"
	s.Config.CallTimeout = 30 * time.Second
	for _, f := range change {
		f(&s.Config)
	}
	listening := &command.Port{Addr: "127.0.0.1:0"}
	ln, url, err := listening.Open() // first: the service never calls itself there
	if err != nil {
		return nil, nil, err
	}
	if err := s.Reach.ListensAt(&s.Config, ln.Addr()); err != nil {
		return nil, nil, errors.Join(err, ln.Close())
	}
	world, err := s.Open(ctx, key)
	if err != nil {
		return nil, nil, errors.Join(err, ln.Close())
	}
	listening.Handler = world
	port := &Port{Background: command.StartPortOn(ctx, listening, ln, url, world.Close)}
	client := &syncs.Client{Root: port.URL, Token: world.FirstTokens().WorkspaceAPIKey, HTTP: &http.Client{Timeout: callTimeout}}
	return port, client, nil
}

// Audit is the result of the service's audit: it reads every record of the
// destination through the read-back hook and holds it against the source and
// the ledger.
type Audit struct {
	Clean   bool `json:"clean"`
	Checked struct {
		Source      int64 `json:"source"`
		Ledger      int64 `json:"ledger"`
		Destination int64 `json:"destination"`
		Runs        int64 `json:"runs"`
	} `json:"checked"`
	Totals   map[string]int64 `json:"totals"`
	Findings []struct {
		Kind       string          `json:"kind"`
		Identifier json.RawMessage `json:"identifier"`
		Message    string          `json:"message"`
	} `json:"findings"`
	Seconds float64 `json:"-"`
}

// shownFindings is how many findings are shown.
const shownFindings = 5

// String is the audit on one line.
func (a Audit) String() string {
	verdict := "clean"
	if !a.Clean {
		verdict = "not clean"
	}
	return fmt.Sprintf("%s: %s read back from the destination, %s of the source and %s of the ledger compared, %s counted up anew; %.1f s",
		verdict, quantity.Counted(a.Checked.Destination, "record"), quantity.Counted(a.Checked.Source, "row"), quantity.Counted(a.Checked.Ledger, "identifier"), quantity.Count(a.Checked.Runs, "run"), a.Seconds)
}

// prove has the service audited, after the last run.
func (d *Demo) prove(ctx context.Context, w *World, last step) error {
	foreign.Print(d.Out, "\naudit ") // it takes a moment
	began := time.Now()
	body := map[string]any{"sync_id": w.Sync, "readback": map[string]string{"url": w.Destination.Root + "/_control/readback"}}
	done := command.GoesOn(d.Screen, d.quiet, "auditing")
	err := w.API.Control(ctx, http.MethodPost, "/audit", body, &d.audit)
	done()
	if err != nil {
		return err
	}
	d.audit.Seconds = time.Since(began).Seconds()
	foreign.Println(d.Out, d.audit)
	a := d.audit
	for i, finding := range a.Findings {
		if i == shownFindings {
			break
		}
		d.wrong("audit: %s %s: %s", finding.Kind, foreign.Line(command.CompactJSON(finding.Identifier)), foreign.Line(finding.Message))
	}
	if !a.Clean && len(a.Findings) == 0 {
		d.wrong("the audit is not clean")
	}
	// An audit that looks at nothing is clean as well.
	if a.Checked.Source != last.source || a.Checked.Destination != last.stored || a.Checked.Ledger < last.stored || a.Checked.Runs != int64(len(d.runs)) {
		d.wrong("the audit looked at %s, %s and %s instead of %s, %s and %d", quantity.Counted(a.Checked.Source, "row"),
			quantity.Counted(a.Checked.Destination, "record"), quantity.Count(a.Checked.Runs, "run"), quantity.Grouped(last.source), quantity.Grouped(last.stored), len(d.runs))
	}
	return nil
}

// loadReport is the page of the load, next to that of the demo.
const loadReport = "load.html"

// loadFor is how long the demo's load lasts: long enough for a plot.
const loadFor = 2 * time.Second

// loadOnce loads a destination over https and compares acknowledged with
// stored records.
func (d *Demo) loadOnce(ctx context.Context) (err error) {
	port, err := NewDestination(ctx, destsim.Config{})
	if err != nil {
		return err
	}
	defer port.stop(&err)
	foreign.Printf(d.Out, "\nA load of that destination, over https, every reply checked:\n\n")
	show := loads.NewDisplay(d.Screen, d.quiet || !command.Is(d.Screen))
	result, err := loadgen.Run(ctx, loadgen.Options{
		Target: loadgen.Target{URL: port.URL + "/", Token: Token, Roots: port.roots()},
		Write:  true, Closed: true, Duration: loadFor, Version: command.ReadBuild().Version, Progress: show.Moment,
		Work: loadgen.Work{Objects: []loadgen.Share{{Name: Object}}, BatchSize: 100},
	})
	show.Done()
	if err != nil {
		return command.Failure(err)
	}
	d.load = result
	loads.WriteSummary(d.Out, result)
	if result.Errors > 0 || result.Records == 0 || result.Acknowledged != result.Records {
		d.wrong("the load: %s of %s were acknowledged", quantity.Grouped(result.Acknowledged), quantity.Counted(result.Records, "record"))
	}
	world := &World{Destination: ControlOf(port)}
	after, err := world.held(ctx)
	if err != nil {
		return exit.Untested(fmt.Errorf("read the counts of the destination: %w", err))
	}
	if after.records != result.Acknowledged {
		d.wrong("the load: %s acknowledged, and %s stored", quantity.Counted(result.Acknowledged, "record"), quantity.Grouped(after.records))
	}
	var page bytes.Buffer
	if err := loadpage.Write(&page, result); err != nil {
		return exit.Untested(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, loadReport), page.Bytes(), 0o644); err != nil {
		return exit.Untested(fmt.Errorf("write %s: %w", loadReport, err))
	}
	return nil
}

// judged is one judgement of the demo.
type judged struct {
	Title  string
	Report *conformance.Report
	Page   string // the file of its HTML report, next to the page of the demo
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
	defer port.stop(&err)
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
		return nil, command.Failure(err)
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
