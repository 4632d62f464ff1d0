package conformance

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
)

// ReplayResult is one exchange of a finding, sent again.
type ReplayResult struct {
	Check  string   `json:"check"`
	Before Exchange `json:"before"`
	After  Exchange `json:"after"`
	// Same tells that status and body are as they were, but for nothing.
	Same    bool   `json:"same"`
	Skipped string `json:"skipped,omitempty"` // why it was not sent
}

// Replay sends the exchanges of a report's findings again, those of the given
// checks or all. Exchanges that write records are sent only with Options.Write:
// they reuse the keys of the first run. Unknown ids are a *UsageError.
func Replay(ctx context.Context, target Target, opts Options, r *Report, ids []string) ([]ReplayResult, error) {
	for _, id := range ids {
		if !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.ID == id && len(c.Findings) > 0 }) {
			return nil, usage("the report has no finding of %s", id)
		}
	}
	write := opts.Write
	opts.Write, opts.Objects, opts.Journal = false, nil, ""
	s, err := newSession(target, opts)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var out []ReplayResult
	for _, c := range r.Checks {
		if len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		for _, f := range c.Findings {
			for _, x := range f.Exchanges {
				out = append(out, s.resend(ctx, c.ID, x, write))
			}
		}
	}
	if len(out) == 0 {
		return nil, usage("the report has no finding to replay")
	}
	hide(s.redactor, &out)
	return out, nil
}

func (s *session) resend(ctx context.Context, check string, x Exchange, write bool) ReplayResult {
	res := ReplayResult{Check: check, Before: x}
	switch {
	case x.Incoming:
		res.Skipped = "the service sent it, not the judge"
		return res
	case x.Request.Body.Truncated:
		res.Skipped = "the report keeps only the beginning of this request"
		return res
	case x.RPC == "sync_batch" && !write:
		res.Skipped = "it writes records: add --write to send it"
		return res
	}
	body := []byte(x.Request.Body.Text)
	if x.Request.Body.Base64 != "" {
		raw, err := base64.StdEncoding.DecodeString(x.Request.Body.Base64)
		if err != nil {
			res.Skipped = "the request body in the report is damaged"
			return res
		}
		body = raw
	}
	body = []byte(s.redactor.Reveal(string(body)))
	header := http.Header{}
	for _, h := range x.Request.Header {
		switch http.CanonicalHeaderKey(h.Name) {
		case "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Expect", "User-Agent":
		default:
			header.Add(h.Name, s.redactor.Reveal(h.Value))
		}
	}
	r, err := s.send(ctx, check, request{method: x.RPC, body: body, header: header, httpMethod: x.Request.Method})
	if err != nil {
		res.Skipped = fmt.Sprint(err)
		return res
	}
	res.After = r.Exchange()
	if x.Response != nil && r.Exchange().Response != nil {
		res.Same = x.Response.Status == r.Exchange().Response.Status && x.Response.Body == r.Exchange().Response.Body
	}
	return res
}
