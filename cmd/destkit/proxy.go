package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/proxy"
	"github.com/destkit/destkit/internal/quantity"
)

// proxying holds the flags of `destkit proxy`.
type proxying struct {
	passiveJudging
	verdicts
	command.Parent

	to, addr         string
	secure           bool
	cert, key, caOut string
	journal, har     string
	limit            time.Duration
	control          string
	controlToken     command.TokenFlag
	controlKeep      bool
	maxBody          int
	quiet            bool
}

// proxyGrace is how long calls under way may take once the proxy stops.
const proxyGrace = 2 * time.Second

func newProxy() *cobra.Command {
	j := &proxying{}
	cmd := &cobra.Command{
		Use:   "proxy --to URL",
		Short: "Pass calls on to an endpoint, record them and judge both sides",
		Long: `Stand between a caller, such as the service, and the endpoint at URL: every
call is passed on, and what goes by is recorded and judged. Give the caller
the address of the proxy as the URL of the endpoint; the first line names it.

Every byte is passed on as it comes; only the Host header is changed, and
nothing is repeated. What traffic alone can decide is judged: the endpoint by
the rules of 'destkit conform', the caller by those of 'destkit conform
service'. The exit status is the worse one of the two (--judge). Ctrl-C or --for
ends the run. Recordings hold no secrets; 'destkit conform --from FILE' judges
one again. The pages of --control-addr are for this machine, and for others with
--control-token-env. Details: docs/proxy.md.`,
		Example: `  destkit proxy --to http://127.0.0.1:8090/
  destkit proxy --to https://example.com/destination --tls --ca-out ca.pem
  destkit proxy --to http://127.0.0.1:8090/ --for 10m --report report.html
  destkit proxy --to http://127.0.0.1:8090/ --journal calls.ndjson
  destkit proxy --to http://127.0.0.1:8090/ --control-addr 127.0.0.1:8071`,
		Args: command.Arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return j.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&j.to, "to", "", "`URL` of the endpoint (default: $"+command.URLVariable+")")
	f.StringVarP(&j.addr, "addr", "a", "127.0.0.1:8070", "`HOST:PORT`: where to listen; port 0: any")
	f.BoolVar(&j.secure, "tls", false, "serve https, with an authority made for it")
	f.StringVar(&j.caOut, "ca-out", "", "write that authority's certificate into `FILE` (PEM)")
	f.StringVar(&j.cert, "tls-cert", "", "serve https with the certificate chain in `FILE` (PEM)")
	f.StringVar(&j.key, "tls-key", "", "`FILE` with the key of --tls-cert (PEM)")
	f.StringVar(&j.journal, "journal", "", "record every call in `FILE`, a line of JSON each")
	f.StringVar(&j.har, "har", "", "record every call in `FILE`, as HTTP Archive 1.2")
	f.DurationVar(&j.limit, "for", 0, "stop after this time, for example 10m (0: on Ctrl-C)")
	f.IntVar(&j.maxBody, "max-body", proxy.DefaultMaxBody, "largest body of `N` bytes that is judged")
	f.StringVar(&j.control, "control-addr", "", "`HOST:PORT`: show calls and findings (default: none)")
	j.controlToken.Name = "control-token-env"
	f.StringVar(&j.controlToken.Variable, "control-token-env", "", "variable `NAME` with the token of --control-addr")
	f.BoolVar(&j.controlKeep, "control-keep", false, "keep those pages after --for, until Ctrl-C")
	f.BoolVarP(&j.quiet, "quiet", "q", false, "no lines about calls, and none about progress")
	j.passiveJudging.register(cmd, "URL")
	f.StringArrayVarP(&j.reports, "report", "r", nil, "`[FORMAT=]FILE`: a report on the endpoint (repeatable)")
	f.BoolVar(&j.options.RequireComplete, "require-complete", false, "exit 6 when a MUST stays undecided")
	f.BoolVar(&j.noColor, "no-color", false, "no colours, also on a terminal")
	j.Register(f, "")
	j.profiling.Register(cmd)
	return cmd
}

