// Package demo is `destkit demo`: service and destination in one process, a table that
// changes, a sync of it, and one page about all that came of it. Its world is a fixture
// of tests, too.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen"
)

// Token is no secret: it opens a destination that lives for seconds on
// loopback.
const Token = "demo-token-of-a-destination-that-lives-for-seconds"

// broken is the rule that the last part of the demo breaks.
const broken = "RES-002"

// reportFile is the page with everything.
const reportFile = "demo.html"

// exitTable is in the help text of the demo, which is a test of the
// whole as well.
const exitTable = `Exit status:
  0  everything went as it must
  1  a number, an audit or a verdict is not what it must be
  2  usage: a flag, or a folder that is in use
  3  could not be done: interrupted, no room`

func New() *cobra.Command {
	var d Demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a sync into a simulated destination, judge it, and load it",
		Long: `Start the service and a simulated destination in this process, on loopback, the
destination over https with a certificate authority of its own. Make a table
with sample rows, and sync it through the REST API as any client would:

  1. everything is new, and everything is sent
  2. nothing has changed, and nothing is sent
  3. some rows are new, some have changed, and exactly those are sent
  4. the sync becomes a mirror, and what is gone from the table is deleted

After each run its counters, the calls that the destination saw and the records
that it holds are compared with what they must be. An audit reads every record
back and holds it against the table and the ledger. Then the destination is
judged with writes, a read-back hook and all other hooks, and once more with
the rule ` + broken + ` broken, to show how a finding looks. At the end it is
loaded for two seconds. All of it is on one page, ` + reportFile + `, which links
to the reports of the two judgements and of the load.
Nothing outside this machine is called.`,
		Example: "  destkit demo\n  destkit demo --rows 1000000 --dir /tmp/demo\n  destkit demo --data ./demo-data",
		Args:    command.Arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.Out, d.Screen = cmd.OutOrStdout(), cmd.ErrOrStderr()
			err := d.run(cmd.Context())
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return exit.Untested(errors.New("interrupted"))
			}
			return err
		},
	}
	command.EndHelp(cmd, exitTable)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&d.dir, "dir", "destkit-demo", "write the report into `DIR`")
	f.StringVar(&d.data, "data", "", "keep the data of service and destination in `DIR`, which must be new or empty (default: gone at the end)")
	f.Int64Var(&d.rows, "rows", 100_000, "make a table of `N` rows, 1000 to 1000000")
	f.BoolVarP(&d.quiet, "quiet", "q", false, "no progress while it runs")
	d.profiling.Register(cmd)
	return cmd
}

// Demo is one walk through the program.
type Demo struct {
	dir, data   string
	rows        int64
	quiet       bool
	profiling   command.Profiling
	Out, Screen io.Writer

	runs       []figures
	audit      Audit
	judgements []judged
	load       *loadgen.Result
	problems   []string
}

// wrong notes a wrong value.
func (d *Demo) wrong(format string, args ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

func (d *Demo) run(ctx context.Context) error {
	if d.rows < 1000 || d.rows > 1_000_000 {
		return exit.Usagef("--rows must be 1000 to 1000000, not %d", d.rows)
	}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return exit.Usagef("make folder for the report: %w", err)
	}
	stopProfile, err := d.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	kept, done, err := d.folder()
	if err != nil {
		return err
	}
	defer done()
	if err := d.syncAll(ctx, kept); err != nil {
		return err
	}
	if err := d.judgeAll(ctx); err != nil {
		return err
	}
	if err := d.loadOnce(ctx); err != nil {
		return err
	}
	page, err := filepath.Abs(filepath.Join(d.dir, reportFile))
	if err != nil {
		return exit.Untested(err)
	}
	if err := d.writePage(page); err != nil {
		return err
	}
	foreign.Printf(d.Out, "\nreport: file://%s\n", page)
	foreign.Printf(d.Out, "load:   file://%s\n", filepath.Join(filepath.Dir(page), loadReport))
	d.whereDataIs()
	foreign.Print(d.Out, "next:   destkit conform https://YOUR-ENDPOINT --token-env TOKEN\n        destkit serve --data ./data\n")
	if len(d.problems) > 0 {
		return &exit.Error{Status: exit.GateFailed, Err: fmt.Errorf("the demo did not go as it must:\n  %s", strings.Join(d.problems, "\n  "))}
	}
	return nil
}

// folder is where the data is kept: that of --data, or one that done removes.
func (d *Demo) folder() (kept string, done func(), err error) {
	if d.data == "" {
		kept, err = os.MkdirTemp("", "destkit-demo-")
		if err != nil {
			return "", nil, exit.Untested(fmt.Errorf("make folder for the data: %w", err))
		}
		return kept, func() { _ = os.RemoveAll(kept) }, nil
	}
	if err := os.MkdirAll(d.data, 0o700); err != nil {
		return "", nil, exit.Usagef("make folder for the data: %w", err)
	}
	entries, err := os.ReadDir(d.data)
	if err != nil {
		return "", nil, exit.Usagef("read --data: %w", err)
	}
	if len(entries) > 0 {
		return "", nil, exit.Usagef("--data %s is not empty; the demo starts with nothing", d.data)
	}
	return d.data, func() {}, nil
}

// whereDataIs prints how to look at data that was kept.
func (d *Demo) whereDataIs() {
	if d.data == "" {
		return
	}
	world := places(d.data)
	foreign.Printf(d.Out, `data:   destkit serve --data %[1]s --key-file %[2]s
        destkit serve new-token --data %[1]s --key-file %[2]s
        destkit destsim --store sqlite:%[3]s
`, world.Service, world.Key, world.Destination)
}
