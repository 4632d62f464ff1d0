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
  poll      asks for syncs (--sync, or all of the workspace), their latest runs,
            and each of these by its id
  trigger   starts a run of a sync (--sync) and polls it until it has ended,
            again and again; runs write into destinations, so it needs --write

The next request is sent when the reply has come (closed loop, the default), or
when it is due by --rate, --stages, --steps or --burst. Every reply is checked:
status 200, the envelope {"status":"success","data":...}, the numbers of a page,
no item of a list twice and none missing, the thing that was asked for, a state
that a run can have, and that every run ends in time (--run-timeout).

In figures and limits each request counts as one record, which is acknowledged
when its reply passes every check. Latency, reports, 'load compare', 'load
merge' and exit statuses are those of 'destkit load'. Lists are walked by the
time of creation: what is created meanwhile does no harm; while something is
deleted, missing items are not looked for.`,
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
	f.StringVar(&l.service.Scenario, "scenario", "", "what each client does: `list|poll|trigger`")
	f.BoolVar(&o.Write, "write", false, "allow the scenario trigger to start runs, which write into destinations")
	f.StringSliceVar(&l.service.Lists, "list", nil, "list `NAME` to walk: syncs, destinations, sources (these by default), datasets, webhooks, and sync_runs of each --sync (repeatable, or with commas)")
	f.IntVar(&l.service.PerPage, "per-page", 25, "items on a page of a list, 1 to 100")
	f.Int64SliceVar(&l.service.Syncs, "sync", nil, "`ID` of a sync to poll or to trigger; clients take turns with them (repeatable, or with commas)")
	f.BoolVar(&l.service.FullSync, "full", false, "start full syncs: every record is sent")

	l.registerRates(f)
	f.BoolVar(&o.Closed, "closed", false, "closed loop: the next request when the reply has come (default)")
	f.IntVar(&o.Connections, "connections", 0, "clients at once (0: 8 in a closed loop, 64 for a rate)")
	l.registerLimits(f)
	f.DurationVar(&l.service.PollInterval, "poll-interval", 500*time.Millisecond, "how long a client of a closed loop waits before it asks for the same run again")
	f.DurationVar(&l.service.RunTimeout, "run-timeout", 10*time.Minute, "how long a run may take to its end")
	f.DurationVar(&o.Transport.Timeout, "request-timeout", 30*time.Second, "deadline of a request")

	f.StringVar(&l.token.Variable, "token-env", "", "environment variable `NAME` that holds the API key of the workspace (default "+command.WorkspaceKeyVariable+")")
	f.StringArrayVar(&l.Headers, "header", nil, "send a further header, `'Name: value'`, with every call (repeatable)")
	f.StringVar(&l.Roots, "tls-roots", "", "PEM `FILE` of root certificates that replace the public ones")
	f.StringVar(&l.Development, "development", "auto", "plain http and untrusted chains: `auto|on|off` (auto: allowed on loopback and private addresses)")
	f.StringArrayVar(&l.replicas, "replica", nil, "`URL` of a further process of the same service: connections are spread over all of them (repeatable)")
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
