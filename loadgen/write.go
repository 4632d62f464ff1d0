package loadgen

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/internal/rawjson"
)

// WriteJSON writes the result, indented.
func (r *Result) WriteJSON(w io.Writer) error {
	if err := foreign.EncodeJSON(w, r, "  "); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// ReadResult reads the JSON of a result and checks that it is one.
func ReadResult(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	r := Result{file: path}
	file := rawjson.File{Expected: "the JSON result of a load", Version: schemaVersion}
	if err := file.Decode(text, &r); err != nil {
		return nil, fmt.Errorf("read result %s: %w", path, err)
	}
	if r.SchemaVersion == 0 || r.Load.Mode == "" {
		return nil, fmt.Errorf("read result %s: it is no JSON result of a load", path)
	}
	r.fillAcknowledged()
	return &r, nil
}

// fillAcknowledged estimates the throughput in results of versions that did not count it.
func (r *Result) fillAcknowledged() {
	if r.AcknowledgedPerSecond > 0 {
		return
	}
	share := shareOf(r.Acknowledged, r.Records)
	r.AcknowledgedPerSecond = r.RecordsPerSecond * share
	for i := range r.Series {
		r.Series[i].AcknowledgedPerSecond = r.Series[i].RecordsPerSecond * share
	}
}

// WriteCSV writes the series, a line for each interval, with the names of JSON.
func (r *Result) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{ // errors stay until Flush
		"at_seconds", "requests_per_second", "records_per_second", "errors", "in_flight",
		"latency_p50", "latency_p95", "latency_p99", "latency_max", "service_p50", "service_p99", "acknowledged_per_second",
	})
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	for _, p := range r.Series {
		_ = out.Write([]string{
			number(p.At), number(p.RequestsPerSecond), number(p.RecordsPerSecond), strconv.FormatInt(p.Errors, 10), strconv.Itoa(p.InFlight),
			number(p.P50), number(p.P95), number(p.P99), number(p.Max), number(p.ServiceP50), number(p.ServiceP99), number(p.AcknowledgedPerSecond),
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// WriteHistogramLog writes both histograms as an HdrHistogram log, tagged
// latency and service_time, in nanoseconds.
func (r *Result) WriteHistogramLog(w io.Writer) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	if err := log.OutputLogFormatVersion(); err != nil {
		return fmt.Errorf("write histogram log: %w", err)
	}
	began := r.Started.UnixMilli()
	_ = log.OutputComment("#[destkit load, nanoseconds]") // shows again below
	_ = log.OutputStartTime(began)
	_ = log.OutputLegend()
	for _, written := range []struct{ tag, text string }{{"latency", r.Histograms.Latency}, {"service_time", r.Histograms.ServiceTime}} {
		h, err := histogram.Decode(written.text)
		if err != nil {
			return fmt.Errorf("write histogram log: %w", err)
		}
		h.SetTag(written.tag)
		h.SetStartTimeMs(began)
		h.SetEndTimeMs(began + int64(r.Seconds*1000))
		if err := log.OutputIntervalHistogramWithLogOptions(h, hdrhistogram.DefaultHistogramLogOptions()); err != nil {
			return fmt.Errorf("write histogram log: %w", err)
		}
	}
	return nil
}
