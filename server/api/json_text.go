package api

// LostByte stands in the JSON text of a source's row for a byte that is no
// UTF-8. It reads as U+FFFD, and nobody else writes that character like this: so
// text that was damaged can be told from text that holds the character.
const LostByte = `\uFFfd`

const hexDigits = "0123456789abcdef"

// AppendEscape writes a character below U+0080 that JSON does not allow as it is
// within a string: a quote, a backslash or a control character (RFC 8259
// section 7).
func AppendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
