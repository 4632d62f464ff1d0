package destsim

import (
	"bytes"
	"net/http"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// altersText is a violation that stores another text.
func altersText(id, changes string, change func(text string) string) violation {
	return alters(id, changes, rpc.TypeString, func(raw []byte) []byte {
		text, err := rawjson.StringText(raw)
		if err != nil {
			return nil
		}
		return store.Quote(change(text))
	})
}

// holds reports whether a raw value is a string with that text in it.
func holds(part string) func(raw []byte) bool {
	return func(raw []byte) bool {
		text, err := rawjson.StringText(raw) // half a surrogate pair is no text
		return err == nil && strings.Contains(text, part)
	}
}

// textViolations do not keep strings (DAT-001, DAT-002, DAT-011, DAT-013).
func textViolations() []violation {
	return []violation{
		altersText("DAT-001", `characters outside the basic plane in values are stored as "?"`, func(text string) string {
			return strings.Map(func(r rune) rune {
				if r > 0xFFFF {
					return '?'
				}
				return r
			}, text)
		}),
		altersText("DAT-001.2", "values are stored in Unicode form NFC", norm.NFC.String),
		crashes("DAT-002", "a record with U+0000 in a value closes the connection without a response", rpc.TypeString, holds("\x00")),
		altersText("DAT-011", "strings are trimmed", strings.TrimSpace),
		alters("DAT-011.2", "strings of digits are stored as numbers, without leading zeros", rpc.TypeString, func(raw []byte) []byte {
			digits := raw[1 : len(raw)-1]
			if len(digits) == 0 || len(bytes.Trim(digits, "0123456789")) > 0 {
				return nil
			}
			if digits = bytes.TrimLeft(digits, "0"); len(digits) == 0 {
				return []byte("0")
			}
			return digits
		}),
		statementViolation(),
		breaks("DAT-013", `a \u00a0 to \u00ff in a string value is stored as the six characters of the escape`,
			seams{value: func(_ *call, r *record, cell *cell) {
				if !cell.single(rpc.TypeString) {
					return
				}
				raw, _ := r.raw.Field(cell.column.APIName)
				if text, err := rawjson.StringText(literalEscapes(raw)); err == nil {
					cell.raw = store.Quote(text)
				}
			}}),
	}
}

// statementViolation is DAT-011.3: a value ends the statement that it was
// pasted into, and no one catches that.
func statementViolation() violation {
	const message = "unterminated string in the statement"
	return breaks("DAT-011.3", "a string that contains '; ends the call with a bare status 500", seams{
		batch: func(c *call, b *batch) *rpc.Error {
			if b.carries(rpc.TypeString, holds("';")) {
				c.refuse(http.StatusInternalServerError, rpc.CodeInternalError, message)
			}
			return nil
		},
		write: func(c *call, h *httpReply) {
			if c.err != nil && c.err.Message == message {
				h.body = []byte("Internal Server Error")
				h.set("Content-Type", "text/plain; charset=utf-8")
			}
		},
	})
}

// literalEscapes doubles the backslash of every escape of a letter from \u00a0
// to \u00ff, so that the escape itself becomes the text.
func literalEscapes(raw []byte) []byte {
	out := make([]byte, 0, len(raw)+8)
	for i := 0; i < len(raw); i++ {
		out = append(out, raw[i])
		if raw[i] != '\\' || i+1 == len(raw) {
			continue
		}
		if latinEscape(raw[i:]) {
			out = append(out, '\\')
		}
		i++ // what is escaped begins no escape
		out = append(out, raw[i])
	}
	return out
}

func latinEscape(s []byte) bool {
	return len(s) >= 6 && string(s[1:4]) == "u00" && s[4]|0x20 >= 'a' && s[4]|0x20 <= 'f'
}