// run carries calls until a signal comes or the time is up, and delivers the verdict.
func (j *proxying) run(cmd *cobra.Command) error {
	if j.to == "" {
		url, err := command.EndpointURL(cmd, nil)
		if err != nil {
			return exit.Usagef("missing --to URL of the endpoint; give it, or set $%s", command.URLVariable)
		}
		j.to = url
	}
	if err := command.CheckScheme("endpoint", j.to); err != nil {
		return err
	}
	if proxy.CallsItself(j.to, j.addr) {
		return exit.Usagef("--to and --addr %s are the same address, so the proxy would call itself: give --to the address of the endpoint, or --addr another port", j.addr)
	}
	if j.limit < 0 || j.maxBody < 1 {
		return exit.Usagef("--for and --max-body must be more than nothing")
	}
	if err := j.checkControl(); err != nil {
		return err
	}
	side, err := j.prepare(j.to)
	if err != nil {
		return err
	}
	written, err := outputs.Parse(j.reports)
	if err != nil {
		return err
	}
	port := &command.Port{Addr: j.addr}
	if err := j.secureWith(port); err != nil {
		return err
	}
	stopProfile, err := j.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	files, err := openRecordings(j.journal, j.har)
	if err != nil {
		return err
	}
	defer files.close()
	first, screen := cmd.OutOrStdout(), cmd.OutOrStdout()
	switch taken := written.TakesStdout() || side.callerOutputs.TakesStdout(); {
	case taken && j.AsJSON:
		return exit.Usagef("--json and a report to \"-\" both go to standard output: write the report into a file")
	case j.AsJSON:
		cmd.SetOut(cmd.ErrOrStderr()) // the verdict, too
		screen = cmd.OutOrStdout()
	case taken:
		first, screen = cmd.ErrOrStderr(), cmd.ErrOrStderr()
	}
	j.Watch(cmd)
	view := newTrafficView(screen, j.quiet, j.verbose)
	keep := 0
	if j.control != "" {
		keep = mostShown
	}
	j.shown.rerun = judgeRecording(cmp.Or(j.journal, j.har), side.caller != nil)
	to := side.passive.Secrets().String(j.to)
	recorder, err := proxy.NewRecorder(proxy.RecorderConfig{
		Passive: side.passive, Caller: side.callerJudge(), Journal: files.journal(), HAR: files.har(),
		Header: proxy.JournalHeader{Tool: tool(), Target: to, Started: time.Now().UTC()},
		Tool:   tool(), Line: view.line, Keep: keep,
	})
	if err != nil {
		return exit.Untested(err)
	}
	p, err := proxy.New(proxy.Config{
		To: j.to, TLS: side.passive.TLSConfig(), Verify: side.passive.VerifyTLS, MaxBody: j.maxBody,
		Observer: recorder, Secrets: side.passive.Secrets(),
	})
	if err != nil {
		return exit.Usage(err)
	}
	ln, url, err := port.Open()
	if err != nil {
		p.Close()
		return err
	}
	if port.TLS != nil {
		ln = tls.NewListener(proxy.Bound(ln), port.TLS)
	}
	ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
	if j.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, j.limit)
	}
	defer cancel()
	control, err := j.serveControl(ctx, &proxyTraffic{recorder, p.Counts, report.Options{Rerun: j.shown.rerun}}, url+"/", to)
	if err != nil {
		ln.Close()
		p.Close()
		return err
	}
	defer control.close()
	line := command.FirstLine{}
	if control != nil {
		line.Control = control.port.URL
	}
	if err := j.ListeningAt(first, url, line); err != nil {
		ln.Close()
		p.Close()
		return err
	}
	if path := p.CallerPath(); path != "/" {
		foreign.Printf(screen, "a call of %s/ goes to the URL of the endpoint, any other path as it is\n", url)
	}
	if control != nil {
		foreign.Printf(screen, "control %s\n", control.port.URL)
	}
	stopView := view.start(p.Counts, recorder.Flush)
	served := p.Serve(ctx, ln)
	p.Shutdown(proxyGrace)
	stopView()
	if err := recorder.Close(); err != nil {
		foreign.Println(cmd.ErrOrStderr(), "destkit: "+err.Error())
		served = errors.Join(served, err)
	}
	counts := p.Counts()
	result := recorder.Report()
	noteCounts(result, counts)
	status := side.deliver(cmd, &j.verdicts, result, written, j.verbose)
	stay := served == nil && j.controlKeep && cmd.Context().Err() == nil
	if stay {
		foreign.Printf(screen, "the pages stay at %s until Ctrl-C\n", control.port.URL)
	}
	control.finish() // last: who sees the end on a page may stop the program
	if served != nil {
		return exit.Untested(served)
	}
	if stay {
		<-cmd.Context().Done()
	}
	return exit.With(status)
}

