package liquid

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/osteele/tuesday"
)

// date formats a time by the directives of strftime. Other values stay as they
// are, as do times with an empty format. Times without a zone are in UTC.
func date(r *run, input any, args []any) (any, error) {
	format := toText(args[0])
	moment, ok := r.moment(input)
	if !ok || format == "" {
		return input, nil
	}
	if width := wideDate.FindString(format); width != "" {
		return nil, exceeded("a date of the width %.20s", width)
	}
	text, err := tuesday.Strftime(notForTimes.ReplaceAllStringFunc(format, func(m string) string {
		if m == "%%" {
			return m
		}
		return "%" + m
	}), moment)
	if err != nil {
		return nil, fmt.Errorf("format date: %w", err)
	}
	return text, nil
}

var (
	wideDate = regexp.MustCompile(`\d{4,}`)
	// notForTimes are directives that the library knows and the published language
	// prints as they are.
	notForTimes = regexp.MustCompile(`%%|%[-_^#0]*\d*[Q+]`)
	ordinals    = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)\b`)
	// A day, a time of day and its zone.
	momentText = regexp.MustCompile(`(?i)^(.*?)(?:(?:t|\s)+(\d{1,2}(?::\d{2}(?::\d{2}(?:[.,]\d+)?)?)?)\s*([ap]m)?\s*(z|utc|gmt|[-+]\d{2}:?\d{2}|[ecmp][sd]t)?)?$`)
)

// The forms of days and of times of day. Go reads fractions of seconds where there
// are seconds.
var (
	dayForms = []string{
		"2006-1-2", "2006/1/2", "2/1/2006", "2-1-2006", "20060102", "January 2 2006", "Jan 2 2006", "2 January 2006", "2 Jan 2006",
		"Mon 2 Jan 2006", "Monday 2 January 2006", "Mon Jan 2 2006", "January 2006", "Jan 2006", "2-Jan-2006",
	}
	clockForms = []string{"15:04:05", "15:04", "3:04:05PM", "3:04PM", "3PM"}
)

// Hours from UTC, of the abbreviations that the published language knows.
var zones = map[string]int{"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}

// moment reads a time: now and today, seconds since 1970, or a text.
func (r *run) moment(input any) (time.Time, bool) {
	switch v := input.(type) {
	case int, json.Number:
		seconds, err := toInteger(v)
		return time.Unix(int64(seconds), 0).UTC(), err == nil
	case string:
		if v == "now" || v == "today" {
			return r.limits.Now.UTC(), true
		}
		if seconds, err := strconv.ParseInt(v, 10, 64); err == nil {
			return time.Unix(seconds, 0).UTC(), true
		}
		if len(v) < 100 {
			return parseMoment(v)
		}
	}
	return time.Time{}, false
}

// parseMoment tries the forms.
func parseMoment(text string) (time.Time, bool) {
	if moment, err := time.ParseInLocation("20060102T150405Z0700", text, time.UTC); err == nil {
		return moment, true
	}
	m := momentText.FindStringSubmatch(strings.TrimSpace(ordinals.ReplaceAllString(text, "$1")))
	day, ok := parseAny(dayForms, strings.ReplaceAll(m[1], ",", ""))
	if !ok || m[2] == "" {
		return day, ok
	}
	clock, ok := parseAny(clockForms, strings.Replace(m[2], ",", ".", 1)+strings.ToUpper(m[3]))
	zone := time.UTC
	if hours := zones[strings.ToUpper(m[4])]; hours != 0 {
		zone = time.FixedZone(strings.ToUpper(m[4]), hours*3600)
	} else if offset, err := time.ParseInLocation("-0700", strings.Replace(m[4], ":", "", 1), time.UTC); err == nil {
		zone = offset.Location()
	}
	return time.Date(day.Year(), day.Month(), day.Day(), clock.Hour(), clock.Minute(), clock.Second(), clock.Nanosecond(), zone), ok
}

func parseAny(forms []string, text string) (time.Time, bool) {
	for _, form := range forms {
		if moment, err := time.Parse(form, text); err == nil {
			return moment, true
		}
	}
	return time.Time{}, false
}
