package proxy

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/rawjson"
)

// maxLineOfJournal bounds one exchange of a journal, with two bodies in JSON.
const maxLineOfJournal = 64 << 20

// Skipped counts the exchanges of a recording that were not handed out, with the reasons.
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

// sightOf converts a record into a sight; whole is false where a body is cut.
func sightOf(x *conformance.Exchange) (s *conformance.Sight, whole bool, err error) {
	s = &conformance.Sight{
		Number: x.ID, Timing: conformance.Timing{Started: x.Started, Total: fromMS(x.DurationMS)}, CallerLeft: fromMS(x.CallerLeftMS), Reused: x.ReusedConnection,
		Asked: conformance.Asked{Method: x.Request.Method, URL: x.Request.URL, Target: targetOf(x.Request.URL), RequestHeader: x.Request.Header}, Decoded: true,
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
