package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// sameValue compares a stored value with the one that was sent, by the declared
// type of the field. note tells a loss that published text tolerates.
func sameValue(f rpc.Field, sent, stored json.RawMessage) (same bool, note string) {
	a, errA := wire.Parse(sent)
	b, errB := wire.Parse(stored)
	if errA != nil || errB != nil {
		return false, ""
	}
	return sameNode(f, a, b)
}

func sameNode(f rpc.Field, sent, stored *wire.Node) (bool, string) {
	if sent.Kind == wire.Null || stored.Kind == wire.Null {
		return sent.Kind == stored.Kind, ""
	}
	if f.Array {
		if sent.Kind != wire.Array || stored.Kind != wire.Array || len(sent.Items) != len(stored.Items) {
			return false, ""
		}
		item := f
		item.Array = false
		for i := range sent.Items {
			if ok, _ := sameNode(item, sent.Items[i], stored.Items[i]); !ok {
				return false, ""
			}
		}
		return true, ""
	}
	switch f.Type {
	case rpc.TypeBoolean:
		return stored.Kind == wire.Bool && string(sent.Raw) == string(stored.Raw), ""
	case rpc.TypeInteger:
		return stored.Kind == wire.Number && sameNumber(string(sent.Raw), string(stored.Raw)), ""
	case rpc.TypeDecimal:
		return sameDecimal(nodeText(sent), nodeText(stored))
	case rpc.TypeFloat:
		return stored.Kind == wire.Number && sameFloat(string(sent.Raw), string(stored.Raw)), ""
	case rpc.TypeDateTime:
		return sameInstant(nodeText(sent), nodeText(stored))
	default:
		return stored.Kind == wire.String && sent.Text == stored.Text && sent.LoneSurrogate == stored.LoneSurrogate, ""
	}
}

// exactDigits is the number of significant digits that a decimal must keep; the
// published type has no bound, so that the loss of further ones is only noted.
const exactDigits = 18

func sameDecimal(sent, stored string) (bool, string) {
	if sameNumber(sent, stored) {
		return true, ""
	}
	digits := strings.Trim(strings.NewReplacer(".", "", "-", "", "+", "").Replace(sent), "0")
	if len(digits) > exactDigits {
		return true, fmt.Sprintf("%s of %d digits came back as %s", sent, len(digits), clip(stored, 80))
	}
	return false, ""
}

// sameNumber compares decimals exactly, whatever their notation.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	// An exponent beyond reason would make big numbers of a short text.
	if longExponent(a) || longExponent(b) {
		return false
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

func longExponent(s string) bool {
	_, exp, ok := strings.Cut(strings.ToLower(s), "e")
	n, err := strconv.Atoi(exp)
	return ok && (err != nil || n > 400 || n < -400)
}

// sameFloat compares as doubles; minus zero may come back as zero.
func sameFloat(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if math.IsInf(x, 0) {
		return a == b
	}
	return errX == nil && errY == nil && x == y
}

// sameInstant compares date_times to the second (spec 2); a lost fraction is
// noted, never judged.
func sameInstant(sent, stored string) (bool, string) {
	a, errA := time.Parse(time.RFC3339Nano, sent)
	b, errB := time.Parse(time.RFC3339Nano, stored)
	if errA != nil || errB != nil {
		return sent == stored, ""
	}
	if a.Equal(b) {
		return true, ""
	}
	if a.Truncate(time.Second).Equal(b.Truncate(time.Second)) {
		return true, fmt.Sprintf("%s came back as %s: fractions of seconds are lost", sent, stored)
	}
	return false, ""
}
