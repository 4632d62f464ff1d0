package failure

import (
	"bytes"
	"errors"
	"fmt"
)

// Clip shortens what came from outside for a message.
func Clip(b []byte) string {
	const most = 80
	if len(b) <= most {
		return string(b)
	}
	return string(bytes.ToValidUTF8(b[:most], nil)) + "…"
}

// LongestMessage bounds a message in reports.
const LongestMessage = 300

// Shorten bounds a message for reports.
func Shorten(text string) string {
	if len(text) <= LongestMessage {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:LongestMessage]), nil)) + "…"
}

// StatusText says what an answer without an envelope was. Where a redirect leads
// is not shown: it may hold a secret, and no batch is sent there.
func StatusText(status int, body []byte) string {
	text := fmt.Sprintf("HTTP status %d", status)
	if status/100 == 3 {
		return text + ", a redirect, which is not followed: give the URL that it leads to"
	}
	if said := Clip(bytes.TrimSpace(body)); said != "" {
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
