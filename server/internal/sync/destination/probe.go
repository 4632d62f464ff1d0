package destination

import (
	"context"
	"encoding/json"
	"fmt"
	"net"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// The steps of a connection test; a custom_api takes the first five in this
// order, the other types some of the rest.
const (
	StepURL            = "URL"
	StepDNS            = "DNS"
	StepTLS            = "TLS"
	StepAuthentication = "authentication"
	StepTestConnection = "test_connection"
	StepCredentials    = "credentials"
	StepPath           = "path"
	StepWrite          = "write"
)

// Succeeded reports whether no step failed (spec 2.2, last_test_succeeded).
func Succeeded(results api.TestResults) bool {
	for _, s := range results.Steps {
		if s.Status == api.StepFailed {
			return false
		}
	}
	return true
}

// probe runs steps in order and skips those after a failure.
type probe struct {
	results api.TestResults
	failed  bool
}

// step adds one step; run gives "" or what is wrong.
func (p *probe) step(name string, run func() string) {
	switch {
	case p.failed:
		p.skip(name)
	default:
		p.judge(name, run())
	}
}

// judge adds a step that ran; problem is "" when it passed.
func (p *probe) judge(name, problem string) {
	s := api.TestStep{Step: name, Status: api.StepPassed}
	if problem != "" {
		p.failed = true
		s.Status, s.Error = api.StepFailed, &api.StepError{Message: problem}
	}
	p.results.Steps = append(p.results.Steps, s)
}

// skip adds a step that did not run: clients see all steps of a type each time.
func (p *probe) skip(name string) {
	p.results.Steps = append(p.results.Steps, api.TestStep{Step: name, Status: api.StepSkipped})
}

// Test tries URL, DNS, TLS, authentication and test_connection. TLS is skipped
// for plain http. Authentication is judged by the answer to test_connection:
// 401 and 403 fail it; where no answer came it is skipped, and test_connection
// fails.
func (c *customConnection) Test(ctx context.Context) api.TestResults {
	p := &probe{}
	p.step(StepURL, func() string { return c.problem })
	p.step(StepDNS, func() string { return c.testName(ctx) })
	if !p.failed && c.url.Scheme == "http" {
		p.skip(StepTLS)
	} else {
		p.step(StepTLS, func() string { return c.testTLS(ctx) })
	}
	if p.failed {
		p.skip(StepAuthentication)
		p.skip(StepTestConnection)
		return p.results
	}
	c.testCall(ctx, p, c.token)
	return p.results
}

// testName looks the host up by itself, to distinguish a wrong name from a
// host that does not answer.
func (c *customConnection) testName(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, c.gate.options.ConnectTimeout)
	defer cancel()
	if _, err := c.gate.lookup(ctx, c.url.Hostname()); err != nil {
		_, message := c.gate.network(ctx, c.host, c.gate.options.CallTimeout, err)
		return c.clean.String(message)
	}
	return ""
}

// testTLS shakes hands on a separate connection (spec 5.2.1): a pooled one may
// date from before the certificate expired.
func (c *customConnection) testTLS(ctx context.Context) string {
	port := c.url.Port()
	if port == "" {
		port = "443"
	}
	conn, err := c.gate.dialTLS(ctx, net.JoinHostPort(c.url.Hostname(), port))
	if err != nil {
		_, message := c.gate.network(ctx, c.host, c.gate.options.CallTimeout, err)
		return c.clean.String(message)
	}
	_ = conn.Close()
	return ""
}

// testCall calls test_connection and judges the last two steps.
func (c *caller) testCall(ctx context.Context, p *probe, token bool) {
	raw, x, failed := c.exchange(ctx, rpc.MethodTestConnection, nil)
	defer x.leave()
	if refuses(x.Status) && failed != nil {
		message := fmt.Sprintf("the endpoint refuses the token: %s", failed.Message)
		if !token {
			message = fmt.Sprintf("the endpoint wants authentication and no auth_token is set: %s", failed.Message)
		}
		p.judge(StepAuthentication, message)
		p.skip(StepTestConnection)
		return
	}
	if x.Status == 0 {
		p.skip(StepAuthentication)
	} else {
		p.judge(StepAuthentication, "")
	}
	if failed != nil {
		p.judge(StepTestConnection, failed.Message)
		return
	}
	p.judge(StepTestConnection, c.testResult(raw))
}

// testResult reads the result of test_connection (spec 7.2.3).
func (c *caller) testResult(raw json.RawMessage) string {
	members, _ := rawObject(raw)
	success, ok := boolean(members["success"])
	switch message := c.clean.Foreign(rawjson.MessageText(members["error_message"])); {
	case !ok:
		return unknownError + "result.success is missing or not a boolean"
	case success:
		return ""
	case message != "":
		return message
	}
	return "the endpoint reports a failure and gives no error_message"
}
