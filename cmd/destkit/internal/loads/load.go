// Package loads is `destkit load` and its subcommands: flags, the page and the metrics of
// a load, its files. The load itself is package loadgen.
package loads

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/loadgen"
)

// loading holds the flags of `destkit load`. Most bind onto loadgen.Options;
// resolve turns the rest into it.
type loading struct {
	command.Connection
	dials   conformance.Options // where the flags of a connection put their values
	options loadgen.Options

	config      string
	settingKeys func() []string
	settings    configfile.Settings

	objects, operations, fields             []string
	rate, recordsRate, stages, steps, burst string
	repeats, abort, catchUp, startAt        string
	search                                  bool
	slo, client                             string
	confirm                                 time.Duration
	data                                    loadgen.Data
	dataKeys, template, keyRange            string
	failIf                                  []string
	reading                                 command.Reading
	replicas                                []string
	verify                                  string
	files                                   files
	prometheus                              string
	dashboard                               dashboardFlags
	quiet, noColor                          bool
	profiling                               command.Profiling
}

// New is the hammer's door; settings gives the keys of a configuration of conform.
func New(settings func() []string) *cobra.Command {
	l := loading{settingKeys: settings}
	cmd := &cobra.Command{
		Use:   "load [URL] --write --object NAME",
		Short: "Measure how fast a custom destination takes batches",
		Long: `Send batches to the custom destination at URL and measure how many it takes, at
what latency, and where it breaks. Records are real writes; --cleanup, or later
'destkit load clean', deletes exactly them. Only --as-declared, the default,
stays within the declared limits. URL: or $DESTKIT_URL. Details: docs/load.md.`,
		Example: `  destkit load http://127.0.0.1:8080/ --write -o contact --closed --duration 30s
  destkit load http://127.0.0.1:8080/ --write -o contact --rate 500 --cleanup \
      --fail-if 'p99>500ms' --fail-if 'errors>0.1%' --report r.json`,
		Args: command.Arguments(0, 1, "the URL of the endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args) },
	}
	l.register(cmd)
	command.WordsOf(cmd, map[string]string{
		"vus": "--connections N", "concurrency": "--connections N", "workers": "--connections N", "threads": "--connections N", "t": "--connections N",
		"d": "--duration 30s", "z": "--duration 30s", "qps": "--rate N", "rps": "--rate N", "R": "--rate N", "requests": "--count N", "n": "--count N", "iterations": "--count N",
		"threshold": "--fail-if 'p99>500ms'", "thresholds": "--fail-if 'p99>500ms'", "out": "--report json=FILE", "summary-export": "--report json=FILE",
		"insecure": "--tls-roots FILE, which trusts the certificate of the endpoint", "insecure-skip-tls-verify": "--tls-roots FILE, which trusts the certificate of the endpoint",
		"k": "--tls-roots FILE, which trusts the certificate of the endpoint", "stage": "--stages 30s@100,1m@100-1000",
		"run": "the URL alone: destkit load URL", "attack": "the URL alone: destkit load URL",
	})
	command.EndHelp(cmd, command.LoadExitTable)
	cmd.AddCommand(newCompare(), newMerge(), newClean(), newService())
	return cmd
}

func (l *loading) register(cmd *cobra.Command) {
	o, f := &l.options, cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.Write, "write", false, "allow writing into --object; else nothing is sent")
	f.StringSliceVarP(&l.objects, "object", "o", nil, "`NAME[=WEIGHT]`: object to write into (repeatable)")
	f.StringSliceVar(&l.operations, "operation", nil, "`OP[=WEIGHT]`: upsert (default), insert, update, delete: a mix")
	f.IntVar(&o.Work.BatchSize, "batch-size", 0, "records in a batch (0: maximum_batch_size)")

	f.BoolVar(&o.AsDeclared, "as-declared", false, "send exactly what the endpoint declares (default)")
	f.DurationVar(&o.AskSpeed, "ask-speed", 30*time.Second, "as declared: ask the speed so often")
	f.StringVar(&l.recordsRate, "records-rate", "", "`N[/s|/m]`: records per second, or a ramp FROM-TO")
	l.registerRates(f)
	f.BoolVar(&o.Closed, "closed", false, "closed loop: the next batch when the reply has come")
	f.BoolVar(&l.search, "search", false, "look for the highest rate that holds --slo")
	f.StringVar(&l.slo, "slo", "", "`GOALS` of a search, for example p99=200ms,errors=0.1%")
	f.DurationVar(&l.confirm, "confirm", 10*time.Second, "how long a found rate is confirmed")

	f.IntVar(&o.Connections, "connections", 0, "at once (0: as declared, up to 50; 64 for a rate)")
	f.Int64Var(&o.MaxRecords, "max-records", 0, "write at most `N` records in the whole run (0: no bound)")
	l.registerLimits(f)

	f.StringVar(&l.data.Path, "data", "", "take records from a CSV, JSON lines or Parquet `FILE`")
	f.StringVar(&l.dataKeys, "data-keys", "run", "`run|file`: keys; a file's are never deleted")
	f.StringVar(&l.template, "template", "", "make records from a JSON `FILE` with placeholders")
	f.StringSliceVar(&l.fields, "field", nil, "map only `NAME` and what is required (repeatable)")
	f.StringVar(&o.Work.Identifier, "identifier", "", "field `NAME` to match by (default: the first required)")
	f.StringVar(&l.repeats, "repeat-keys", "", "`SHARE` of records with a key that was sent before: 20%")
	f.IntVar(&o.Work.Prime, "prime", 10000, "records to write before mere updates")
	f.StringVar(&o.KeyTemplate, "key-template", loadgen.DefaultKeyTemplate, "`TEMPLATE`: string keys")
	f.StringVar(&l.keyRange, "key-range", "", "`FROM:TO`: integer keys (default: 10^9 above 2·10^12)")
	f.StringVar(&o.Journal, "journal", "", "`FILE` of the keys to be sent, for 'destkit load clean'")
	f.BoolVar(&o.Cleanup, "cleanup", false, "delete at the end what was written")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of values and choices (0: chosen, and reported)")

	f.StringArrayVar(&l.replicas, "replica", nil, "`URL` of a further process to spread over (repeatable)")
	l.reading.Register(cmd, &l.dials)
	f.StringVar(&l.verify, "verify", "", "`SHARE|all`: read back so much (default 1%, 1,000 to 100,000 keys)")

	l.registerClient(f)
	f.BoolVar(&o.Transport.Compress, "compress", false, "offer gzip and deflate as the service does")
	l.Register(cmd, &l.dials)
	_ = f.MarkHidden("url-secret") // the path and the query are never shown here

	f.StringVarP(&l.config, "config", "c", "", configfile.Flag)
	l.registerOutput(cmd)
}

