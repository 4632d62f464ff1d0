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

// maxLineOfJournal bounds one exchange of a journal, with two bodies in JSON.
const maxLineOfJournal = 64 << 20

// Skipped says how many exchanges of a recording were not handed out, and why.
type Skipped struct {
	// Other calls are no JSON-RPC, such as the pages in a recording of a browser.
	Other int
	// Incomplete ones lack a body, or have the beginning of one alone.
	Incomplete int
}

// ReadRecording hands the exchanges of a recording to each, in their order: of a journal
// of this package, or of an HTTP Archive 1.2 of any program. An error names the entry
// and the member that is no good; one of each ends the reading.
func ReadRecording(r io.Reader, each func(*conformance.Sight) error) (Skipped, error) {
	skipped, err := readRecording(r, each)
	var broken *brokenHAR
	if errors.As(err, &broken) {
		err = broken.placed(r)
	}
	return skipped, err
}

func readRecording(r io.Reader, each func(*conformance.Sight) error) (Skipped, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	if bom, _ := br.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) { // some programs write one
		_, _ = br.Discard(3)
	}
	head, err := br.Peek(512)
	if len(head) == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return Skipped{}, fmt.Errorf("read the recording: %w", err)
		}
		return Skipped{}, errors.New("the recording is empty")
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	if bytes.Contains(first, []byte(`"entry":"exchanges"`)) {
		return readJournal(br, each)
	}
	if bytes.Contains(first, []byte(`"entry":"run"`)) {
		return Skipped{}, errors.New("this is the journal of what a run wrote, which has no exchanges; destkit proxy --journal makes one that has")
	}
	return readHAR(br, each)
}

func readJournal(br *bufio.Reader, each func(*conformance.Sight) error) (skipped Skipped, err error) {
	lines := bufio.NewScanner(br)
	lines.Buffer(make([]byte, 64<<10), maxLineOfJournal)
	for n := 1; lines.Scan(); n++ {
		var l journalLine
		if err := recording.DecodeLine(n, lines.Bytes(), &l); err != nil {
			return skipped, err
		}
		switch {
		case n == 1 && l.Header == nil:
			return skipped, errors.New("line 1: the member header is missing")
		case n == 1 && l.Header.Version > journalVersion:
			return skipped, fmt.Errorf("written by a newer destkit: header.version %d, this one reads up to %d", l.Header.Version, journalVersion)
		case n == 1 && l.Header.Version != journalVersion:
			return skipped, fmt.Errorf("line 1: header.version is %d, and this program reads %d", l.Header.Version, journalVersion)
		case n == 1:
			continue
		case l.Entry != "exchange" || l.Exchange == nil:
			return skipped, fmt.Errorf("line %d: entry is %.40q, not exchange", n, l.Entry)
		}
		s, whole, err := sightOf(l.Exchange)
		if err != nil {
			return skipped, fmt.Errorf("line %d: %w", n, err)
		}
		if !whole {
			skipped.Incomplete++
			continue
		}
		if err := each(s); err != nil {
			return skipped, err
		}
	}
	if err := lines.Err(); err != nil {
		return skipped, fmt.Errorf("read the recording: %w", err)
	}
	return skipped, nil
}

// sightOf makes of a record what was seen; whole is false where a body is cut.
func sightOf(x *conformance.Exchange) (s *conformance.Sight, whole bool, err error) {
	s = &conformance.Sight{
		Number: x.ID, Started: x.Started, Total: fromMS(x.DurationMS), Reused: x.ReusedConnection,
		Method: x.Request.Method, URL: x.Request.URL, Target: targetOf(x.Request.URL), RequestHeader: x.Request.Header, Decoded: true,
	}
	if s.Method == "" {
		return nil, false, errors.New("exchange.request.method is missing")
	}
	if s.RequestBody, err = plainBody(x.Request.Body.Text, x.Request.Body.Base64); err != nil {
		return nil, false, fmt.Errorf("exchange.request.body.base64: %w", err)
	}
	if x.Kind != "" {
		s.Err = conformance.EndedBy(x.Kind, strings.TrimPrefix(x.Error, x.Kind+": "))
	}
	whole = !x.Request.Body.Truncated
	if p := x.Response; p != nil {
		s.Status, s.Proto, s.Header = p.Status, p.Proto, p.Header
		if s.Body, err = plainBody(p.Body.Text, p.Body.Base64); err != nil {
			return nil, false, fmt.Errorf("exchange.response.body.base64: %w", err)
		}
		whole = whole && (!p.Body.Truncated || s.Err != nil)
	} else if s.Err == nil {
		s.Err = conformance.EndedBy("closed", "the recording has no response")
	}
	return s, whole, nil
}

func plainBody(text, coded string) ([]byte, error) {
	if coded == "" {
		return []byte(text), nil
	}
	return base64.StdEncoding.DecodeString(coded)
}

func fromMS(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func targetOf(raw string) string {
	if strings.Contains(raw, "://") {
		return verbatimTarget(raw)
	}
	return raw
}

// recording is what a file is read as.
var recording = rawjson.File{Expected: "a journal of destkit proxy or an HTTP Archive"}

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

// unreadable says why a part of an archive cannot be read, without the text of the file.
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
		Kind string `json:"_kind"`
		Text string `json:"_error"`
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
		case !isRPC(s):
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

// sight takes an entry over. Pseudo headers of HTTP/2 are left out, and so is what was
// said of the length of a body that stands decoded in the archive.
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
	s = &conformance.Sight{Number: n + 1, Method: e.Request.Method, URL: e.Request.URL, Target: targetOf(e.Request.URL), RequestHeader: realHeaders(e.Request.Headers), Decoded: true}
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

// isRPC tells a call of a destination from the other traffic of a browser.
func isRPC(s *conformance.Sight) bool {
	return s.Method == "POST" && bytes.Contains(s.RequestBody, []byte(`"method"`)) &&
		(bytes.Contains(s.RequestBody, []byte(`"jsonrpc"`)) || bytes.Contains(s.RequestBody, []byte(`"params"`)))
}

// isCut reads off a comment whether a body is not whole: this program's own words, and
// those of others.
func isCut(comment string) bool {
	return strings.Contains(comment, "cut, ") || strings.Contains(strings.ToLower(comment), "truncated")
}
