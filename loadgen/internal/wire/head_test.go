package wire

import "testing"

func BenchmarkHead(b *testing.B) {
	text := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Ratelimit-Limit: 50000\r\nDate: Sat, 21 Nov 2026 22:41:42 GMT\r\nContent-Length: 120\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseHead(text); err != nil {
			b.Fatal(err)
		}
	}
}
