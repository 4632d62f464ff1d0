package liquid

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/osteele/tuesday"
)

// date formats a time by the directives of strftime. What is no time stays as
// it is. Times without a zone are in UTC.
func date(r *run, input any, args []any) (any, error) {
	// An empty format leaves the input alone, as in the published language.
	format := toText(args[0])
	if format == "" {
		return input, nil
	}
	moment, ok := toMoment(r, input)
	if !ok {
		return input, nil
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

// notForTimes are directives that the library knows and the published language
// prints as they are.
var notForTimes = regexp.MustCompile(`%%|%[-_^#0]*\d*[Q+]`)

// toMoment reads a time: now and today, seconds since 1970, or a text.
func toMoment(r *run, input any) (time.Time, bool) {
	switch v := input.(type) {
	case time.Time:
		return v, true
	case int64:
		return time.Unix(v, 0).UTC(), true
	case string:
		switch lower := strings.ToLower(v); {
		case v == "":
			return time.Time{}, false
		case lower == "now" || lower == "today":
			return r.limits.Now.UTC(), true
		// Only digits are seconds; 2021 is a moment in 1970, as there.
		case strings.Trim(v, "0123456789") == "":
			seconds, err := strconv.ParseInt(v, 10, 64)
			return time.Unix(seconds, 0).UTC(), err == nil
		default:
			return looseMoment(lower, r.limits.Now.UTC())
		}
	}
	return time.Time{}, false
}

var (
	// Compiled once; each finds its part anywhere in the text, so order matters
	// (see looseForms).
	looseClock = regexp.MustCompile(`(\d{1,2})(?::(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s*([ap])?(?:\.?m\b\.?)?|\s*([ap])\.?m\b\.?)\s*(?:(z|utc|gmt|est|edt|cst|cdt|mst|mdt|pst|pdt)\b|([-+]\d{2}):?(\d{2})?)?`)
	looseISO   = regexp.MustCompile(`(-?\d{4})-(\d{1,2})-(\d{1,2})`)
	looseSlash = regexp.MustCompile(`(\d+)/(\d+)(?:/(\d+))?`)
	looseDMY   = regexp.MustCompile(`(\d{1,2})(?:st|nd|rd|th)?[\s-]*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[\s,-]*(\d{4})?`)
	looseMDY   = regexp.MustCompile(`(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s*(\d{1,2})(?:st|nd|rd|th)?\b(?:[\s,]+(\d{4}))?`)
	looseMonth = regexp.MustCompile(`\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b\.?(?:[\s,-]+(\d{4}))?`)
	looseShort = regexp.MustCompile(`\b(\d{4})(\d{2})(\d{2})(?:t?(\d{2})(\d{2})(\d{2})?(z)?)?\b`)
)

// Hours from UTC, of the abbreviations that the published language knows.
var looseZones = map[string]int{"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}

var looseMonths = map[string]int{
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}

// looseMoment finds a date and a time of day anywhere in a text of small
// letters, as the published language does. What is missing of the date is that
// of today, what is missing of the time is midnight.
func looseMoment(s string, now time.Time) (time.Time, bool) {
	year, month, day := now.Date()
	found := parts{year, int(month), day}
	dated := false
	// Digits without separators are put into the form that the others find.
	if m := looseShort.FindStringSubmatch(s); m != nil {
		clock := ""
		if m[4] != "" {
			clock = m[4] + ":" + m[5]
			if m[6] != "" {
				clock += ":" + m[6]
			}
			clock += m[7]
		}
		s = strings.Replace(s, m[0], m[1]+"-"+m[2]+"-"+m[3]+" "+clock, 1)
	}
	// The date is cut out first, so that its digits are not read as a time.
	clock := s
	for _, form := range looseForms {
		if at := form.match.FindStringSubmatchIndex(s); at != nil {
			found, dated = form.read(submatches(s, at), found), true
			clock = s[:at[0]] + " " + s[at[1]:]
			break
		}
	}
	hours, zone, timed, ok := looseTime(clock)
	if !ok || !dated && !timed {
		return time.Time{}, false
	}
	moment := time.Date(found.year, time.Month(found.month), found.day, 0, 0, 0, 0, zone)
	// Go would roll the 31st of a short month over, and so does the published
	// language; beyond that it gives up.
	if found.month < 1 || found.month > 12 || found.day < 1 || found.day > 31 {
		return time.Time{}, false
	}
	return moment.Add(hours), true
}

// parts is a date as it was found.
type parts struct{ year, month, day int }

// submatches gives the groups as texts, "" where one did not take part.
func submatches(s string, at []int) []string {
	out := make([]string, len(at)/2)
	for i := range out {
		if at[2*i] >= 0 {
			out[i] = s[at[2*i]:at[2*i+1]]
		}
	}
	return out
}

// orNumber reads digits, or gives the standard value when there are none.
func orNumber(digits string, standard int) int {
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return standard
}

// looseForms are tried in this order; the first that is found wins. A form that
// others contain comes after them.
var looseForms = []struct {
	match *regexp.Regexp
	read  func(m []string, now parts) parts
}{
	{looseISO, func(m []string, now parts) parts {
		return parts{orNumber(m[1], now.year), orNumber(m[2], 1), orNumber(m[3], 1)}
	}},
	{looseDMY, func(m []string, now parts) parts {
		return parts{orNumber(m[3], now.year), looseMonths[m[2]], orNumber(m[1], 1)}
	}},
	{looseMDY, func(m []string, now parts) parts {
		return parts{orNumber(m[3], now.year), looseMonths[m[1]], orNumber(m[2], 1)}
	}},
	{looseMonth, func(m []string, now parts) parts {
		return parts{orNumber(m[2], now.year), looseMonths[m[1]], 1}
	}},
	{looseSlash, func(m []string, now parts) parts {
		if m[3] == "" { // month/day
			return parts{now.year, orNumber(m[1], 1), orNumber(m[2], 1)}
		}
		if len(m[1]) < 3 && len(m[3]) > 2 { // day/month/year
			return parts{orNumber(m[3], 1), orNumber(m[2], 1), orNumber(m[1], 1)}
		}
		return parts{shortYear(m[1]), orNumber(m[2], 1), orNumber(m[3], 1)}
	}},
}

// shortYear: two digits from 69 on are of the last century.
func shortYear(digits string) int {
	year := orNumber(digits, 0)
	switch {
	case len(digits) > 2:
		return year
	case year >= 69:
		return 1900 + year
	}
	return 2000 + year
}

// looseTime finds the time of day and its zone; ok is false for one that does
// not exist.
func looseTime(s string) (since time.Duration, zone *time.Location, found, ok bool) {
	zone = time.UTC
	m := looseClock.FindStringSubmatch(s)
	if m == nil {
		return 0, zone, false, true
	}
	hour, minute, second := orNumber(m[1], 0), orNumber(m[2], 0), orNumber(m[3], 0)
	switch half := m[5] + m[6]; {
	// 12 am is midnight and 12 pm is noon.
	case half != "":
		if hour > 12 {
			return 0, nil, false, false
		}
		hour %= 12
		if half == "p" {
			hour += 12
		}
	}
	if hour > 24 || minute > 59 || second > 60 {
		return 0, nil, false, false
	}
	since = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	if m[4] != "" {
		nanos, _ := strconv.Atoi((m[4] + "000000000")[:9])
		since += time.Duration(nanos)
	}
	switch {
	case m[8] != "":
		offset := orNumber(m[8][1:], 0)*3600 + orNumber(m[9], 0)*60
		if m[8][0] == '-' {
			offset = -offset
		}
		zone = time.FixedZone("", offset)
	case looseZones[m[7]] != 0:
		zone = time.FixedZone(strings.ToUpper(m[7]), looseZones[m[7]]*3600)
	}
	return since, zone, true, true
}
