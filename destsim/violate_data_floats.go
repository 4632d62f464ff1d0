package destsim

import (
	"math"
	"strconv"

	"github.com/destkit/destkit/destsim/rpc"
)

// floatViolations keep floats in less than their width (DAT-015). Numbers that
// single precision cannot hold are left alone: those are the subject of
// DAT-006.
func floatViolations() []violation {
	return []violation{
		narrowed("DAT-015", "floats within the range of single precision are stored in it", func(v float64) string {
			return strconv.FormatFloat(v, 'g', -1, 32)
		}),
		narrowed("DAT-015.2", "floats within the range of single precision are stored with six significant digits", func(v float64) string {
			return strconv.FormatFloat(v, 'g', 6, 64)
		}),
	}
}

// smallestNormal is the least number that single precision holds in its full
// width, 2^-126.
const smallestNormal = 0x1p-126

// narrowed stores what print makes of a float where that is another number.
func narrowed(id, changes string, print func(v float64) string) violation {
	return alters(id, changes, rpc.TypeFloat, func(raw []byte) []byte {
		v, err := strconv.ParseFloat(string(raw), 64)
		if size := math.Abs(v); err != nil || size < smallestNormal || size > math.MaxFloat32 {
			return nil
		}
		text := print(v)
		if kept, err := strconv.ParseFloat(text, 64); err != nil || kept == v {
			return nil
		}
		return []byte(text)
	})
}