// sharedKeys are the settings of conform that mean the same for a load.
var sharedKeys = []string{
	"token-env", "header", "tls-roots", "development", "planning-timeout", "batch-timeout", "replica",
	"write", "object", "key-range", "readback-url", "readback-command", "readback-window",
}

// readSettings takes the settings of the endpoint from a configuration of conform.
func (l *loading) readSettings(cmd *cobra.Command) (err error) {
	l.settings, err = configfile.Load(cmd, l.config, lists.Where(l.settingKeys(), func(key string) bool { return !slices.Contains(sharedKeys, key) })...)
	l.settings.Fixtures = nil // values of a load are other ones
	return err
}

// registerRates adds the ways of an open loop.
func (l *loading) registerRates(f *pflag.FlagSet) {
	f.StringVar(&l.rate, "rate", "", "`N[/s|/m]`: requests per second, or a ramp FROM-TO")
	f.StringVar(&l.stages, "stages", "", "`TIME@RATE,…`: one after the other: 30s@100,1m@100-1000")
	f.StringVar(&l.steps, "steps", "", "`N,N,…`: rates, each for an equal part of the duration")
	f.StringVar(&l.burst, "burst", "", "`SIZE/TIME`: requests at once, so often: 500/10s")
}

// registerLimits adds the flags for the length and the limits of a load.
func (l *loading) registerLimits(f *pflag.FlagSet) {
	o := &l.options
	f.DurationVar(&o.Duration, "duration", 0, "how long to measure (default 10s)")
	f.Int64Var(&o.Count, "count", 0, "stop after `N` requests")
	f.DurationVar(&o.WarmUp, "warm-up", 0, "send for so long before measuring")
	f.StringVar(&l.catchUp, "catch-up", "2", "late: at most `N` times the rate, or burst")
	f.StringVar(&l.startAt, "start-at", "", "begin at `TIME`, such as 2027-01-31T10:15:00Z")
	f.StringSliceVar(&l.failIf, "fail-if", nil, "exit 1 when `LIMIT` comes true: 'p99>500ms' (repeatable)")
	f.StringVar(&l.abort, "abort-errors", "", "`SHARE`: stop when so much of five seconds failed, as 20%")
}

