package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/destkit/destkit/internal/foreign"
)

// cronYears is how far the next moment is looked for, in years: from 2096 to 2104
// there is no 29th of February, and one on a given weekday comes at most 40 years
// after the last.
const cronYears = 41

// cronFields reads five fields without seconds and without names such as @daily. As
// in every crontab, days of the month and weekdays that are both restricted add up:
// one of them is enough.
var cronFields = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).
	WithMaxSearchYears(cronYears)

// cronBounds are the lowest and the highest number of a field, and the names of its
// numbers where it has some.
type cronBounds struct {
	low, high int
	names     []string
}

// fieldBounds are those of the five fields in turn.
var fieldBounds = [5]cronBounds{
	{0, 59, nil},
	{0, 23, nil},
	{1, 31, nil},
	{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// ParseCron reads a cron expression of five fields in UTC: minute, hour, day of
// the month, month, day of the week. Days and hours are listed (1,2,3), not
// given as ranges, as the service documents it. An expression that never falls
// due is refused.
func ParseCron(expression string) (cron.Schedule, error) {
	fields := strings.Fields(expression)
	switch {
	// The library would take a zone (TZ=…), which schedules do not have.
	case strings.HasPrefix(expression, "@") || strings.Contains(expression, "="):
		return nil, fmt.Errorf("must be a cron expression of five fields in UTC, without names or time zones, not %q", foreign.Clip(expression, 80))
	case len(fields) != 5:
		return nil, fmt.Errorf("must be a cron expression of five fields in UTC (minute hour day month weekday), and %q has %d", foreign.Clip(expression, 80), len(fields))
	}
	for i, field := range fields {
		// The library takes ranges, the published service does not.
		if low, rest, isRange := strings.Cut(field, "-"); isRange && low != "" {
			return nil, fmt.Errorf("ranges are not supported in %q: write a list, such as 1,2,3 for 1-3 (%s-%s)", foreign.Clip(field, 80), foreign.Clip(low, 80), foreign.Clip(rest, 80))
		}
		parts := strings.Split(field, ",")
		for k, part := range parts {
			numbers, err := spelledOut(part, fieldBounds[i])
			if err != nil {
				return nil, fmt.Errorf("must be a cron expression of five fields in UTC: %w", err)
			}
			parts[k] = numbers
		}
		fields[i] = strings.Join(parts, ",")
	}
	schedule, err := cronFields.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, fmt.Errorf("must be a cron expression of five fields in UTC: %w", err)
	}
	// From a leap year on, so that the 29th of February counts.
	if schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("the cron expression %q never falls due", foreign.Clip(expression, 80))
	}
	return utcSchedule{schedule}, nil
}

// spelledOut writes one part of a list with its step as the list of its numbers. The
// library refuses a step that leads out of the field at once (50/15 among minutes, which
// is 50 to every crontab), takes a start beyond the field for a range that wraps around,
// and counts weekdays to 7.
func spelledOut(part string, within cronBounds) (string, error) {
	start, step, stepped := strings.Cut(part, "/")
	anything := start == "*" || start == "?"
	first := within.low
	if !anything {
		n, known := within.number(start)
		if !known {
			return "", fmt.Errorf("%q is not a number from %d to %d", foreign.Clip(part, 80), within.low, within.high)
		}
		first = n
	}
	switch {
	case !stepped && anything || step == "1" && anything:
		return start, nil
	case !stepped:
		return strconv.Itoa(first), nil
	}
	by, err := strconv.ParseUint(step, 10, 31)
	if err != nil || by == 0 {
		return "", fmt.Errorf("the step in %q is not a number above 0", foreign.Clip(part, 80))
	}
	var numbers []string
	for n := first; n <= within.high; n += int(by) {
		numbers = append(numbers, strconv.Itoa(n))
	}
	return strings.Join(numbers, ","), nil
}

// number reads a number of the field, or the name of one.
func (b cronBounds) number(text string) (int, bool) {
	if at := slices.Index(b.names, strings.ToLower(text)); at >= 0 {
		return b.low + at, true
	}
	n, err := strconv.ParseUint(text, 10, 8)
	return int(n), err == nil && int(n) >= b.low && int(n) <= b.high
}

// utcSchedule keeps the schedule in UTC whatever zone a moment comes in.
type utcSchedule struct{ in cron.Schedule }

func (u utcSchedule) Next(t time.Time) time.Time { return u.in.Next(t.UTC()) }
