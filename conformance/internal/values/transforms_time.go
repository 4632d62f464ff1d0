package values

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// dateTransforms move a date or write it in another way.
var dateTransforms = []Transform{
	onDate("zone", Shifted, "the day before", func(d time.Time) string { return d.AddDate(0, 0, -1).Format(time.DateOnly) }, "2024-02-29", "2021-03-28", "2024-01-01"),
	onDate("zone", Shifted, "the day after", func(d time.Time) string { return d.AddDate(0, 0, 1).Format(time.DateOnly) }, "2024-02-29", "2021-10-31"),
	onDate("calendar", Shifted, "read in the Julian calendar", julian, "1582-10-04", "0999-12-31", "0001-01-01"),
	onDate("calendar", Century, "with its year in the 1900s", centuries, "0001-01-01", "0099-12-31"),
	onDate("calendar", Century, "with two digits of its year", func(d time.Time) string {
		if at, err := time.Parse("06-01-02", d.Format("06-01-02")); err == nil {
			d = at
		}
		return d.Format(time.DateOnly)
	}, "1968-12-31", "2099-12-31"),
	onRaw("calendar", rpc.TypeDate, Shifted, "with the 29 February on another day", mapText(replacing("-02-29", "-02-28")), `"2024-02-29"`, `"2000-02-29"`),
	onDate("calendar", WeekYear, "with the year of its week", ofWeek(time.Monday, 3, time.DateOnly), "2024-12-30", "2027-01-01"),
	onDate("calendar", WeekYear, "with the year of its week", ofWeek(time.Sunday, 6, time.DateOnly), "2024-12-30"),
	onRaw("calendar", rpc.TypeDate, Null, "the day 0 was taken for no value", falsy, `"1970-01-01"`),
	onDate("calendar", Reformatted, "with fewer than four digits of its year", func(d time.Time) string { return fmt.Sprintf("%d%s", d.Year(), d.Format("-01-02")) }, "0999-12-31", "0001-01-01"),
	onDate("calendar", Clamped, "the first day of a smaller range", notBefore(time.DateOnly, 1970), "1969-12-31"),
	onDate("calendar", Clamped, "the first day of a smaller range", notBefore(time.DateOnly, 1900), "1899-12-31"),
	onDate("calendar", Clamped, "the first day of a smaller range", notBefore(time.DateOnly, 1753), "1582-10-04"),
	onDate("calendar", Clamped, "the last day of a smaller range", notAfter(time.DateOnly, time.Date(2038, 1, 19, 0, 0, 0, 0, time.UTC)), "2099-12-31", "9999-12-31"),
	onDate("locale", Reformatted, "with day and month exchanged", exchanged(""), "2021-03-04"),
	onDate("locale", Reformatted, "in the notation of another country", func(d time.Time) string { return d.Format("01/02/2006") }, "2021-03-04"),
	onDate("locale", Reformatted, "in the notation of another country", func(d time.Time) string { return d.Format("02.01.2006") }, "2021-03-04"),
	onDate("cast", Retyped, "it is a moment", func(d time.Time) string { return d.Format("2006-01-02T15:04:05Z") }, "2024-02-29"),
	onDate("cast", Retyped, "it is a moment", func(d time.Time) string { return d.Format("2006-01-02T15:04:05.000Z") }, "2024-02-29"),
	onDate("cast", Retyped, "it is a moment", func(d time.Time) string { return d.Format("2006-01-02 15:04:05") }, "2024-02-29"),
}

