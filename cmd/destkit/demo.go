package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
)

// demoToken is no secret: it opens a destination that lives for seconds on
// loopback.
const demoToken = "demo-token-of-a-destination-that-lives-for-seconds"

// demoBroken is the rule that the second half of the demo breaks.
const demoBroken = "RES-002"

func newDemo() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Judge a simulated destination, then the same one with a rule broken",
		Long: `Start a simulated destination over https with an own certificate authority on
loopback, judge it with writes, a read-back hook and all other hooks, then break
one of its rules (` + demoBroken + `) and show how the finding looks. The HTML reports stay in
a folder. Nothing outside this machine is called.`,
		Example: "  destkit demo\n  destkit demo --dir /tmp/demo",
		Args:    arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return (&demo{dir, cmd.OutOrStdout(), cmd.ErrOrStderr()}).run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "destkit-demo", "write the reports into `DIR`")
	return cmd
}

// demo is one walk through the program. It goes the way of any user, over TLS
// and through the hooks file, and has no private door to the simulator.
type demo struct {
	dir         string
	out, screen io.Writer
}

func (d *demo) run(ctx context.Context) error {
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return usagef("make folder for the reports: %w", err)
	}
	fmt.Fprintf(d.out, "A destination that obeys every rule, over https, with writes, read-back and hooks:\n\n")
	clean, err := d.judge(ctx, "clean")
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe same destination with %s broken:\n\n", demoBroken)
	broken, err := d.judge(ctx, "broken", demoBroken)
	if err != nil {
		return err
	}
	for _, name := range []string{"clean.html", "broken.html"} {
		path, err := filepath.Abs(filepath.Join(d.dir, name))
		if err != nil {
			return untested(err)
		}
		fmt.Fprintf(d.out, "\nreport: file://%s", path)
	}
	fmt.Fprintf(d.out, "\nnext:   destkit conform https://YOUR-ENDPOINT --token-env TOKEN\n")
	// The demo is a test of the whole as well.
	if clean.ExitStatus != statusOK || broken.ExitStatus != statusGate {
		return untested(fmt.Errorf("the demo did not go as it should: exit statuses %d and %d instead of 0 and 1",
			clean.ExitStatus, broken.ExitStatus))
	}
	return nil
}

// judge starts a destination with the given rules broken, judges it, prints
// the result and writes it as HTML, and as JSON for 'destkit replay'.
func (d *demo) judge(ctx context.Context, name string, violate ...string) (_ *conformance.Report, err error) {
	sim, err := destsim.New(destsim.Config{Token: demoToken, Violate: violate})
	if err != nil {
		return nil, untested(err)
	}
	defer sim.Close()
	certificates, err := destsim.NewCertificates(nil)
	if err != nil {
		return nil, untested(err)
	}
	port := &service{addr: "127.0.0.1:0", handler: sim}
	if port.tls, err = certificates.TLSConfig(sim.TLSViolation()); err != nil {
		return nil, untested(err)
	}
	ln, url, err := port.listen()
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- port.serve(serving, ln) }()
	defer func() {
		stop()
		if failed := <-served; err == nil {
			err = failed
		}
	}()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificates.CAPEM())
	hooks, err := decodeHooks("hooks", destsim.HooksFile(url, ""))
	if err != nil {
		return nil, err
	}
	step, done := progress(d.screen, true)
	result, err := conformance.Run(ctx, conformance.Target{URL: url + "/", Token: demoToken}, conformance.Options{
		Write: true, Objects: []string{"contact"}, Roots: roots, Hooks: hooks, Progress: step,
		Readback: conformance.HookSpec{URL: url + "/_control/readback"}, Version: readBuild().Version,
	})
	done()
	if err != nil {
		return nil, judgeError(err)
	}
	return result, d.deliver(name, result)
}

// deliver writes the files of one judgement and shows it.
func (d *demo) deliver(name string, result *conformance.Report) error {
	page, data := filepath.Join(d.dir, name+".html"), filepath.Join(d.dir, name+".json")
	files := outputs{{report.HTML, page}, {report.JSON, data}}
	if err := files.write(d.out, result); err != nil {
		return untested(err)
	}
	err := report.WriteText(d.out, result, report.Options{
		Color: colourful(d.out, false), Width: width(d.out), ReportFile: data,
	})
	if err != nil {
		return untested(err)
	}
	return nil
}
