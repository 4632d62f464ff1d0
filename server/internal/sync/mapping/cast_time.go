package mapping

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// moments are the forms of time that a text may have; those without a zone are
// taken as UTC.
var moments = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04",
	time.DateOnly,
}

// parseMoment reads a time of any of these forms. dateOnly means that there was
// no time of day, which is not the same as midnight.
func parseMoment(s string) (moment time.Time, dateOnly bool, err error) {
	s = strings.TrimSpace(s)
	// Databases write a space between date and time, and before the zone.
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + strings.Replace(strings.Replace(s[11:], " UTC", "Z", 1), " ", "", 1)
	}
	for _, form := range moments {
		if moment, err = time.Parse(form, s); err == nil {
			return moment, form == time.DateOnly, nil
		}
	}
	return time.Time{}, false, fmt.Errorf("%s is not a time such as 2021-03-29T16:32:23Z", strconv.Quote(foreign.Clip(s, 80)))
}

// castTime: dates are 2021-03-29, moments are in UTC with a trailing Z. A moment
// becomes a date only at midnight UTC.
func castTime(value any, fieldType string) (any, error) {
	var moment time.Time
	switch v := value.(type) {
	case time.Time:
		moment = v
	case string:
		var err error
		if moment, _, err = parseMoment(v); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%s is not a time", describe(value))
	}
	moment = moment.UTC()
	// RFC 3339 has four digits for the year; others would not be read again.
	if moment.Year() < 0 || moment.Year() > 9999 {
		return nil, fmt.Errorf("the year %d is out of range", moment.Year())
	}
	if fieldType == api.TypeDateTime {
		return formatMoment(moment), nil
	}
	if midnight := moment.Truncate(24 * time.Hour); !midnight.Equal(moment) {
		return nil, fmt.Errorf("%s has a time of day", formatMoment(moment))
	}
	return moment.Format(time.DateOnly), nil
}

// formatMoment writes UTC with Z; a fraction only where there is one.
func formatMoment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00") }
