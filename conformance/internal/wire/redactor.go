package wire

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
)

// Redactor takes secrets out of whatever is recorded.
type Redactor = foreign.Redactor

// NewRedactor gives a redactor without secrets.
func NewRedactor() *Redactor { return foreign.New() }

// RequestBody and ResponseBody give a whole body as an exchange keeps it:
// redacted, and cut where it is long.
func RequestBody(r *Redactor, body []byte) Body {
	return recordBody(r, body, int64(len(body)), recordedRequest)
}

// ResponseBody is like RequestBody for the other half.
func ResponseBody(r *Redactor, body []byte) Body {
	return recordBody(r, body, int64(len(body)), recordedResponse)
}

// recordBody redacts and cuts one body of size bytes.
func recordBody(r *Redactor, body []byte, size int64, limit int) Body {
	shown := r.Cut(body, limit)
	b := Body{Size: size, Truncated: size > int64(len(body)) || len(body) > limit}
	if b.Truncated {
		shown = wholeRunes(shown)
	}
	if utf8.Valid(shown) {
		b.Text = string(shown)
	} else {
		b.Base64 = base64.StdEncoding.EncodeToString(shown)
	}
	return b
}
