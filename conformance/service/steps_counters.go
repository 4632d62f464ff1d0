package service

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// countersSteps are for CNT: the counters of a run (spec 2.9).
func countersSteps() []conformance.Step {
	return []conformance.Step{
		step(`^run (\d+) counts$`, func(sc *scenario) any { return sc.runCounts }),
		step(`^([a-z_]+) of run (\d+) is one of "([0-9, ]+)"$`, func(sc *scenario) any { return sc.countsOneOf }),
		step(`^run (\d+) counts no record as updated$`, func(sc *scenario) any { return sc.countsNone }),
		step(`^the sums of run (\d+) agree$`, func(sc *scenario) any { return sc.sumsAgree }),
		step(`^the counters of run (\d+) agree with its history$`, func(sc *scenario) any { return sc.countersAgree }),
	}
}

// counter reads one counter of a run; false where it is no integer.
func (sc *scenario) counter(run int, name string) (int64, bool, *answer, error) {
	a, err := sc.ran(run)
	if err != nil {
		return 0, false, nil, err
	}
	n, ok := a.at("data", name).Int()
	return n, ok, a, nil
}

func (sc *scenario) runCounts(run int, want *wire.DataTable) error {
	for _, line := range want.Rows() {
		name, value := line[0], line[1]
		n, ok, a, err := sc.counter(run, name)
		if err != nil {
			return err
		}
		if !ok || strconv.FormatInt(n, 10) != value {
			sc.broken(fmt.Sprintf("%s of run %d is %s", name, run, value), jsonvalue.Raw(a.at("data", name)), a)
		}
	}
	return sc.HeldBy("run %d: %s", run, quantity.Count(len(want.Rows()), "counter"))
}

// countsOneOf is for counters that published examples define in more than one way.
func (sc *scenario) countsOneOf(name string, run int, list string) error {
	n, ok, a, err := sc.counter(run, name)
	if err != nil {
		return err
	}
	if !ok || !slices.Contains(strings.Split(list, ", "), strconv.FormatInt(n, 10)) {
		sc.broken(fmt.Sprintf("%s of run %d is one of %s", name, run, list), jsonvalue.Raw(a.at("data", name)), a)
	}
	return sc.HeldBy("%s is %d", name, n)
}

// countsNone: a run that failed may leave its counters out.
func (sc *scenario) countsNone(run int) error {
	n, ok, a, err := sc.counter(run, "records_updated")
	if err != nil {
		return err
	}
	if ok && n != 0 || !ok && jsonvalue.Raw(a.at("data", "records_updated")) != "null" {
		sc.broken("records_updated is 0 or null", jsonvalue.Raw(a.at("data", "records_updated")), a)
	}
	return sc.HeldBy("records_updated is %s", jsonvalue.Raw(a.at("data", "records_updated")))
}

// sumsAgree: what was processed is what was to be sent, and became something.
func (sc *scenario) sumsAgree(run int) error {
	sum := map[string]int64{}
	var from *answer
	for _, name := range []string{"records_processed", "source_record_updates", "source_record_deletes", "records_updated", "records_failed"} {
		n, ok, a, err := sc.counter(run, name)
		if err != nil {
			return err
		}
		if !ok {
			sc.broken(name+" is an integer", jsonvalue.Raw(a.at("data", name)), a)
		}
		sum[name], from = n, a
	}
	processed := sum["records_processed"]
	if found := sum["source_record_updates"] + sum["source_record_deletes"]; found != processed {
		sc.broken("records_processed is source_record_updates and source_record_deletes together", fmt.Sprintf("%d, and not %d", processed, found), from)
	}
	if became := sum["records_updated"] + sum["records_failed"]; became != processed {
		sc.broken("records_processed is records_updated and records_failed together", fmt.Sprintf("%d, and not %d", processed, became), from)
	}
	return sc.HeldBy("%s processed", quantity.Count(processed, "record"))
}

// countersAgree counts the lines of the history.
func (sc *scenario) countersAgree(run int) error {
	lines, a, err := sc.history(run, "")
	if err != nil {
		return err
	}
	count := map[string]int64{}
	for _, l := range lines {
		count[l.Status]++
	}
	for status, name := range map[string]string{"succeeded": "records_updated", "rejected": "records_failed"} {
		n, _, ended, err := sc.counter(run, name)
		if err != nil {
			return err
		}
		if n != count[status] {
			sc.broken(fmt.Sprintf("as many records are %s as %s says: %d", status, name, n), fmt.Sprintf("%d", count[status]), ended, a)
		}
	}
	return sc.HeldBy("%s in the history", quantity.Count(len(lines), "record"))
}
