package destsim

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// appendReply appends the bytes that net/http would send.
func (s *Server) appendReply(dst []byte, c *call, now time.Time, closing bool) []byte {
	h := &c.reply
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(h.status), 10)
	dst = append(append(append(dst, ' '), http.StatusText(h.status)...), "\r\n"...)
	if h.header == nil {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(h.sent)), 10)
		dst = append(dst, "\r\nContent-Type: application/json\r\n"...)
		if limit := c.sim.rateLimit.Load(); limit > 0 {
			dst = append(dst, "X-Ratelimit-Limit: "...) // spec 8
			dst = append(strconv.AppendInt(dst, limit, 10), "\r\n"...)
		}
	} else {
		h.header.Set("Content-Length", strconv.Itoa(len(h.sent)))
		b := bytes.NewBuffer(dst)
		_ = h.header.Write(b) // sorted, as there
		dst = b.Bytes()
	}
	dst = append(append(append(dst, "Date: "...), s.dateAt(now)...), "\r\n"...)
	if closing {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(append(dst, "\r\n"...), h.sent...)
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
