package ledger

import (
	"encoding/hex"
	"fmt"
)

// MarshalText gives hexadecimal digits.
func (f Fingerprint) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f[:]), nil }

// UnmarshalText reads 32 hexadecimal digits.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(f) {
		return fmt.Errorf("fingerprint %q: %d digits are wanted", text, 2*len(f))
	}
	if _, err := hex.Decode(f[:], text); err != nil {
		return fmt.Errorf("fingerprint %q: %w", text, err)
	}
	return nil
}