// registerClient adds how connections are made.
func (l *loading) registerClient(f *pflag.FlagSet) {
	o := &l.options
	f.StringVar(&l.client, "http-client", "own", "`own|standard`: this program's, or Go's net/http")
	f.BoolVar(&o.Transport.HTTP2, "http2", false, "offer HTTP/2 (standard client)")
	f.StringVar(&o.Transport.Proxy, "proxy", "", "`URL` of an http or socks5 proxy (standard client)")
	f.BoolVar(&o.Transport.Reconnect, "new-connections", false, "a new connection for every request")
}

// registerOutput adds where figures go.
func (l *loading) registerOutput(cmd *cobra.Command) {
	f := cmd.Flags()
	l.files.register(f)
	f.StringVar(&l.prometheus, "prometheus", "", "`HOST:PORT`: serve /metrics, and profiles to this machine")
	l.dashboard.register(f)
	f.BoolVarP(&l.quiet, "quiet", "q", false, "no live view")
	f.BoolVar(&l.noColor, "no-color", false, "no colours, also on a terminal")
	l.profiling.Register(cmd)
}

// run loads, writes the files and shows the result.
func (l *loading) run(cmd *cobra.Command, args []string) error {
	address, err := command.EndpointURL(cmd, args)
	if err != nil {
		return err
	}
	if err := l.checkDuration(cmd); err != nil {
		return err
	}
	if err := l.readSettings(cmd); err != nil {
		return err
	}
	if err := l.resolve(cmd, address); err != nil {
		return l.settings.Placed(err)
	}
	return l.send(cmd)
}

// checkDuration refuses a duration that was given and is none, where 0 means the
// default, and numbers below 0.
func (l *loading) checkDuration(cmd *cobra.Command) error {
	if cmd.Flags().Changed("duration") && l.options.Duration <= 0 {
		return exit.Usagef("--duration must be longer than nothing, not %s", l.options.Duration)
	}
	o := &l.options
	for _, n := range []struct {
		flag  string
		value int64
	}{{"max-records", o.MaxRecords}, {"prime", int64(o.Work.Prime)}, {"count", o.Count}} {
		if n.value < 0 {
			return exit.Usagef("--%s cannot be negative: %d", n.flag, n.value)
		}
	}
	if o.WarmUp < 0 {
		return exit.Usagef("--warm-up cannot be negative: %s", o.WarmUp)
	}
	return nil
}

// send runs the requested load, and delivers its result.
func (l *loading) send(cmd *cobra.Command) error {
	thresholds, err := l.thresholds()
	if err != nil {
		return err
	}
	if err := l.measurable(thresholds); err != nil {
		return err
	}
	if err := l.files.check(); err != nil {
		return err
	}
	if err := l.dashboard.check(cmd); err != nil {
		return err
	}
	if l.files.takesStdout() {
		l.settings.Announce(cmd.ErrOrStderr())
	} else {
		l.settings.Announce(cmd.OutOrStdout())
	}
	stopProfile, err := l.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	page, err := l.dashboard.open(cmd, &l.options, thresholds)
	if err != nil {
		return err
	}
	defer page.close()
	result, err := l.watched(cmd, l.options, page)
	if err != nil {
		return command.Failure(err)
	}
	delivered := l.deliver(cmd, result, thresholds)
	if err := page.finish(cmd.Context(), result); err != nil {
		foreign.Println(cmd.ErrOrStderr(), "destkit: show the report: "+err.Error())
	}
	return delivered
}

