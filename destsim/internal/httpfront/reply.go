package httpfront

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// appendReply appends the bytes that net/http would send.
func (s *Server) appendReply(dst []byte, r *Reply, now time.Time, closing bool) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(append(append(dst, ' '), http.StatusText(r.Status)...), "\r\n"...)
	if r.Header == nil {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(r.Body)), 10)
		dst = append(dst, "\r\nContent-Type: application/json\r\n"...)
		if r.RateLimit > 0 {
			dst = append(dst, "X-Ratelimit-Limit: "...) // spec 8
			dst = append(strconv.AppendInt(dst, r.RateLimit, 10), "\r\n"...)
		}
	} else {
		r.Header.Set("Content-Length", strconv.Itoa(len(r.Body)))
		b := bytes.NewBuffer(dst)
		_ = r.Header.Write(b) // sorted, as there
		dst = b.Bytes()
	}
	dst = append(append(append(dst, "Date: "...), s.dateAt(now)...), "\r\n"...)
	if closing {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(append(dst, "\r\n"...), r.Body...)
}

// dateText is the Date header of one second.
type dateText struct {
	second int64
	text   []byte
}

// dateAt is the value of the Date header.
func (s *Server) dateAt(now time.Time) []byte {
	second := now.Unix()
	if d := s.date.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &dateText{second, now.UTC().AppendFormat(nil, http.TimeFormat)}
	s.date.Store(d)
	return d.text
}
