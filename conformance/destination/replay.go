package destination

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
)

// ReplayResult is one exchange of a finding, sent again.
type ReplayResult struct {
	Check  string               `json:"check"`
	Before conformance.Exchange `json:"before"`
	After  conformance.Exchange `json:"after"`
	// Same reports whether status and body are as before.
	Same    bool   `json:"same"`
	Skipped string `json:"skipped,omitempty"` // why it was not sent
	// Verdict is what the caller found when the check was judged again.
	Verdict string `json:"verdict,omitempty"`
}

// Replay sends the exchanges of a report's findings again, those of the given checks or all, to
// the target of the caller only. Records need Options.Write and keys of the run. Unknown ids
// are a *UsageError.
func Replay(ctx context.Context, target Target, opts conformance.Options, r *conformance.Report, ids []string) ([]ReplayResult, error) {
	for _, id := range ids {
		if !slices.ContainsFunc(r.Checks, func(c conformance.CheckResult) bool { return c.ID == id && len(c.Findings) > 0 }) {
			return nil, conformance.Usage("the report has no finding of %s", id)
		}
	}
	p := &permission{report: r, write: opts.Write, objects: opts.Objects}
	if len(p.objects) == 0 {
		p.objects = r.Settings.Objects
	}
	opts.Write, opts.Objects, opts.Journal = false, nil, ""
	s, err := newSession(target, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p.s = s
	var out []ReplayResult
	for _, c := range r.Checks {
		if len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		for _, f := range c.Findings {
			for _, x := range f.Exchanges {
				result, reply := p.resend(ctx, c.ID, x)
				if reply != nil && slices.Contains([]wire.Kind{wire.KindRefused, wire.KindDNS, wire.KindTLS}, reply.Kind) && !s.Responded.Load() {
					return nil, discover.AsError(s.Unreachable(ctx, reply)) // so would be all others
				}
				out = append(out, result)
			}
		}
	}
	if len(out) == 0 {
		return nil, conformance.Usage("the report has no finding to replay")
	}
	s.Redactor.Value(&out)
	return out, nil
}

// resend sends one exchange, or returns why it does not; the reply is nil when nothing was sent.
func (p *permission) resend(ctx context.Context, check string, x conformance.Exchange) (res ReplayResult, r *exchange.Reply) {
	res = ReplayResult{Check: check, Before: x}
	req, why := p.request(ctx, x)
	if res.Skipped = why; why != "" {
		return res, nil
	}
	r, err := p.s.Send(ctx, check, req)
	if err != nil {
		res.Skipped = fmt.Sprint(err)
		return res, nil
	}
	res.After = r.Exchange()
	if x.Response != nil && res.After.Response != nil {
		res.Same = x.Response.Status == res.After.Response.Status && x.Response.Body == res.After.Response.Body
	}
	return res, r
}

// request rebuilds the request of an exchange. why is the reason not to send it.
func (p *permission) request(ctx context.Context, x conformance.Exchange) (req line.Request, why string) {
	req.HTTPMethod = cmp.Or(x.Request.Method, http.MethodPost)
	switch {
	case x.Incoming:
		return req, "the service sent it, not the judge"
	case x.Request.Body.Truncated:
		return req, "the report keeps only the beginning of this request"
	case !slices.Contains([]string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodDelete}, req.HTTPMethod):
		return req, fmt.Sprintf("its HTTP method %s is none that this program sends", foreign.Clip(req.HTTPMethod, 20))
	}
	binary, err := base64.StdEncoding.DecodeString(x.Request.Body.Base64)
	if err != nil {
		return req, "the request body in the report is damaged"
	}
	shown := string(binary) + x.Request.Body.Text // one of both
	req.Body = []byte(p.s.Redactor.Reveal(shown))
	if why := p.read(ctx, &req); why != "" {
		return req, why
	}
	if req.Records > 0 && string(req.Body) != shown {
		return req, "a secret would be written into a record"
	}
	req.Header, why = p.header(x)
	return req, why
}
