package loads

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/failure"
	"github.com/destkit/destkit/cmd/destkit/internal/listen"
	"github.com/destkit/destkit/cmd/destkit/internal/loadview"
	"github.com/destkit/destkit/cmd/destkit/internal/terminal"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/plural"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen"
)

// calibrateFor is how long each measurement of --calibrate takes.
const calibrateFor = 3 * time.Second

// calibration is one measurement.
type calibration struct {
	name   string
	secure bool
	batch  int
}

// runCalibrate shows what this machine can do: the generator against the
// simulator as `destkit destsim` serves it, both on the same processors, every
// record stored under a key of its own and every result checked.
func (l *loading) runCalibrate(cmd *cobra.Command) error {
	each := l.options.Duration
	if each <= 0 {
		each = calibrateFor
	}
	w := cmd.OutOrStdout()
	stopProfile, err := l.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	speed, err := loadgen.OwnSpeed(1000, each/3)
	if err != nil {
		return exit.Untested(err)
	}
	foreign.Printf(w, "generator alone, without a network: %s records/s prepared and checked on one processor\n", quantity.Grouped(int64(speed)))
	foreign.Printf(w, "generator and simulator on the same processors, closed loop:\n")
	foreign.Printf(w, "  %-28s %14s %14s %12s %12s %14s\n", "", "requests/s", "records/s", "p50 ms", "p99 ms", "CPU s per M")
	for _, c := range []calibration{
		{"1 record", false, 1}, {"1 record, TLS", true, 1}, {"1,000 records", false, 1000}, {"1,000 records, TLS", true, 1000},
	} {
		r, err := l.calibrateOne(cmd, c, each)
		if err != nil {
			return failure.OfLoad(err)
		}
		if r.Ended == "interrupted" {
			return exit.Untested(fmt.Errorf("interrupted"))
		}
		cpu := r.Generator.CPUSeconds / max(float64(r.Records), 1) * 1e6
		foreign.Printf(w, "  %-28s %14s %14s %12s %12s %14.3f\n", c.name, quantity.Rate(r.RequestsPerSecond), quantity.Rate(r.RecordsPerSecond), quantity.Milliseconds(r.Latency.P50), quantity.Milliseconds(r.Latency.P99), cpu)
		if r.Errors > 0 {
			return exit.Untested(fmt.Errorf("%s, the first: %s", plural.Count(r.Errors, "error"), r.ErrorMessages[0].Message))
		}
	}
	foreign.Println(w, "A target that comes near these figures is measured together with the generator: use a machine of its own for each.")
	return nil
}

// calibrateOne measures one pair.
func (l *loading) calibrateOne(cmd *cobra.Command, c calibration, each time.Duration) (*loadgen.Result, error) {
	sim, err := destsim.New(destsim.Config{})
	if err != nil {
		return nil, err
	}
	port := &listen.Port{Addr: "127.0.0.1:0", Handler: sim}
	var roots *x509.CertPool
	if c.secure {
		certificates, err := destsim.NewCertificates(nil, "127.0.0.1")
		if err != nil {
			return nil, err
		}
		if port.TLS, err = certificates.TLSConfig(""); err != nil {
			return nil, err
		}
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(certificates.CAPEM())
	}
	served, err := listen.Start(cmd.Context(), port, sim.Close)
	if err != nil {
		return nil, err
	}
	o := l.options
	o.Target, o.Write, o.Closed, o.Duration, o.WarmUp = loadgen.Target{URL: served.URL + "/", Roots: roots}, true, true, each, each/6
	o.Work = loadgen.Work{Objects: []loadgen.Share{{Name: "contact"}}, BatchSize: c.batch}
	if o.Connections == 0 {
		o.Connections = 32
	}
	show := loadview.NewDisplay(cmd.ErrOrStderr(), l.quiet || !terminal.Is(cmd.ErrOrStderr()))
	o.Progress = show.Moment
	result, err := loadgen.Run(cmd.Context(), o)
	show.Done()
	if stopErr := served.Stop(); err == nil {
		err = stopErr
	}
	return result, err
}
