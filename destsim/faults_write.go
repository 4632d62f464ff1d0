package destsim

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
)

// faultWrite changes what goes onto the wire.
func faultWrite(c *call, h *httpReply) {
	for _, f := range c.touch.all() {
		f.write(c, h)
	}
	if c.touch != nil && c.touch.cut != nil {
		// No byte at all: neither a status line nor a body.
		h.raw, h.reset = []byte{}, c.touch.cut.Kind == "reset"
	}
}

// write applies one fault to the reply; what breaks the framing makes the
// reply go out by hand, and the connection ends with it.
func (f *firing) write(c *call, h *httpReply) {
	pause := milliseconds(cmp.Or(f.PauseMS, 100))
	switch f.Kind {
	case "http_status":
		for name, value := range f.Headers {
			h.header.Set(name, value)
		}
		if f.Body != "" {
			h.body, h.coding = []byte(f.Body), ""
		}
		if f.Status == http.StatusNoContent || f.Status == http.StatusNotModified {
			h.body, h.coding = nil, ""
		}
	case "throttle":
		h.setRetryAfter(f.Fault, c.sim.clock())
	case "rate_limit":
		if value := f.Limits[f.turn%int64(len(f.Limits))]; value != "" {
			h.header.Set("X-RateLimit-Limit", value) // spec 8
		} else {
			h.header.Del("X-RateLimit-Limit")
		}
	case "truncate":
		h.coding = "" // so that the length is known
		h.cut = cmp.Or(f.Bytes, max(len(h.body)/2, 1))
	case "stall":
		// Compression would end the body before the place of the pause.
		h.coding = ""
		h.stall, h.stallAt = pause, cmp.Or(f.Bytes, len(h.body)/2)
	case "slow_body":
		h.drip, h.dripBy = pause, cmp.Or(f.Bytes, 16)
	}
}

// setRetryAfter writes the header in one of its two forms, or as no client can
// read it (a service honours it on 429).
func (h *httpReply) setRetryAfter(f *Fault, now time.Time) {
	seconds := max(f.Seconds, 1)
	switch f.RetryAfter {
	case "", "seconds":
		h.header.Set("Retry-After", strconv.Itoa(seconds))
	case "date":
		h.header.Set("Retry-After", now.Add(time.Duration(seconds)*time.Second).UTC().Format(http.TimeFormat))
	case "absent":
		h.header.Del("Retry-After")
	case "garbage":
		h.header.Set("Retry-After", "in a while")
	}
}