// watched runs a load with its live view, its metrics and its page.
func (l *loading) watched(cmd *cobra.Command, o loadgen.Options, page *loadPage) (*loadgen.Result, error) {
	screen := cmd.ErrOrStderr()
	show := NewDisplay(screen, l.quiet)
	meter, err := ServeMetrics(cmd.Context(), l.prometheus, screen)
	if err != nil {
		return nil, err
	}
	defer meter.Stop()
	o.Progress = func(m loadgen.Moment) { show.Moment(m); meter.Take(m); page.moment(m) }
	o.Note = func(text string) { show.Note(text); page.note(text) }
	result, err := loadgen.Run(cmd.Context(), o)
	show.Done()
	return result, err
}

// deliver writes the files, prints the summary and decides the exit status.
func (l *loading) deliver(cmd *cobra.Command, result *loadgen.Result, thresholds []loadgen.Threshold) error {
	for i := range thresholds {
		thresholds[i].Check(result)
	}
	result.Thresholds = thresholds
	status := loadStatus(result)
	result.CleanCommand = l.cleanCommand(cmd, result)
	if err := l.files.write(cmd.OutOrStdout(), result); err != nil {
		foreign.Println(cmd.ErrOrStderr(), "destkit: "+err.Error())
		status = exit.Worst(status, exit.NotTested)
	}
	out := cmd.OutOrStdout()
	if l.files.takesStdout() {
		out = cmd.ErrOrStderr()
	}
	WriteSummary(out, result)
	if why := result.Useless(); why != "" && result.Ended != "interrupted" {
		foreign.Println(cmd.ErrOrStderr(), "destkit: "+why)
	}
	return exit.With(status)
}

// loadStatus is the exit status of a load: errors alone do not change it, unless
// there was nothing else, or an acknowledged record was not read back as it must be.
func loadStatus(r *loadgen.Result) int {
	status := exit.OK
	switch {
	case r.Ended == "interrupted", r.Useless() == "":
	case r.Answered() == 0 && r.Requests+r.Generator.Unanswered > 0:
		status = exit.NotTested
	default:
		status = exit.GateFailed
	}
	for _, t := range r.Thresholds {
		if t.Failed {
			status = exit.GateFailed
		}
	}
	if v := r.Verification; v != nil {
		switch {
		case v.Findings() > 0:
			status = exit.GateFailed
		case v.Chosen > 0 && v.Verified == 0:
			status = exit.Worst(status, exit.NotTested)
		}
	}
	switch r.Ended {
	case "too many errors":
		status = exit.GateFailed
	case "interrupted":
		status = exit.Worst(status, exit.NotTested)
	}
	if r.Search != nil && !r.Search.Confirmed && r.Ended != "interrupted" {
		status = exit.Worst(status, exit.GateFailed)
	}
	if r.Cleanup != nil && r.Cleanup.Left > 0 {
		status = exit.Worst(status, exit.Residue)
	}
	return status
}

// thresholds reads --fail-if.
func (l *loading) thresholds() ([]loadgen.Threshold, error) {
	var all []loadgen.Threshold
	for _, text := range l.failIf {
		for part := range strings.SplitSeq(text, ",") {
			t, err := loadgen.ParseThreshold(strings.TrimSpace(part))
			if err != nil {
				return nil, exit.Usagef("--fail-if %w", err)
			}
			if err := checkDirection(t); err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// checkDirection refuses a limit that only a good result breaks: other tools write the
// condition that must hold, --fail-if the one that must not.
func checkDirection(t loadgen.Threshold) error {
	wrong := "<" // of times and losses
	switch t.Metric {
	case "requests", "records":
		return nil // too few is a failure, and so can be too many
	case "rate", "records-rate", "sent-rate":
		wrong = ">"
	}
	if !strings.HasPrefix(t.Op, wrong) {
		return nil
	}
	swapped := strings.NewReplacer("<", ">", ">", "<").Replace(t.Text)
	return exit.Usagef("--fail-if '%s' would fail a good result: it names what must not happen, so give '%s'", t.Text, swapped)
}

// readTemplate reads the file of --template.
func readTemplate(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Usagef("read --template: %w", err)
	}
	return text, nil
}
