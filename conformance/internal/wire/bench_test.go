package wire

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func BenchmarkDo(b *testing.B) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	srv := httptest.NewServer(handler)
	defer srv.Close()
	dial, stop := ServeHandler(handler)
	defer stop()
	body := []byte(`{"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contacts"}},"id":"00112233445566778899aabbccddeeff"}`)
	for name, opts := range map[string]Options{
		"loopback": {URL: srv.URL + "/?key=0123456789", Token: "0123456789abcdef"},
		"memory":   {URL: "http://memory/?key=0123456789", Token: "0123456789abcdef", Dial: dial},
	} {
		b.Run(name, func(b *testing.B) {
			c, err := New(opts)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if r := c.Do(b.Context(), Call{Body: body}); !r.OK() {
					b.Fatal(r.Err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{
		"results": `[` + strings.Repeat(`{"identifier":"zz-1@example.com","success":false,"error_message":"a\nb"},`, 10_000) + `0]`,
		"escapes": `"` + strings.Repeat(`\u001b`, 100_000) + `"`,
		"letters": `"` + strings.Repeat(`x`, 1_000_000) + `"`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