// momentTransforms move a moment or write it in another way.
var momentTransforms = slices.Concat(
	zoned(),
	[]Transform{
		onMoment("range", Clamped, "the first moment of a smaller range", notBefore(time.RFC3339, 1970), "1969-07-20T20:17:40Z"),
		onMoment("range", Clamped, "the first moment of a smaller range", notBefore(time.RFC3339, 1753), "0999-12-31T23:59:59Z"),
		onMoment("range", Clamped, "the last second of 32 bits", notAfter(time.RFC3339, time.Unix(1<<31-1, 0).UTC()), "2038-01-19T03:14:08Z", "2040-02-29T12:00:00Z"),
		onMoment("range", Overflown, "its seconds wrapped at 32 bits", func(t time.Time) string { return time.Unix(int64(int32(t.Unix())), 0).UTC().Format(time.RFC3339) }, "2038-01-19T03:14:08Z", "2040-02-29T12:00:00Z"),
		onMoment("range", Shifted, "with its year in the 1900s", func(t time.Time) string { return centuries(t) + t.Format("T15:04:05Z") }, "0099-12-31T23:59:59Z"),
		onMoment("range", Reformatted, "with fewer than four digits of its year", func(t time.Time) string { return fmt.Sprintf("%d%s", t.Year(), t.Format("-01-02T15:04:05Z")) }, "0999-12-31T23:59:59Z"),
		onMoment("range", WeekYear, "with the year of its week", ofWeek(time.Monday, 3, time.RFC3339), "2024-12-30T12:00:00Z"),
		onMoment("range", WeekYear, "with the year of its week", ofWeek(time.Sunday, 6, time.RFC3339), "2024-12-30T12:00:00Z"),
		onRaw("range", rpc.TypeDateTime, Null, "the moment 0 was taken for no value", falsy, `"1970-01-01T00:00:00Z"`),
		onMoment("round moments", Rounded, "without its seconds", func(t time.Time) string { return t.Format("2006-01-02T15:04:00Z") }, "2024-12-31T23:59:59Z"),
		onMoment("round moments", Rounded, "without its time of day", func(t time.Time) string { return t.Format("2006-01-02T00:00:00Z") }, "2024-12-31T23:59:59Z"),
		onMoment("round moments", Retyped, "it is a date", func(t time.Time) string { return t.Format(time.DateOnly) }, "2024-12-31T23:59:59Z"),
		onMoment("round moments", Reformatted, "with twelve hours in a day", func(t time.Time) string { return t.Format("2006-01-02T03:04:05Z") }, "2021-03-29T16:32:23Z", "2024-01-01T00:00:00Z"),
		onMoment("locale", Reformatted, "without its zone", func(t time.Time) string { return t.Format("2006-01-02T15:04:05") }, "2021-03-29T16:32:23Z"),
		onMoment("locale", Reformatted, "in the notation of a database", func(t time.Time) string { return t.Format(time.DateTime) }, "2021-03-29T16:32:23Z"),
		onMoment("locale", Reformatted, "in the notation of an HTTP header", func(t time.Time) string { return t.Format("Mon, 02 Jan 2006 15:04:05 GMT") }, "2021-03-29T16:32:23Z"),
		onMoment("locale", Reformatted, "with day and month exchanged", exchanged("T15:04:05Z"), "2021-03-04T16:32:23Z"),
		onRaw("locale", rpc.TypeDateTime, Retyped, "it is a number of seconds", func(raw json.RawMessage) json.RawMessage {
			if t, err := time.Parse(time.RFC3339Nano, Text(raw)); err == nil {
				return json.RawMessage(fmt.Sprint(t.Unix()))
			}
			return raw
		}, `"2021-03-29T16:32:23Z"`),
	})

// julian reads a date in the calendar that was in use before October 1582.
func julian(d time.Time) string {
	if !d.Before(time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)) {
		return d.Format(time.DateOnly)
	}
	century := d.Year() / 100
	if d.Month() < time.March {
		century = (d.Year() - 1) / 100
	}
	return d.AddDate(0, 0, century-century/4-2).Format(time.DateOnly)
}

// centuries writes years below 100 as those of the 1900s.
func centuries(d time.Time) string {
	if d.Year() < 100 {
		d = d.AddDate(1900, 0, 0)
	}
	return d.Format(time.DateOnly)
}

// exchanged writes the day in the place of the month, where it can be one.
func exchanged(clock string) func(time.Time) string {
	return func(t time.Time) string {
		if t.Day() > 12 {
			return t.Format("2006-01-02" + clock)
		}
		return t.Format("2006") + t.Format("-02-01"+clock)
	}
}

// ofWeek writes a time with the year of its week: that of the day which decides, in weeks that begin on a day.
func ofWeek(begin time.Weekday, decides int, layout string) func(time.Time) string {
	return func(t time.Time) string {
		day := (int(t.Weekday()-begin) + 7) % 7
		return t.AddDate(t.AddDate(0, 0, decides-day).Year()-t.Year(), 0, 0).Format(layout)
	}
}

func notBefore(layout string, year int) func(time.Time) string {
	return func(t time.Time) string {
		if first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); t.Before(first) {
			t = first
		}
		return t.Format(layout)
	}
}

func notAfter(layout string, last time.Time) func(time.Time) string {
	return func(t time.Time) string {
		if t.After(last) {
			t = last
		}
		return t.Format(layout)
	}
}

func onDate(name string, class Class, says string, apply func(time.Time) string, shows ...string) Transform {
	return onTime(name, rpc.TypeDate, class, says, time.DateOnly, apply, shows)
}

func onMoment(name string, class Class, says string, apply func(time.Time) string, shows ...string) Transform {
	return onTime(name, rpc.TypeDateTime, class, says, time.RFC3339Nano, apply, shows)
}