// noteCounts adds to a report what was not judged.
func noteCounts(r *conformance.Report, counts proxy.Counts) {
	if counts.NotJudged > 0 {
		r.Notes = append(r.Notes, foreign.Line(sprintf("%d of %s only passed on, not judged: the judge did not keep up, or a body was longer than --max-body", counts.NotJudged, quantity.Count(counts.Passed, "call"))))
	}
	if counts.Local > 0 {
		r.Notes = append(r.Notes, sprintf("%s answered by the proxy: the endpoint could not be reached, or the request was no good", quantity.Count(counts.Local, "call")))
	}
}

// secureWith chooses the certificate of the proxy's own side.
func (j *proxying) secureWith(port *command.Port) error {
	switch {
	case (j.cert == "") != (j.key == ""):
		return exit.Usagef("--tls-cert and --tls-key go together")
	case j.cert != "" && (j.secure || j.caOut != ""):
		return exit.Usagef("--tls-cert brings a certificate, so --tls and --ca-out, which make one, do not go with it")
	case j.caOut != "" && !j.secure:
		return exit.Usagef("--ca-out needs --tls: without it there is no certificate")
	case j.cert != "":
		pair, err := tls.LoadX509KeyPair(j.cert, j.key)
		if err != nil {
			return exit.Usagef("read --tls-cert and --tls-key: %w", err)
		}
		port.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
		return nil
	case !j.secure:
		return nil
	}
	host, _, err := net.SplitHostPort(j.addr)
	if err != nil {
		return exit.Usagef("--addr %q is not HOST:PORT", j.addr)
	}
	certificates, err := destsim.NewCertificates(nil, host)
	if err != nil {
		return exit.Untested(err)
	}
	if port.TLS, err = certificates.TLSConfig(""); err != nil {
		return exit.Untested(err)
	}
	port.TLS.NextProtos = []string{"http/1.1"}
	if j.caOut == "" {
		return nil
	}
	if err := os.WriteFile(j.caOut, certificates.CAPEM(), 0o644); err != nil {
		return exit.Usagef("write --ca-out: %w", err)
	}
	return nil
}

// recordings are the files of a run.
type recordings struct{ journalFile, harFile *os.File }

// openRecordings makes the files; one that is there is not overwritten.
func openRecordings(journal, har string) (*recordings, error) {
	r := &recordings{}
	for _, f := range []struct {
		flag, name string
		into       **os.File
	}{{"journal", journal, &r.journalFile}, {"har", har, &r.harFile}} {
		if f.name == "" {
			continue
		}
		file, err := os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			r.close()
			return nil, exit.Usagef("--%s %s is there already: name another file, or remove it", f.flag, f.name)
		}
		if err != nil {
			r.close()
			return nil, exit.Usagef("--%s: %w", f.flag, err)
		}
		*f.into = file
	}
	return r, nil
}

func (r *recordings) journal() io.Writer {
	if r.journalFile == nil {
		return nil
	}
	return r.journalFile
}

func (r *recordings) har() io.Writer {
	if r.harFile == nil {
		return nil
	}
	return r.harFile
}

func (r *recordings) close() {
	for _, f := range slices.DeleteFunc([]*os.File{r.journalFile, r.harFile}, func(f *os.File) bool { return f == nil }) {
		f.Close()
	}
}

// tool names this build in recordings.
func tool() conformance.Tool {
	return conformance.Tool{Name: "destkit", Version: command.ReadBuild().Version}
}
