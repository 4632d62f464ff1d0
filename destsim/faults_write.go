package destsim

import (
	"net/http"
	"strconv"
	"time"
)

// faultWrite changes what goes onto the wire.
func faultWrite(c *call, h *httpReply) {
	if c.touch == nil {
		return
	}
	for i := range c.touch.firings {
		c.touch.firings[i].write(c, h)
	}
	if cut := c.touch.cut; cut != nil {
		// No byte at all: neither a status line nor a body.
		h.raw, h.reset = []byte{}, cut.Kind == "reset"
	}
}

// write applies one fault to the reply; what breaks the framing makes the
// reply go out by hand, and the connection ends with it.
func (f *firing) write(c *call, h *httpReply) {
	pause := f.PauseMS
	if pause == 0 {
		pause = 100
	}
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
		if h.cut = f.Bytes; h.cut == 0 {
			h.cut = max(len(h.body)/2, 1)
		}
	case "stall":
		// Compression would end the body before the place of the pause.
		h.coding = ""
		if h.stallAt = f.Bytes; h.stallAt == 0 {
			h.stallAt = len(h.body) / 2
		}
		h.stall = milliseconds(pause)
	case "slow_body":
		if h.dripBy = f.Bytes; h.dripBy == 0 {
			h.dripBy = 16
		}
		h.drip = milliseconds(pause)
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