func onTime(name, kind string, class Class, says, layout string, apply func(time.Time) string, shows []string) Transform {
	return onRaw(name, kind, class, says, mapText(unlessFails(func(s string) (string, error) {
		t, err := time.Parse(layout, s)
		return apply(t.UTC()), err
	})), quoted(shows)...)
}

// layouts are the notations in which a date or a moment is recognised.
var layouts = []string{
	time.RFC3339Nano, time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05Z07",
	"01/02/2006", "02.01.2006", "02/01/2006", time.RFC1123, "20060102", "Jan 2, 2006", "1/2",
}

// Moment reads a text in any of them.
func Moment(text string) (time.Time, bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// zone is local time with summer time, as far as moments get lost in it.
type zone struct {
	standard     time.Duration
	mean         time.Duration // before there were zones
	begins, ends sunday        // of summer time
	changes      []string      // moments around both; nil where there is no summer time
}

// sunday is the n-th one of a month, the last for 5, at an hour of UTC.
type sunday struct {
	month   time.Month
	n, hour int
}

// zones are those of Berlin, New York, and Kolkata, which is not whole hours away.
var zones = []zone{
	{time.Hour, 53*time.Minute + 28*time.Second, sunday{time.March, 5, 1}, sunday{time.October, 5, 1}, localTimes[:3]},
	{-5 * time.Hour, -4*time.Hour - 56*time.Minute - 2*time.Second, sunday{time.March, 2, 7}, sunday{time.November, 1, 6}, localTimes[3:6]},
	{5*time.Hour + 30*time.Minute, 5*time.Hour + 53*time.Minute + 28*time.Second, sunday{}, sunday{}, nil},
}

func (s sunday) in(year int) time.Time {
	d := time.Date(year, s.month, 1, s.hour, 0, 0, 0, time.UTC)
	d = d.AddDate(0, 0, (7-int(d.Weekday()))%7+7*(s.n-1))
	if d.Month() != s.month {
		d = d.AddDate(0, 0, -7)
	}
	return d
}

func (z zone) summer(at time.Time) bool {
	return z.changes != nil && at.Year() >= 1980 && !at.Before(z.begins.in(at.Year())) && at.Before(z.ends.in(at.Year()))
}

// written is a moment as the clock of the zone shows it.
func (z zone) written(at time.Time) time.Time {
	switch {
	case at.Year() < 1883:
		return at.Add(z.mean)
	case z.summer(at):
		return at.Add(z.standard + time.Hour)
	}
	return at.Add(z.standard)
}

// read is when the clock of the zone shows a time; late is the second one of two such moments.
func (z zone) read(shown time.Time, late bool) time.Time {
	if shown.Year() < 1883 {
		return shown.Add(-z.mean)
	}
	first, second := shown.Add(-z.standard-time.Hour), shown.Add(-z.standard)
	if z.summer(first) && (!late || z.summer(second)) {
		return first
	}
	return second
}

// localTimes are moments around the changes of summer time, in each half of a year and in far years.
var localTimes = []string{
	"2021-03-28T02:30:00Z", "2021-10-31T00:30:00Z", "2021-10-31T01:30:00Z",
	"2021-03-14T02:30:00Z", "2021-11-07T05:30:00Z", "2021-11-07T06:30:00Z", "2021-01-15T12:00:00Z", "2021-07-15T12:00:00Z",
	"1969-07-20T20:17:40Z", "2040-02-29T12:00:00Z", "0999-12-31T23:59:59Z", "2024-01-01T00:00:00Z", "2024-12-31T23:59:59Z",
}

// zoned are the shifts by a zone, or by a column that keeps none.
func zoned() []Transform {
	var out []Transform
	for _, z := range zones {
		out = append(out,
			onMoment("zone", Shifted, "read as local time", func(t time.Time) string { return z.read(t, true).Format(time.RFC3339) }, localTimes...),
			onMoment("zone", Shifted, "written as local time", func(t time.Time) string { return z.written(t).Format(time.RFC3339) }, localTimes...))
		if z.changes == nil {
			continue
		}
		out = append(out,
			onMoment("zone", Shifted, "moved out of the hour that summer time leaves out", func(t time.Time) string { return z.written(z.read(t, true)).Format(time.RFC3339) }, z.changes[0]),
			onMoment("zone", Shifted, "moved to the other hour that summer time repeats", func(t time.Time) string { return z.read(z.written(t), true).Format(time.RFC3339) }, z.changes[1]),
			onMoment("zone", Shifted, "moved to the other hour that summer time repeats", func(t time.Time) string { return z.read(z.written(t), false).Format(time.RFC3339) }, z.changes[2]))
	}
	return out
}
