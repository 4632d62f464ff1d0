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
		at, err := time.Parse("06-01-02", d.Format("06-01-02"))
		if err != nil {
			return d.Format(time.DateOnly)
		}
		return at.Format(time.DateOnly)
	}, "1968-12-31", "2099-12-31"),
	onDate("calendar", Shifted, "with the 29 February on another day", func(d time.Time) string {
		if d.Month() == time.February && d.Day() == 29 {
			return d.AddDate(0, 0, -1).Format(time.DateOnly)
		}
		return d.Format(time.DateOnly)
	}, "2024-02-29", "2000-02-29"),
	onDate("calendar", Reformatted, "with fewer than four digits of its year", func(d time.Time) string { return fmt.Sprintf("%d%s", d.Year(), d.Format("-01-02")) }, "0999-12-31", "0001-01-01"),
	onDate("calendar", Clamped, "the first day of a smaller range", notBefore(1970), "1969-12-31"),
	onDate("calendar", Clamped, "the first day of a smaller range", notBefore(1900), "1899-12-31"),
	onDate("calendar", Clamped, "the first day of a smaller range", notBefore(1753), "1582-10-04"),
	onDate("calendar", Clamped, "the last day of a smaller range", notAfter(2038), "2099-12-31", "9999-12-31"),
	onDate("locale", Reformatted, "with day and month exchanged", func(d time.Time) string {
		if d.Day() <= 12 {
			return d.Format("2006") + d.Format("-02-01")
		}
		return d.Format(time.DateOnly)
	}, "2021-03-04"),
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
		onMoment("range", Clamped, "the first moment of a smaller range", momentNotBefore(1970), "1969-07-20T20:17:40Z"),
		onMoment("range", Clamped, "the first moment of a smaller range", momentNotBefore(1753), "0999-12-31T23:59:59Z"),
		onMoment("range", Clamped, "the last second of 32 bits", func(t time.Time) string {
			if last := time.Unix(1<<31-1, 0).UTC(); t.After(last) {
				t = last
			}
			return t.Format(time.RFC3339)
		}, "2038-01-19T03:14:08Z", "2040-02-29T12:00:00Z"),
		onMoment("range", Overflown, "136 years earlier: its seconds wrapped at 32 bits", func(t time.Time) string { return time.Unix(int64(int32(t.Unix())), 0).UTC().Format(time.RFC3339) }, "2038-01-19T03:14:08Z", "2040-02-29T12:00:00Z"),
		onMoment("range", Shifted, "with its year in the 1900s", func(t time.Time) string { return centuries(t) + t.Format("T15:04:05Z") }, "0099-12-31T23:59:59Z"),
		onMoment("range", Reformatted, "with fewer than four digits of its year", func(t time.Time) string { return fmt.Sprintf("%d%s", t.Year(), t.Format("-01-02T15:04:05Z")) }, "0999-12-31T23:59:59Z"),
		onMoment("round moments", Rounded, "without its time of day", func(t time.Time) string { return t.Format("2006-01-02T00:00:00Z") }, "2024-12-31T23:59:59Z"),
		onMoment("round moments", Rounded, "without its seconds", func(t time.Time) string { return t.Format("2006-01-02T15:04:00Z") }, "2024-12-31T23:59:59Z"),
		onMoment("round moments", Retyped, "it is a date", func(t time.Time) string { return t.Format(time.DateOnly) }, "2024-12-31T23:59:59Z"),
		onMoment("round moments", Reformatted, "with twelve hours in a day", func(t time.Time) string { return t.Format("2006-01-02T03:04:05Z") }, "2021-03-29T16:32:23Z", "2024-01-01T00:00:00Z"),
		onMoment("locale", Reformatted, "without its zone", func(t time.Time) string { return t.Format("2006-01-02T15:04:05") }, "2021-03-29T16:32:23Z"),
		onMoment("locale", Reformatted, "in the notation of a database", func(t time.Time) string { return t.Format(time.DateTime) }, "2021-03-29T16:32:23Z"),
		onMoment("locale", Reformatted, "in the notation of a database", func(t time.Time) string { return t.Format("2006-01-02 15:04:05+00") }, "2021-03-29T16:32:23Z"),
		onMoment("locale", Reformatted, "in the notation of an HTTP header", func(t time.Time) string { return t.Format("Mon, 02 Jan 2006 15:04:05 GMT") }, "2021-03-29T16:32:23Z"),
		onMoment("locale", Reformatted, "with day and month exchanged", func(t time.Time) string {
			if t.Day() > 12 {
				return t.Format(time.RFC3339)
			}
			return t.Format("2006") + t.Format("-02-01T15:04:05Z")
		}, "2021-03-04T16:32:23Z"),
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

func notBefore(year int) func(time.Time) string {
	return func(d time.Time) string {
		if first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); d.Before(first) {
			d = first
		}
		return d.Format(time.DateOnly)
	}
}

func notAfter(year int) func(time.Time) string {
	return func(d time.Time) string {
		if last := time.Date(year, 1, 19, 0, 0, 0, 0, time.UTC); d.After(last) {
			d = last
		}
		return d.Format(time.DateOnly)
	}
}

func momentNotBefore(year int) func(time.Time) string {
	return func(t time.Time) string {
		if first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); t.Before(first) {
			t = first
		}
		return t.Format(time.RFC3339)
	}
}

func onDate(name string, class Class, says string, apply func(time.Time) string, shows ...string) Transform {
	return onTime(name, rpc.TypeDate, class, says, time.DateOnly, apply, shows)
}

func onMoment(name string, class Class, says string, apply func(time.Time) string, shows ...string) Transform {
	return onTime(name, rpc.TypeDateTime, class, says, time.RFC3339Nano, apply, shows)
}

func onTime(name, kind string, class Class, says, layout string, apply func(time.Time) string, shows []string) Transform {
	return onRaw(name, kind, class, says, mapText(func(s string) string {
		t, err := time.Parse(layout, s)
		if err != nil {
			return s
		}
		return apply(t.UTC())
	}), quotedAll(shows)...)
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
