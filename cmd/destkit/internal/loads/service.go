package loads

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/loadgen"
)

// serviceLoading holds the flags of `destkit load service`.
type serviceLoading struct {
	loading
	service loadgen.Service
	token   command.TokenFlag
}

func newService() *cobra.Command {
	var l serviceLoading
	cmd := &cobra.Command{
		Use:   "service URL --scenario list|poll|trigger",
		Short: "Measure how fast a service answers its REST API",
		Long: `Load the REST API of the service at URL, with or without /api/v1, as its clients
do, and measure how many requests it answers, at what latency, and whether each
reply is right. Every connection is a client, which does one of:
  list      walks lists (--list) from the first page to the last
  poll      asks for syncs (--sync, or all of the workspace) and their runs
  trigger   starts a run of a sync (--sync) and polls it to its end, over and
            over; runs write into destinations, so it needs --write
A request counts as one record, acknowledged when its reply passes all checks.
Rates, latency and reports are those of 'destkit load'. Details: docs/load.md.`,
		Example: `  destkit load service http://127.0.0.1:8080 --scenario list --duration 30s
  destkit load service https://api.example.com --token-env API_KEY \
      --scenario poll --rate 200 --fail-if 'p99>300ms' --report r.json
  destkit load service http://127.0.0.1:8080 --scenario trigger --sync 7 \
      --write --connections 1 --fail-if 'runs-failed>0'`,
		Args: command.Arguments(1, 1, "the URL of the service"),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args[0]) },
	}
	l.register(cmd)
	return cmd
}

func (l *serviceLoading) register(cmd *cobra.Command) {
	o, f := &l.options, cmd.Flags()
	f.SortFlags = false
	f.StringVar(&l.service.Scenario, "scenario", "", "`list|poll|trigger`: what each client does")
	f.BoolVar(&o.Write, "write", false, "allow trigger to start runs, which write records")
	f.StringSliceVar(&l.service.Lists, "list", nil, "`NAME` to walk: syncs, destinations, sources (by default), datasets, webhooks, sync_runs of each --sync (repeatable)")
	f.IntVar(&l.service.PerPage, "per-page", 25, "items on a page of a list, 1 to 100")
	f.Int64SliceVar(&l.service.Syncs, "sync", nil, "`ID` of a sync to poll or to trigger (repeatable)")
	f.BoolVar(&l.service.FullSync, "full", false, "start full syncs: every record is sent")

	l.registerRates(f)
	f.BoolVar(&o.Closed, "closed", false, "the next request when the reply has come (default)")
	f.IntVar(&o.Connections, "connections", 0, "clients at once (0: 8 in a closed loop, 64 for a rate)")
	l.registerLimits(f)
	f.DurationVar(&l.service.PollInterval, "poll-interval", 500*time.Millisecond, "closed loop: ask for a run so often")
	f.DurationVar(&l.service.RunTimeout, "run-timeout", 10*time.Minute, "how long a run may take to its end")
	f.DurationVar(&o.Transport.Timeout, "request-timeout", 30*time.Second, "deadline of a request")

	f.StringVar(&l.token.Variable, "token-env", "", "environment variable `NAME` with the API key of the workspace (default "+command.WorkspaceKeyVariable+")")
	f.StringArrayVar(&l.Headers, "header", nil, "`'Name: value'`: a further header of every call (repeatable)")
	f.StringVar(&l.Roots, "tls-roots", "", "PEM `FILE` of roots that replace the public ones")
	f.StringVar(&l.Development, "development", "auto", "`auto|on|off`: allow http, any TLS (default auto: if private)")
	f.StringArrayVar(&l.replicas, "replica", nil, "`URL` of a further process to spread over (repeatable)")
	l.registerClient(f)
	l.registerOutput(cmd)
}

// run loads a service.
func (l *serviceLoading) run(cmd *cobra.Command, url string) error {
	if err := l.resolve(cmd, url); err != nil {
		return err
	}
	return l.send(cmd)
}

// resolve turns the flags into options.
func (l *serviceLoading) resolve(cmd *cobra.Command, url string) error {
	for _, u := range append([]string{url}, l.replicas...) {
		if err := command.CheckScheme("service", u); err != nil {
			return err
		}
	}
	if err := l.checkDuration(cmd); err != nil {
		return err
	}
	for flag, value := range map[string]time.Duration{
		"poll-interval": l.service.PollInterval, "run-timeout": l.service.RunTimeout, "request-timeout": l.options.Transport.Timeout,
	} {
		if value <= 0 {
			return exit.Usagef("--%s must be longer than nothing, not %s", flag, value)
		}
	}
	if l.service.PerPage < 1 {
		return exit.Usagef("--per-page %d is not from 1 to 100", l.service.PerPage)
	}
	for _, step := range []func() error{l.resolveRates, l.resolveShares, l.resolveClient} {
		if err := step(); err != nil {
			return err
		}
	}
	if len(l.options.Stages) > 0 && cmd.Flags().Changed("poll-interval") {
		return exit.Usagef("--poll-interval is of a closed loop: with a rate, requests are sent when they are due")
	}
	return l.resolveTarget(url)
}

// resolveTarget reads the key, the headers and the roots.
func (l *serviceLoading) resolveTarget(url string) error {
	o := &l.options
	if l.token.Variable == "" {
		l.token = command.TokenFlag{Name: command.WorkspaceKeyVariable, Variable: command.WorkspaceKeyVariable}
	}
	token, err := l.token.Read()
	if err != nil {
		return err
	}
	headers, err := command.Headers(l.Headers)
	if err != nil {
		return err
	}
	roots, err := command.Roots(l.Roots)
	if err != nil {
		return err
	}
	o.Target = loadgen.Target{URL: url, Replicas: l.replicas, Token: token, Headers: headers, Roots: roots, Development: l.Development}
	o.Service, o.Version = &l.service, command.ReadBuild().Version
	return nil
}
