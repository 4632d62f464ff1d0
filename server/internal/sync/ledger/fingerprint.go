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

// Operations that are passed to Options.Fault.
const (
	FaultRead     = "read"
	FaultWrite    = "write"
	FaultSync     = "sync"
	FaultTruncate = "truncate"
	FaultCreate   = "create"
	FaultRename   = "rename"
	FaultRemove   = "remove"
)

// fault is how a test has a bad disk; nil has a good one.
type fault func(what, name string, n int) (int, error)

// of checks an operation that is done or not.
func (f fault) of(what, name string) error {
	if f == nil {
		return nil
	}
	_, err := f(what, name, 0)
	return err
}

// some returns how many of n bytes are written.
func (f fault) some(name string, n int) (int, error) {
	if f == nil {
		return n, nil
	}
	return f(FaultWrite, name, n)
}
