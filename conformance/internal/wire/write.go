package wire

import (
	"errors"
	"io"
	"strconv"
	"time"
)

// write writes the request, or as much of it as the call asks for.
func (c *Conn) write(q *request, goAhead <-chan struct{}, deadline time.Time) error {
	body := q.call.Body
	if !q.call.ExpectContinue && !q.call.Chunked && q.call.CutRequestAfter == 0 && len(body) <= 64<<10 {
		// One write, one segment where it fits.
		if _, err := c.nc.Write(append(q.head[:len(q.head):len(q.head)], body...)); err != nil {
			return err
		}
		return c.cut(q.call.CutAfterRequest)
	}
	if _, err := c.nc.Write(q.head); err != nil {
		return err
	}
	if q.call.ExpectContinue {
		timer := time.NewTimer(min(ContinueWait, time.Until(deadline)/2))
		defer timer.Stop()
		select {
		case _, open := <-goAhead:
			if !open { // a final response came instead: the body is not wanted
				return errors.New("the endpoint did not ask for the body")
			}
		case <-timer.C:
		}
	}
	if n := q.call.CutRequestAfter; n > 0 && n < len(body) {
		if err := c.writeBody(q, body[:n], false); err != nil {
			return err
		}
		return c.cut(true)
	}
	if err := c.writeBody(q, body, true); err != nil {
		return err
	}
	return c.cut(q.call.CutAfterRequest || q.call.CutRequestAfter > 0)
}

// writeBody writes plain, or in chunks of half the body, 16 KiB at most.
func (c *Conn) writeBody(q *request, body []byte, last bool) error {
	if !q.call.Chunked {
		_, err := c.nc.Write(body)
		return err
	}
	size := min(max((len(body)+1)/2, 1), 16<<10)
	for len(body) > 0 {
		n := min(size, len(body))
		chunk := append(strconv.AppendInt(nil, int64(n), 16), "\r\n"...)
		chunk = append(append(chunk, body[:n]...), "\r\n"...)
		if _, err := c.nc.Write(chunk); err != nil {
			return err
		}
		body = body[n:]
	}
	if !last {
		return nil
	}
	_, err := io.WriteString(c.nc, "0\r\n\r\n")
	return err
}

// cut closes after what was written, when asked to.
func (c *Conn) cut(asked bool) error {
	if !asked {
		return nil
	}
	c.kill(errCut)
	return errCut
}

// finishing waits a moment for a writer that is about to end anyway.
func (c *Conn) finishing(written <-chan error, writeErr *error) bool {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case *writeErr = <-written:
		return true
	case <-timer.C:
		return false
	}
}
