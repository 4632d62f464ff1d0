package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/destsim"
)

// serviceJudgement is a `conform service` on its way.
type serviceJudgement struct {
	serviceJudging
	verdicts
}

// serviceJudging holds what `conform service` and `plan service` have in common.
type serviceJudging struct {
	choosing
	target       service.Target
	roots        string
	control      command.TokenFlag
	simulatorURL string
	simulatorAt  string
	dialect      string
	source       int64
	patient      bool
	slow         time.Duration
}

func newConformService() *cobra.Command {
	j := &serviceJudgement{}
	cmd := &cobra.Command{
		Use:   "service BASE_URL",
		Short: "Judge a service: its REST API, and how it calls destinations",
		Long: `Judge the service whose API stands at BASE_URL (it ends in /api/v1): which
rules of the API hold, and which of those by which it calls destinations.

The judge makes what it needs through the API, all with names that begin with
zz-conf-, and deletes it again; nothing else is touched. Its destinations are
simulators in this program, which the service must reach (--simulator-url).
Tokens come from ` + command.WorkspaceKeyVariable + ` and
` + command.AccessTokenVariable + `. Rules about time need --control-url, or
--patient, which waits. With --dialect live, named differences are WAIVED.
Verdict, waivers, reports and exit statuses are those of 'destkit conform'.
Details: docs/judge-service.md.`,
		Example: `  destkit conform service http://127.0.0.1:8080/api/v1 \
      --control-url http://127.0.0.1:8080/_control
  destkit conform service https://api.example.com/api/v1 --source 12 \
      --simulator-url https://tunnel.example.com
  destkit conform service http://127.0.0.1:8080/api/v1 --select 'CALL-*' \
      --report junit=junit.xml`,
		Args: command.Arguments(1, 1, "the base URL of the API, which ends in /api/v1"),
		RunE: func(cmd *cobra.Command, args []string) error { return j.conform(cmd, args[0]) },
	}
	j.serviceJudging.register(cmd)
	j.verdicts.register(cmd, &j.options, "things")
	return cmd
}

// register adds the flags that decide what is judged, and how.
func (j *serviceJudging) register(cmd *cobra.Command) {
	j.control.Name = "control-token-env"
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&j.target.ControlURL, "control-url", "", "control API of a stand-in: a `URL` with /_control")
	f.StringVar(&j.control.Variable, "control-token-env", "", "variable `NAME` with the token of --control-url")
	f.StringVar(&j.simulatorURL, "simulator-url", "", "`URL` that leads to the address of --simulator-listen")
	f.StringVar(&j.simulatorAt, "simulator-listen", "127.0.0.1:0", "`HOST:PORT`: of the simulators")
	f.StringVar(&j.dialect, "dialect", "spec", "`spec|live`: what the service follows")
	f.Int64Var(&j.source, "source", 0, "`ID` of an SQL source to read (default: an emulated one)")
	f.BoolVar(&j.patient, "patient", false, "wait for real, at most 15m each (--timeout is then 2h)")
	f.DurationVar(&j.slow, "request-timeout", 0, "the service's own deadline (0: not known)")
	f.StringVar(&j.roots, "tls-roots", "", "PEM `FILE` of roots that replace the public ones")
	f.StringVar(&j.options.Journal, "journal", "", "names made (default `FILE`: destkit-journal-….ndjson)")
	j.choosing.register(cmd, 10*time.Minute, "'SYN-*'", "YAML `FILE` of settings; each flag can stand there under its own name")
}

// conform judges, writes the reports and returns the exit status as an error.
func (j *serviceJudgement) conform(cmd *cobra.Command, url string) error {
	options, err := j.resolve(cmd, url)
	if err != nil {
		return err
	}
	j.shown = shownCommands{rerun: rerunWords(cmd, url), secrets: secretWords{}}
	if name := j.control.Variable; name != "" {
		j.shown.secrets["DESTKIT_CONTROL_TOKEN"] = "${" + name + "}"
	}
	files, err := outputs.Parse(j.reports)
	if err != nil {
		return err
	}
	stopProfile, err := j.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	step, done := outputs.Progress(cmd.ErrOrStderr(), j.quiet)
	options.Progress = step
	result, err := journalled(&options.Options, true, func() (*conformance.Report, error) { return service.Run(cmd.Context(), j.target, options) })
	done()
	if err != nil {
		return command.Failure(err)
	}
	return j.deliver(cmd, result, files, j.verbose)
}

// resolve reads the configuration file, the tokens and the files that flags name.
func (j *serviceJudging) resolve(cmd *cobra.Command, url string) (service.Options, error) {
	var o service.Options
	if err := command.CheckScheme("service", url); err != nil {
		return o, err
	}
	j.target.BaseURL = url
	if j.config != "" {
		if _, err := configfile.Apply(cmd, j.config); err != nil {
			return o, err
		}
	}
	if err := j.choosing.resolve(); err != nil {
		return o, err
	}
	if j.patient && !cmd.Flags().Changed("timeout") {
		j.options.Timeout = 0 // the judge knows how long patience may take
	}
	if j.slow < 0 {
		return o, exit.Usagef("--request-timeout cannot be negative, here it is %s", j.slow)
	}
	if err := j.resolveTarget(); err != nil {
		return o, err
	}
	if err := checkJournal(j.options.Journal); err != nil {
		return o, err
	}
	if j.simulatorURL != "" {
		if err := command.CheckURL("--simulator-url", j.simulatorURL); err != nil {
			return o, err
		}
	}
	o = service.Options{
		Options: j.options, Dialect: j.dialect, SourceID: j.source, Patient: j.patient, RequestTimeout: j.slow,
		NewSimulator: newStageSimulator, Listen: j.listen,
	}
	return o, nil
}

func (j *serviceJudging) resolveTarget() (err error) {
	if j.target.Roots, err = command.Roots(j.roots); err != nil {
		return err
	}
	return j.resolveTokens()
}

func (j *serviceJudging) resolveTokens() (err error) {
	j.target.PersonalAccessToken, j.target.WorkspaceAPIKey = os.Getenv(command.AccessTokenVariable), os.Getenv(command.WorkspaceKeyVariable)
	j.target.ControlToken, err = j.control.Read()
	return err
}

// listen serves the judge's destinations on a port of this program.
func (j *serviceJudging) listen(config *tls.Config, h http.Handler) (string, func(), error) {
	port := &command.Port{Addr: j.simulatorAt, Flag: "--simulator-listen", Handler: h, TLS: config}
	if config != nil {
		port.Addr = "127.0.0.1:0" // one more port, besides the ordinary one
	}
	served, err := command.StartPort(context.Background(), port, nil)
	if err != nil {
		return "", nil, err
	}
	url := served.URL
	if j.simulatorURL != "" && config == nil {
		url = j.simulatorURL
	}
	return url, func() { _ = served.Stop() }, nil
}

// newStageSimulator is a simulated destination in the words of the judge.
func newStageSimulator(c service.SimulatorConfig) (service.Simulator, error) {
	config := destsim.Config{Speed: c.Speed, RateLimit: -1}
	for _, o := range c.Objects {
		config.Objects = append(config.Objects, destsim.Described(o, c.Operations[o.APIName], c.Fields[o.APIName]))
	}
	return destsim.New(config)
}
