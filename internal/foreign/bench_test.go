package foreign

import (
	"testing"

	"github.com/destkit/destkit/internal/testkit"
)

func BenchmarkRedactMegabyte(b *testing.B) {
	r := New()
	for _, secret := range testkit.Secrets {
		r.Add(secret, "$S")
	}
	text := make([]byte, 0, 1<<20)
	for len(text) < 1<<20 {
		text = append(text, `{"identifier":"zz-conf-1-RES-002-1@example.com","success":false,"error_message":"a\nb % c"},`...)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Bytes(text)
	}
}

// BenchmarkRedactMessage is what a batch whose records fail costs: one short text
// for each.
func BenchmarkRedactMessage(b *testing.B) {
	r := New()
	r.Add("tok_live-abcdefghijklmnop", "$S")
	b.ReportAllocs()
	for b.Loop() {
		r.String(`the field "e-mail" is not valid: zz-conf-1-RES-002-1@example (code 17)`)
	}
}
