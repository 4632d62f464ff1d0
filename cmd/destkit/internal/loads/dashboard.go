package loads

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	pages "github.com/destkit/destkit/internal/dashboard"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen"
)

// dashboardFlags are those of the page of a load.
type dashboardFlags struct {
	on, keep bool
	addr     string
	token    command.TokenFlag
}

func (d *dashboardFlags) register(f *pflag.FlagSet) {
	f.BoolVar(&d.on, "dashboard", false, "show the load, then its report, in a browser")
	f.StringVar(&d.addr, "dashboard-addr", "127.0.0.1:0", "`HOST:PORT`: of the page")
	f.BoolVar(&d.keep, "dashboard-keep", false, "keep it until Ctrl-C (default: on a terminal, no $CI)")
	d.token.Name = "control-token-env"
	f.StringVar(&d.token.Variable, d.token.Name, "", "variable `NAME` with the token of the page")
}

// check refuses flags of a page that is not requested.
func (d *dashboardFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"dashboard-addr", "dashboard-keep", d.token.Name} {
		if cmd.Flags().Changed(name) && !d.on {
			return exit.Usagef("--%s is about the page of --dashboard: add that", name)
		}
	}
	return command.OpenToOthers("--dashboard-addr", d.addr, d.token)
}

// stays reports whether the report stays on the page after the load. At a terminal there
// is a person who ends it; anything else must not hang.
func (d *dashboardFlags) stays(cmd *cobra.Command) bool {
	if cmd.Flags().Changed("dashboard-keep") {
		return d.keep
	}
	return os.Getenv("CI") == "" && command.Is(cmd.ErrOrStderr()) && command.Input(cmd.InOrStdin())
}

// loadPage is the page of a load on its port; nil: none was requested.
type loadPage struct {
	*pages.Load
	port   *command.Background
	screen io.Writer
	stays  bool
}

// open listens. The run gets its control from the page.
func (d *dashboardFlags) open(cmd *cobra.Command, o *loadgen.Options, limits []loadgen.Threshold) (*loadPage, error) {
	if !d.on {
		return nil, nil
	}
	token, err := d.token.Read()
	if err != nil {
		return nil, err
	}
	o.Control, o.Limits = &loadgen.Control{}, limits
	p := &loadPage{screen: cmd.ErrOrStderr(), stays: d.stays(cmd)}
	p.Load = pages.NewLoad(pages.LoadConfig{Control: o.Control, Limits: limits, Count: o.Count, MaxRecords: o.MaxRecords, Token: token})
	port := &command.Port{Addr: d.addr, Flag: "--dashboard-addr", Handler: p.Load}
	if p.port, err = command.StartPort(context.WithoutCancel(cmd.Context()), port, nil); err != nil {
		return nil, err
	}
	foreign.Printf(p.screen, "dashboard %s/\n", p.port.URL)
	return p, nil
}

func (p *loadPage) moment(m loadgen.Moment) {
	if p != nil {
		p.Moment(m)
	}
}

func (p *loadPage) note(text string) {
	if p != nil {
		p.Note(text)
	}
}

// finish shows the report, and keeps it for a person who looks.
func (p *loadPage) finish(ctx context.Context, r *loadgen.Result) error {
	if p == nil {
		return nil
	}
	if err := p.Finish(r); err != nil {
		return err
	}
	if p.stays && ctx.Err() == nil {
		foreign.Printf(p.screen, "the report stays at %s/ until Ctrl-C\n", p.port.URL)
		<-ctx.Done()
	}
	return nil
}

// close ends the page.
func (p *loadPage) close() {
	if p != nil {
		_ = p.port.Stop() // the load is what counts; those who look come and go
	}
}
