package proxy

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/rawjson"
)

// brokenHAR is a place of an archive at which it is no JSON. An archive is read piece by
// piece, so that the error knows its byte alone, and not its line.
type brokenHAR struct {
	where string // such as log.entries[3]
	err   error
}

func (e *brokenHAR) Error() string {
	var syntax *json.SyntaxError
	if errors.As(e.err, &syntax) {
		return fmt.Sprintf("%snot JSON at byte %d; expected %s", e.where, syntax.Offset, recording.Expected)
	}
	return fmt.Sprintf("%snot JSON: it ends in the middle; expected %s", e.where, recording.Expected)
}

func (e *brokenHAR) Unwrap() error { return e.err }

// maxPlaced bounds an archive that is read once more to say where it is wrong, in bytes.
const maxPlaced = 256 << 20

// placed is the error with line and column, where the archive can be read again.
func (e *brokenHAR) placed(r io.Reader) error {
	again, ok := r.(io.ReadSeeker)
	if !ok {
		return e
	}
	if _, err := again.Seek(0, io.SeekStart); err != nil {
		return e
	}
	text, err := io.ReadAll(io.LimitReader(again, maxPlaced))
	if err != nil || len(text) == maxPlaced {
		return e
	}
	if err := recording.Decode(text, new(json.RawMessage)); err != nil {
		return fmt.Errorf("%s%w", e.where, err)
	}
	return e
}

// unreadable reports why a part of an archive cannot be read, without the text of the file.
func unreadable(where string, err error) error {
	var mistyped *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &mistyped):
		return fmt.Errorf("%s%s %s", where, orWord(mistyped.Field, "the value"), rawjson.Mistyped(mistyped))
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &brokenHAR{where, err}
	}
	return fmt.Errorf("%s%w", where, err)
}

func orWord(text, word string) string {
	if text == "" {
		return word
	}
	return text
}

// The members of HAR 1.2 that are read. Members that a program leaves out are nil.
type (
	harIn struct {
		Started  *string        `json:"startedDateTime"`
		Time     *float64       `json:"time"`
		Request  *harInRequest  `json:"request"`
		Response *harInResponse `json:"response"`
		Timings  *struct {
			Wait *float64 `json:"wait"`
		} `json:"timings"`
		Left float64 `json:"_caller_left_ms"`
		Kind string  `json:"_kind"`
		Text string  `json:"_error"`
	}
	harInRequest struct {
		Method   string                   `json:"method"`
		URL      string                   `json:"url"`
		Headers  []conformance.HeaderLine `json:"headers"`
		PostData *struct {
			Text             *string `json:"text"`
			Encoding         string  `json:"encoding"`
			EncodingOfReport string  `json:"_encoding"`
			Comment          string  `json:"comment"`
		} `json:"postData"`
		BodySize *int64 `json:"bodySize"`
	}
	harInResponse struct {
		Status      int                      `json:"status"`
		HTTPVersion string                   `json:"httpVersion"`
		Headers     []conformance.HeaderLine `json:"headers"`
		Content     *struct {
			Size     int64   `json:"size"`
			Text     *string `json:"text"`
			Encoding string  `json:"encoding"`
			Comment  string  `json:"comment"`
		} `json:"content"`
	}
)

// readHAR reads the entries one after the other: an archive may be larger than memory.
func readHAR(br *bufio.Reader, each func(*conformance.Sight) error) (skipped Skipped, err error) {
	dec := json.NewDecoder(br)
	var broken *brokenHAR
	if err := descend(dec, "log"); errors.As(err, &broken) {
		return skipped, err
	} else if err != nil {
		return skipped, fmt.Errorf("this is neither a journal of destkit proxy nor an HTTP Archive: %w", err)
	}
	if err := descend(dec, "entries"); err != nil {
		return skipped, fmt.Errorf("log: %w", err)
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return skipped, errors.New("log.entries is no array")
	}
	known := endpoints{}
	for n := 0; dec.More(); n++ {
		var e harIn
		if err := dec.Decode(&e); err != nil {
			return skipped, unreadable(fmt.Sprintf("log.entries[%d]: ", n), err)
		}
		s, whole, err := e.sight(n)
		if err != nil {
			return skipped, fmt.Errorf("log.entries[%d].%w", n, err)
		}
		switch {
		case !whole:
			skipped.Incomplete++
		case !known.took(s):
			skipped.Other++
		default:
			if err := each(s); err != nil {
				return skipped, err
			}
		}
	}
	if _, err := dec.Token(); err != nil {
		return skipped, unreadable("log.entries: ", err)
	}
	return skipped, nil
}

