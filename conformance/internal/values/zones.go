package values

import (
	"time"
)

// zone is local time with summer time, as far as moments get lost in it.
type zone struct {
	name     string
	standard time.Duration
	mean     time.Duration // before there were zones
	begins   func(year int) time.Time
	ends     func(year int) time.Time
}

// zones are two with different rules, and one that is not whole hours away.
var zones = []zone{
	{"Berlin", time.Hour, 53*time.Minute + 28*time.Second, func(y int) time.Time { return sunday(y, time.March, 5, 1) }, func(y int) time.Time { return sunday(y, time.October, 5, 1) }},
	{"New York", -5 * time.Hour, -4*time.Hour - 56*time.Minute - 2*time.Second, func(y int) time.Time { return sunday(y, time.March, 2, 7) }, func(y int) time.Time { return sunday(y, time.November, 1, 6) }},
	{"Kolkata", 5*time.Hour + 30*time.Minute, 5*time.Hour + 53*time.Minute + 28*time.Second, nil, nil},
}

// sunday is the n-th one of a month, the last for 5, at an hour of UTC.
func sunday(year int, month time.Month, n, hour int) time.Time {
	d := time.Date(year, month, 1, hour, 0, 0, 0, time.UTC)
	d = d.AddDate(0, 0, (7-int(d.Weekday()))%7+7*(n-1))
	if d.Month() != month {
		d = d.AddDate(0, 0, -7)
	}
	return d
}

func (z zone) summer(at time.Time) bool {
	return z.begins != nil && at.Year() >= 1980 && !at.Before(z.begins(at.Year())) && at.Before(z.ends(at.Year()))
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

// read is the moment at which the clock of the zone shows a time; late chooses the
// second one of the hour that it shows twice.
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

// summerTimes are moments around the changes of summer time, as text or as instants,
// and some of both halves of a year.
var summerTimes = []string{
	"2021-03-28T02:30:00Z", "2021-10-31T00:30:00Z", "2021-10-31T01:30:00Z",
	"2021-03-14T02:30:00Z", "2021-11-07T05:30:00Z", "2021-11-07T06:30:00Z", "2021-01-15T12:00:00Z", "2021-07-15T12:00:00Z",
}

// farTimes are moments before 1970, after 2038 and in a year of three digits.
var farTimes = []string{"1969-07-20T20:17:40Z", "2040-02-29T12:00:00Z", "0999-12-31T23:59:59Z", "2024-01-01T00:00:00Z", "2024-12-31T23:59:59Z"}

// zoned are the shifts by a zone: the text is read as local, the instant is written as
// local, or goes through a column that keeps no zone.
func zoned() []Transform {
	var out []Transform
	for _, z := range zones {
		out = append(out,
			onMoment("zone", Shifted, "read as local time", func(t time.Time) string { return z.read(t, true).Format(time.RFC3339) }, append(summerTimes, farTimes...)...),
			onMoment("zone", Shifted, "written as local time", func(t time.Time) string { return z.written(t).Format(time.RFC3339) }, append(summerTimes, farTimes...)...))
		if z.begins == nil {
			continue
		}
		changes := summerTimes[:3]
		if z.standard < 0 {
			changes = summerTimes[3:6]
		}
		out = append(out,
			onMoment("zone", Shifted, "moved out of the hour that summer time leaves out", func(t time.Time) string { return z.written(z.read(t, true)).Format(time.RFC3339) }, changes[0]),
			onMoment("zone", Shifted, "moved to the other hour that summer time repeats", func(t time.Time) string { return z.read(z.written(t), true).Format(time.RFC3339) }, changes[1]),
			onMoment("zone", Shifted, "moved to the other hour that summer time repeats", func(t time.Time) string { return z.read(z.written(t), false).Format(time.RFC3339) }, changes[2]))
	}
	return out
}
