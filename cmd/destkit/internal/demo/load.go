package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/loads"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/loadpage"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

// loadReport is the page of the load, beside that of the demo.
const loadReport = "load.html"

// loadFor is how long the demo's load lasts: long enough for a plot.
const loadFor = 2 * time.Second

// loadOnce loads a destination over https and holds what was acknowledged
// against what is stored.
func (d *Demo) loadOnce(ctx context.Context) (err error) {
	port, err := NewDestination(ctx, destsim.Config{})
	if err != nil {
		return err
	}
	defer func() {
		if failed := port.Stop(); err == nil {
			err = failed
		}
	}()
	foreign.Printf(d.Out, "\nA load of that destination, over https, every reply checked:\n\n")
	show := loads.NewDisplay(d.Screen, d.quiet || !command.Is(d.Screen))
	result, err := loadgen.Run(ctx, loadgen.Options{
		Target: loadgen.Target{URL: port.URL + "/", Token: Token, Roots: port.roots()},
		Write:  true, Closed: true, Duration: loadFor, Version: command.ReadBuild().Version, Progress: show.Moment,
		Work: loadgen.Work{Objects: []loadgen.Share{{Name: Object}}, BatchSize: 100},
	})
	show.Done()
	if err != nil {
		return command.LoadFailure(err)
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
