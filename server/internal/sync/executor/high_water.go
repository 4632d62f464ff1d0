package executor

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
)

// highWater is the high-water mark of an append sync (spec 2.6): a run
// sends the rows with mark <= t < top, where top is the greatest t of the source
// as the run begins. Rows at the top wait for the next run, since more of the
// same moment may follow.
type highWater struct {
	column string
	mark   *time.Time // nil: this is the first run
	top    *time.Time // nil: the source has no row with a time
	lowest *time.Time // of records refused to the end: the mark goes no further
}

// Reasons of rows that a high-water mark cannot place.
const (
	invalidNoTime  = "the column of the high-water mark is NULL"
	invalidNotTime = "the column of the high-water mark is not a timestamp"
)

// HighWaterColumn names the column of the high-water mark of a sync, in its present or
// its deprecated form (spec 2.6); "" without one.
func HighWaterColumn(c *api.SyncConfig) string {
	if c.Operation != api.OperationAppend {
		return ""
	}
	if c.HighWaterMarkAttribute != nil {
		return *c.HighWaterMarkAttribute
	}
	if old := c.HighWaterMarkAttributes; old != nil && old.UseHighWaterMark && old.ColumnName != nil {
		return *old.ColumnName
	}
	return ""
}

// measure finds the top, in a pass over the one column.
func (r *reading) measure(ctx context.Context) error {
	column := HighWaterColumn(&r.job.Config)
	if column == "" || r.stream != nil {
		return nil
	}
	r.highWater = &highWater{column: column}
	if text := r.booking.before.HighWater; len(text) > 0 && string(text) != "null" {
		mark := time.Time{}
		if err := json.Unmarshal(text, &mark); err != nil {
			return failed(CodeState, err, "read the high-water mark: %v", err)
		}
		r.highWater.mark = &mark
	}
	rows, err := r.job.Source.Rows(ctx, r.job.Object, []string{column}, nil)
	if err != nil {
		return explain(ctx, &sourceError{err})
	}
	defer rows.Close()
	for n := 0; ; n++ {
		if n%often == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return explain(ctx, &sourceError{err})
		}
		if t, ok := Moment(row[0]); ok && (r.highWater.top == nil || t.After(*r.highWater.top)) {
			r.highWater.top = &t
		}
	}
}

// place reports whether a row belongs to this run, and why it cannot belong to
// any.
func (w *highWater) place(raw []byte) (t time.Time, now bool, invalid string) {
	if string(raw) == "null" {
		return t, false, invalidNoTime
	}
	t, ok := Moment(raw)
	if !ok {
		return t, false, invalidNotTime
	}
	now = (w.mark == nil || !t.Before(*w.mark)) && w.top != nil && t.Before(*w.top)
	return t, now, ""
}

// next is the mark after the run: the top, unless something below it was not
// acknowledged. Rows in between are read again then, and not sent again. The
// mark never moves back, also when the latest rows of the source are deleted:
// older rows would be seen as new.
func (w *highWater) next(complete, skipped bool) *time.Time {
	mark := w.mark
	switch {
	case !complete:
		return mark
	case skipped || w.lowest == nil:
		if mark == nil || w.top != nil && w.top.After(*mark) {
			return w.top
		}
	case mark == nil || w.lowest.After(*mark):
		return w.lowest
	}
	return mark
}

// refuse notes that a record was refused to the end.
func (w *highWater) refuse(t time.Time) {
	if w.lowest == nil || t.Before(*w.lowest) {
		w.lowest = &t
	}
}

// layouts of moments as sources write them; those without a zone are UTC.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", time.DateOnly,
}

// Moment reads a moment from its JSON text: a date, a timestamp, or a number
// of seconds since 1970; false where it is none.
func Moment(raw []byte) (time.Time, bool) {
	text, err := rawjson.StringText(raw)
	if err != nil {
		seconds, err := strconv.ParseInt(string(raw), 10, 64)
		return time.Unix(seconds, 0).UTC(), err == nil
	}
	text = strings.TrimSpace(text)
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// timed hands on the rows of this run alone, without the column of the mark
// where the records do not want it.
type timed struct {
	source.Rows
	highWater *highWater
	at        int // of the column in the row
	width     int // so many cells belong to the records
	now       time.Time
	fault     string
}

// Next implements source.Rows.
func (t *timed) Next() ([][]byte, error) {
	for {
		row, err := t.Rows.Next()
		if err != nil {
			return nil, err
		}
		var mine bool
		if t.now, mine, t.fault = t.highWater.place(row[t.at]); mine || t.fault != "" {
			return row[:t.width], nil
		}
	}
}

// stamp is the moment of a row on its way; all zero without a high-water mark.
// It is the fingerprint then: two rows of one key with different moments are two
// events.
type stamp [12]byte

func stampOf(t time.Time) (s stamp) {
	binary.BigEndian.PutUint64(s[:], uint64(t.Unix()))
	binary.BigEndian.PutUint32(s[8:], uint32(t.Nanosecond()))
	return s
}

func (s stamp) time() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(s[:])), int64(binary.BigEndian.Uint32(s[8:]))).UTC()
}