// descend opens an object and reads up to the value of a member.
func descend(dec *json.Decoder, name string) error {
	t, err := dec.Token()
	if err != nil {
		return unreadable("", err)
	}
	if t != json.Delim('{') {
		return errors.New("it is no JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return unreadable("", err)
		}
		if key == name {
			return nil
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return unreadable("", err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return unreadable("", err)
	}
	return fmt.Errorf("the member %q is missing", name)
}

// sight takes an entry over. Pseudo headers of HTTP/2 are left out, and so is the
// length of a body that is decoded in the archive.
func (e *harIn) sight(n int) (s *conformance.Sight, whole bool, err error) {
	switch {
	case e.Request == nil:
		return nil, false, errors.New("request is missing")
	case e.Request.Method == "":
		return nil, false, errors.New("request.method is missing")
	case e.Request.URL == "":
		return nil, false, errors.New("request.url is missing")
	case e.Response == nil:
		return nil, false, errors.New("response is missing")
	}
	if _, err := url.Parse(e.Request.URL); err != nil && !strings.HasPrefix(e.Request.URL, "$") {
		return nil, false, errors.New("request.url does not parse")
	}
	s = &conformance.Sight{
		Number: n + 1, CallerLeft: fromMS(e.Left), Decoded: true,
		Asked: conformance.Asked{Method: e.Request.Method, URL: e.Request.URL, Target: targetOf(e.Request.URL), RequestHeader: realHeaders(e.Request.Headers)},
	}
	if e.Started != nil {
		if s.Started, err = time.Parse(time.RFC3339Nano, *e.Started); err != nil {
			return nil, false, fmt.Errorf("startedDateTime %.40q is no time of RFC 3339", *e.Started)
		}
	}
	if e.Time != nil && *e.Time > 0 {
		s.Total = fromMS(*e.Time)
	}
	if e.Timings != nil && e.Timings.Wait != nil && *e.Timings.Wait > 0 {
		s.FirstByte = fromMS(*e.Timings.Wait)
	}
	whole = true
	switch body := e.Request.PostData; {
	case body != nil && body.Text != nil:
		if s.RequestBody, err = decodedText(*body.Text, orWord(body.Encoding, body.EncodingOfReport)); err != nil {
			return nil, false, fmt.Errorf("request.postData.text: %w", err)
		}
		whole = !isCut(body.Comment)
	case e.Request.BodySize != nil && *e.Request.BodySize > 0:
		whole = false
	}
	return s, whole && e.response(s, &err), err
}

// response takes the response over; it reports whether its body is whole.
func (e *harIn) response(s *conformance.Sight, problem *error) bool {
	if e.Kind != "" {
		s.Err = conformance.EndedBy(e.Kind, strings.TrimPrefix(e.Text, e.Kind+": "))
	}
	if e.Response.Status <= 0 {
		if s.Err == nil {
			s.Err = conformance.EndedBy("canceled", "the archive has no response")
		}
		return true
	}
	s.Status, s.Proto, s.Header = e.Response.Status, e.Response.HTTPVersion, realHeaders(e.Response.Headers)
	content := e.Response.Content
	switch {
	case content != nil && content.Text != nil:
		body, err := decodedText(*content.Text, content.Encoding)
		if err != nil {
			*problem = fmt.Errorf("response.content.text: %w", err)
			return false
		}
		s.Body = body
		// Some programs keep the bytes of the wire.
		s.Decoded = !bytes.HasPrefix(body, []byte{0x1f, 0x8b})
		return !isCut(content.Comment) || s.Err != nil
	case content != nil && content.Size > 0:
		return s.Err != nil
	}
	return true
}

func decodedText(text, encoding string) ([]byte, error) {
	switch strings.ToLower(encoding) {
	case "":
		return []byte(text), nil
	case "base64":
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("it is no base64")
		}
		return b, nil
	}
	return nil, fmt.Errorf("the encoding %.40q is none that is known", encoding)
}

func realHeaders(all []conformance.HeaderLine) []conformance.HeaderLine {
	out := make([]conformance.HeaderLine, 0, len(all))
	for _, h := range all {
		if !strings.HasPrefix(h.Name, ":") {
			out = append(out, h)
		}
	}
	return out
}

// endpoints are the addresses of an archive that have taken a call.
type endpoints map[string]bool

// maxEndpoints bounds the addresses that are kept.
const maxEndpoints = 1000

// took reports whether an exchange is a call of a destination: by its body, or because it
// is a POST to where calls went before, whatever its body is.
func (known endpoints) took(s *conformance.Sight) bool {
	if s.Method == "POST" && known[s.URL] {
		return true
	}
	if !isRPC(s) {
		return false
	}
	if len(known) < maxEndpoints {
		known[s.URL] = true
	}
	return true
}

// isRPC distinguishes a call of a destination from the other traffic of a browser.
func isRPC(s *conformance.Sight) bool {
	return s.Method == "POST" && bytes.Contains(s.RequestBody, []byte(`"method"`)) &&
		(bytes.Contains(s.RequestBody, []byte(`"jsonrpc"`)) || bytes.Contains(s.RequestBody, []byte(`"params"`)))
}

// isCut reads off a comment whether a body is not whole: this program's own words, and
// those of others.
func isCut(comment string) bool {
	return strings.Contains(comment, "cut, ") || strings.Contains(strings.ToLower(comment), "truncated")
}
