package source

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strconv"
)

// Ranger is a Reader whose tables can be read in ranges of a column, so that
// several readers share one table.
type Ranger interface {
	Reader
	// Sample tells about how many rows an object has, and gives values of a column
	// that lie evenly among them, in ascending order of the bytes of their JSON
	// texts, none twice. There are none where the object cannot be read in ranges
	// of that column, or not faster than as a whole.
	Sample(ctx context.Context, object Object, column string) (values [][]byte, rows int64, err error)
	// Range is Rows in the order of one column, of those rows alone whose value is
	// in a range. It is a snapshot of its own unless the range names one; where that
	// cannot be read any more the error is an ErrNoSnapshot.
	Range(ctx context.Context, object Object, columns []string, of Range) (Rows, error)
}

// Range is the rows whose value of a column, as JSON text, is From or above and
// below To, compared by bytes. nil is no bound; NULL is above all values.
type Range struct {
	Column   string
	From, To []byte
	Snapshot string // its name, see Snapshotter
}

// sampleSize is how many values a Sample has, about.
const sampleSize = 1024

// evenly puts a sample in order, without repeats.
func evenly(values [][]byte) [][]byte {
	slices.SortFunc(values, bytes.Compare)
	return slices.CompactFunc(values, bytes.Equal)
}

// bounds are the numbers of a range among those from low to high, which have one
// sign and one number of digits: they come in the order of their texts by size,
// upwards or, below zero, downwards. ok is false where there are none.
func (r Range) bounds(low, high int64) (int64, int64, bool) {
	step := int64(1)
	if high <= 0 && low < 0 {
		step = -1
	}
	first, last := low, high
	if step < 0 {
		first, last = high, low
	}
	count := uint64(step * (last - first)) // may not fit into an int64
	// below counts the numbers whose texts sort before a bound.
	below := func(bound []byte) uint64 {
		from, to := uint64(0), count+1
		for from < to {
			middle := from + (to-from)/2
			if bytes.Compare(strconv.AppendInt(nil, first+step*int64(middle), 10), bound) < 0 {
				from = middle + 1
			} else {
				to = middle
			}
		}
		return from
	}
	start, end := uint64(0), count+1
	if r.From != nil {
		start = below(r.From)
	}
	if r.To != nil {
		end = below(r.To)
	}
	if start >= end {
		return 0, 0, false
	}
	a, b := first+step*int64(start), first+step*int64(end-1)
	return min(a, b), max(a, b), true
}

// lanes are the stretches of integers whose texts come in the order of their
// size: those of each number of digits, below zero and above.
func lanes(each func(low, high int64, descending bool) error) error {
	low := int64(0)
	for high := int64(9); ; high = high*10 + 9 {
		if err := each(low, high, false); err != nil {
			return err
		}
		if err := each(-high, -max(low, 1), true); err != nil {
			return err
		}
		low = high + 1
		if high >= 999_999_999_999_999_999 {
			break
		}
	}
	if err := each(low, math.MaxInt64, false); err != nil {
		return err
	}
	return each(math.MinInt64, -low, true)
}
