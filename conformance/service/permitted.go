package service

import (
	"regexp"

	"github.com/destkit/destkit/conformance"
)

// standIn are the sentences that come true in a stand-in only, by its control API.
var standIn = []struct {
	sentence *regexp.Regexp
	what     string
}{
	{regexp.MustCompile(`e-mails? (?:has|have) come|^each e-mail `), "reads e-mails, which only the mailbox of a stand-in shows"},
	{regexp.MustCompile(`^(?:an organization of its own|a client goes to an organization of its own|another organization with a workspace)$`),
		"makes an organization, which only a stand-in lets it do"},
	{regexp.MustCompile(`^a member of the organization$|^the invited person claims `), "claims an invitation, which only a stand-in lets it do"},
	{regexp.MustCompile(`^the object holds exactly$|^every record arrives with its columns |^every record refers to `),
		"looks into an application, which only a stand-in shows"},
	{regexp.MustCompile(`^a table of its own with$`), "adds a column to a table, which only a stand-in lets it do"},
	{regexp.MustCompile(`^a producer sends$`), "sends messages to a topic, which only a stand-in takes"},
	{regexp.MustCompile(`^a destination with a good certificate that the service accepts$|^a client connects a destination with a certificate that is good$`), "needs a service that can be made to trust an authority"},
}

// permitted says what a check lacks.
func (r *run) permitted(c *conformance.Check) error {
	if r.target.ControlURL != "" {
		return nil
	}
	for _, step := range c.Steps {
		for _, only := range standIn {
			if only.sentence.MatchString(sentence(step)) {
				return conformance.Outcome(conformance.NotRun, "--control-url", "%s; needs --control-url", only.what)
			}
		}
	}
	switch d := passing(c); {
	case c.Clock && !r.opts.Patient:
		return conformance.Outcome(conformance.NotRun, "--control-url", "needs a clock that can be moved (--control-url), or --patient to wait for real")
	case c.Clock && d > patientAtMost:
		return tooLong(d)
	}
	return nil
}
