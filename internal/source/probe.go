package source

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Steps of a connection test, in their order (spec 2.2; the names are ours).
// A type has those that mean something for it.
const (
	stepCredentials  = "credentials"  // all fields there and well formed
	stepAddress      = "address"      // the host name resolves
	stepConnect      = "connect"      // the port answers, the file opens
	stepAuthenticate = "authenticate" // user and password are taken
	stepRead         = "read"         // the tables can be listed
)

// probe is a connection test in the making: steps that hand on what they opened.
type probe struct {
	steps []step
	src   Source
}

// step is one step of a connection test.
type step struct {
	name string
	run  func(context.Context) error
}

// Test tries a connection step by step for real; what comes after a failed step
// is skipped. It never fails itself: the result says why.
func (c *Catalogue) Test(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options) api.TestResults {
	t, ok := c.types[typ]
	problems := c.CheckCredentials(typ, credentials)
	if !ok {
		return api.TestResults{Steps: []api.TestStep{failed(stepCredentials, "source "+problems[0].String())}}
	}
	p := t.steps(t, settings(credentials), o)
	defer func() {
		if p.src != nil {
			_ = p.src.Close()
		}
	}()
	results := api.TestResults{Steps: []api.TestStep{{Step: stepCredentials, Status: api.StepPassed}}}
	broken := false
	if len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, problem := range problems {
			lines[i] = problem.String()
		}
		results.Steps[0], broken = failed(stepCredentials, strings.Join(lines, "; ")), true
	}
	for _, step := range p.steps {
		if broken {
			results.Steps = append(results.Steps, api.TestStep{Step: step.name, Status: api.StepSkipped})
			continue
		}
		done := api.TestStep{Step: step.name, Status: api.StepPassed}
		if err := step.run(ctx); err != nil {
			done = failed(step.name, cleanText(err.Error(), c.Secrets(typ, credentials)))
			broken = true
		}
		results.Steps = append(results.Steps, done)
	}
	return results
}

// failed is a step that did not pass; the message holds no secret.
func failed(name, message string) api.TestStep {
	return api.TestStep{Step: name, Status: api.StepFailed, Error: &api.StepError{Message: message}}
}

// opening makes the probe of a type for which opening is one step, followed by
// reading.
func opening(t *sourceType, s settings, o Options) *probe {
	p := &probe{}
	p.add(stepConnect, func(ctx context.Context) (err error) {
		p.src, err = t.open(ctx, t, s, o)
		return err
	})
	p.addRead()
	return p
}

// add appends a step; those behind a failed one are skipped.
func (p *probe) add(name string, run func(context.Context) error) {
	p.steps = append(p.steps, step{name, run})
}

// addRead appends the last step: that tables can be listed is what a source is
// for.
func (p *probe) addRead() {
	p.add(stepRead, func(ctx context.Context) error {
		_, err := p.src.Tables(ctx)
		return err
	})
}
