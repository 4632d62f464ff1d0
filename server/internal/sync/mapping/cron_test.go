package mapping

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// cronModel is what an expression means, written apart from the library: the allowed
// numbers of each field, and whether a field of days is restricted.
type cronModel struct {
	minutes, hours, days, months, weekdays []int
	anyDay, anyWeekday                     bool
}

// next walks day by day, then minute by minute: slow and plain.
func (m cronModel) next(after time.Time) time.Time {
	after = after.UTC()
	day := time.Date(after.Year(), after.Month(), after.Day(), 0, 0, 0, 0, time.UTC)
	for range cronYears * 366 {
		if m.due(day) {
			for _, hour := range m.hours {
				for _, minute := range m.minutes {
					at := day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
					if at.After(after) {
						return at
					}
				}
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}
}

func (m cronModel) due(day time.Time) bool {
	byDay, byWeekday := slices.Contains(m.days, day.Day()), slices.Contains(m.weekdays, int(day.Weekday()))
	switch {
	case !slices.Contains(m.months, int(day.Month())):
		return false
	case m.anyDay || m.anyWeekday:
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

// cronField draws one field: its text, its numbers in order, and whether it is a star.
func cronField(t *rapid.T, name string, low, high int, names []string) (text string, numbers []int, star bool) {
	var parts []string
	set := map[int]bool{}
	add := func(from, step int) {
		for n := from; n <= high; n += step {
			set[n] = true
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, name+" parts") {
		from := rapid.IntRange(low, high).Draw(t, name+" from")
		step := rapid.IntRange(1, high).Draw(t, name+" step")
		switch rapid.IntRange(0, 5).Draw(t, name+" form") {
		case 0:
			parts, star = append(parts, "*"), true
			add(low, 1)
		case 1:
			parts = append(parts, fmt.Sprintf("*/%d", step))
			// A step of one leaves nothing out: it is a star.
			star = star || step == 1
			add(low, step)
		case 2:
			start := fmt.Sprint(from)
			if len(names) > 0 && rapid.Bool().Draw(t, name+" named") {
				start = names[from-low]
			}
			parts = append(parts, fmt.Sprintf("%s/%d", start, step))
			add(from, step)
		case 3:
			if len(names) > 0 {
				word := names[from-low]
				parts, set[from] = append(parts, rapid.SampledFrom([]string{word, strings.ToUpper(word), strings.ToLower(word)}).Draw(t, "case")), true
				continue
			}
			fallthrough
		default:
			parts, set[from] = append(parts, fmt.Sprint(from)), true
		}
	}
	for n := range set {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return strings.Join(parts, ","), numbers, star
}

var (
	cronMonths   = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
	cronWeekdays = strings.Fields("sun mon tue wed thu fri sat")
)

func drawCron(t *rapid.T) (string, cronModel) {
	var m cronModel
	var fields [5]string
	fields[0], m.minutes, _ = cronField(t, "minute", 0, 59, nil)
	fields[1], m.hours, _ = cronField(t, "hour", 0, 23, nil)
	fields[2], m.days, m.anyDay = cronField(t, "day", 1, 31, nil)
	fields[3], m.months, _ = cronField(t, "month", 1, 12, cronMonths)
	fields[4], m.weekdays, m.anyWeekday = cronField(t, "weekday", 0, 6, cronWeekdays)
	return strings.Join(fields[:], " "), m
}

// zones of moments: schedules are in UTC, whatever the local zone, even while its
// clock is being changed.
var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"}

func TestCronAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expression, model := drawCron(t)
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		require.NoError(t, err)
		// Over the leap years, 2100 among them, which is none.
		at := time.Unix(rapid.Int64Range(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2105, 1, 1, 0, 0, 0, 0, time.UTC).Unix()).Draw(t, "at"), 0).In(zone)
		schedule, err := ParseCron(expression)
		want := model.next(at)
		if err != nil {
			require.True(t, model.next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero(), "%s: %v", expression, err)
			require.ErrorContains(t, err, "never falls due")
			return
		}
		for range 5 {
			got := schedule.Next(at)
			require.Equal(t, want, got.UTC(), "%s after %s", expression, at)
			if want.IsZero() {
				return
			}
			at = got
			want = model.next(at)
		}
	})
}

// Undocumented expressions are refused, whatever a library takes.
func TestCronRefuses(t *testing.T) {
	for expression, why := range map[string]string{
		"": "has 0", "* * * *": "has 4", "* * * * * *": "has 6", "@daily": "without names", "@every 1h": "without names",
		"TZ=UTC 0 0 * * *": "time zones", "CRON_TZ=UTC 0 0 * * *": "time zones",
		"1-5 * * * *": "ranges", "0 0 * * mon-fri": "ranges", "60 * * * *": "five fields", "* 24 * * *": "five fields",
		"* * 0 * *": "five fields", "* * 32 * *": "five fields", "* * * 13 *": "five fields", "* * * 0 *": "five fields",
		"* * * * 8": "five fields", "* * * * 7": "from 0 to 6", "* * * * 07": "five fields",
		"* * * * 7/2": "five fields", "60/2 * * * *": "five fields", "1/2/3 * * * *": "five fields", "*/ * * * *": "five fields", "1/mon * * * *": "five fields", "*/0 * * * *": "five fields", "a * * * *": "five fields", "-1 * * * *": "five fields",
		"1,,2 * * * *": "five fields", ", * * * *": "five fields", "1, * * * *": "five fields", "1/ * * * *": "five fields",
		"* * L * *": "five fields", "* * 15W * *": "five fields", "* * * * 5#2": "five fields", "* * * * 5L": "five fields",
		"H * * * *": "five fields", "99999999999999999999 * * * *": "five fields", "*/99999999999 * * * *": "five fields",
		"0 0 30 2 *": "never falls due", "0 0 31 4,6,9,11 *": "never falls due", "٣ * * * *": "five fields", "1.5 * * * *": "five fields",
		"+1 * * * *": "five fields", "0x1 * * * *": "five fields", "1_0 * * * *": "five fields",
	} {
		_, err := ParseCron(expression)
		require.ErrorContains(t, err, why, "%q", expression)
	}
}

func FuzzParseCron(f *testing.F) {
	for _, expression := range []string{"0 6 * * 1", "*/15 * * * *", "0 0 29 2 *", "1,2/3 * ? jan sun", "@daily", "TZ=UTC * * * * *", "60 * * * *"} {
		f.Add(expression, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, expression string, at int64) {
		schedule, err := ParseCron(expression)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		after := time.Unix(at%(1<<36), 0)
		next := schedule.Next(after)
		// Never zero: an expression that is taken falls due again and again.
		require.True(t, next.After(after), "%q after %s: %s", expression, after, next)
		require.Zero(t, next.Unix()%60)
	})
}
