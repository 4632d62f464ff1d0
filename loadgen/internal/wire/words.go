package wire

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/destkit/destkit/internal/foreign"
)

// LongestMessage bounds a message in reports, and LongestQuote what a message repeats of
// what came from outside, in characters.
const (
	LongestMessage = 300
	LongestQuote   = 80
)

// StatusText says what an answer without an envelope was. Where a redirect leads
// is not shown: it may hold a secret, and no batch is sent there.
func StatusText(status int, body []byte) string {
	text := fmt.Sprintf("HTTP status %d", status)
	if status/100 == 3 {
		return text + ", a redirect, which is not followed: give the URL that it leads to"
	}
	if said := foreign.Clip(bytes.TrimSpace(body), LongestQuote); said != "" {
		text += ": " + said
	}
	return text
}

// MessageOf is an error without the word for its kind.
func MessageOf(err error) string {
	var f *Failure
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// FirstPart is as much of a foreign text as is looked at.
func FirstPart(text []byte) []byte {
	const most = 2 << 10
	if len(text) <= most {
		return text
	}
	return bytes.ToValidUTF8(text[:most], nil)
}
