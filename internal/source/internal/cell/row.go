// Package cell has the forms in which the readers of sources write values: each cell is
// JSON text in the one form that keys compare in, and a row is the memory of its cells.
//
// It leaves to the readers where values come from and which form is meant.
package cell

import "strconv"

// Row is the memory of one row: all values in one buffer, to which they are
// appended.
type Row struct {
	Buf   []byte
	ends  []int
	cells [][]byte
}

// Forget lets go of the values that were handed out last.
func (r *Row) Forget() { clear(r.cells) }

// NewRow makes a row that is used again for each record.
func NewRow(width int) Row {
	return Row{ends: make([]int, 0, width), cells: make([][]byte, width)}
}

// Reset keeps the memory.
func (r *Row) Reset() { r.Buf, r.ends = r.Buf[:0], r.ends[:0] }

// End closes the value that was appended to buf.
func (r *Row) End() { r.ends = append(r.ends, len(r.Buf)) }

// Values cuts the buffer up. They are valid until the next reset.
func (r *Row) Values() [][]byte {
	start := 0
	for i, end := range r.ends {
		r.cells[i] = r.Buf[start:end:end]
		start = end
	}
	return r.cells
}

// Days and times as text, without package time: a date of a row costs some 20 ns
// this way.

// AppendPadded writes a number with leading zeros.
func AppendPadded(dst []byte, n, width int) []byte {
	for limit := 10; width > 1; width, limit = width-1, limit*10 {
		if n < limit {
			for range width - 1 {
				dst = append(dst, '0')
			}
			break
		}
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// AppendDate writes the day that is so many days after 1970-01-01, as
// YYYY-MM-DD; years before 0 and after 9999 have a sign (ISO 8601).
func AppendDate(dst []byte, days int64) []byte {
	// Days in eras of 400 years that start on a 1 March.
	z := days + 719468
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	day := z - era*146097
	year := (day - day/1460 + day/36524 - day/146096) / 365
	day -= 365*year + year/4 - year/100
	month := (5*day + 2) / 153
	day -= (153*month+2)/5 - 1
	year += era * 400
	if month += 3; month > 12 {
		month, year = month-12, year+1
	}
	switch {
	case year < 0:
		dst, year = append(dst, '-'), -year
	case year > 9999:
		dst = append(dst, '+')
	}
	dst = append(AppendPadded(dst, int(year), 4), '-')
	dst = append(AppendPadded(dst, int(month), 2), '-')
	return AppendPadded(dst, int(day), 2)
}

// AppendClock writes a time of day from nanoseconds, as HH:MM:SS and, where
// there is one, the fraction without zeros at its end.
func AppendClock(dst []byte, nanos int64) []byte {
	seconds, fraction := int(nanos/1e9), int(nanos%1e9)
	dst = append(AppendPadded(dst, seconds/3600, 2), ':')
	dst = append(AppendPadded(dst, seconds/60%60, 2), ':')
	dst = AppendPadded(dst, seconds%60, 2)
	if fraction == 0 {
		return dst
	}
	width := 9
	for fraction%10 == 0 {
		fraction, width = fraction/10, width-1
	}
	return AppendPadded(append(dst, '.'), fraction, width)
}

// AppendTimestamp writes day and time from a count of units since 1970, so many
// of which are a second.
func AppendTimestamp(dst []byte, count, perSecond int64) []byte {
	perDay := 86400 * perSecond
	days := count / perDay
	if count%perDay < 0 {
		days--
	}
	dst = AppendDate(dst, days)
	return AppendClock(append(dst, 'T'), (count-days*perDay)*(1e9/perSecond))
}
