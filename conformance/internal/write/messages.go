package write

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// The reason that an endpoint gives for a refusal is evidence: a cause that is printed
// must not contradict it.

// aboutMessages are checks, and areas of checks, that judge how a failure is reported,
// whatever it says.
var aboutMessages = []string{"RPC-", "HTTP-", "AUTH-", "TLS-", "VER-", "ERR-003", "ERR-004", "RES-005", "RES-006", "RES-007", "SEM-015"}

// quote completes a finding by the message of these replies that it shows: the cause and
// the fix are those that the message leads to.
func (sc *Scenario) quote(f *conformance.Finding, where []*exchange.Reply) {
	if slices.ContainsFunc(aboutMessages, func(id string) bool { return strings.HasPrefix(sc.Check().ID, id) }) {
		return
	}
	for _, r := range where {
		if r == nil || r.InPlace() {
			continue
		}
		for _, m := range reasons(r) {
			if m.Status != http.StatusRequestEntityTooLarge && !quotes(f.Actual, m.Text) {
				continue
			}
			m.Names = sc.NamesOf(r)
			b := sc.batchOf(r)
			said, is := causes.Of(m)
			f.Quote = &conformance.Quote{Text: sc.Redactor.String(m.Text), Key: causes.Key(m), When: said.When, Cause: is}
			if !is {
				said, is = missingThoughSent(m.Text, b)
			}
			if f.Quote.Cause = is; is {
				f.Cause, f.Fix = said.Text, said.Fix
			}
			if is && said.OfRecord() && r.IsError() && b != nil && len(b.Records) > 1 {
				f.Cause += " The failure of one record ends its whole batch."
			}
			return
		}
	}
}

var saysMissing = regexp.MustCompile(`(?i)^["'` + "`" + `]?([\w-]+)["'` + "`" + `]?:? (?:is |was )?(?:missing|required|not given|absent|empty)|(?:missing|required|without)(?: \w+)?:? ["'` + "`" + `]?([\w-]+)`)

// missingThoughSent reads a message that misses a member which the records have.
func missingThoughSent(text string, b *Batch) (causes.Cause, bool) {
	m := saysMissing.FindStringSubmatch(text)
	if m == nil || b == nil {
		return causes.Cause{}, false
	}
	name := cmp.Or(m[1], m[2])
	for _, r := range b.Records {
		raw, sent := r.Values[name]
		if !sent || string(raw) == "null" || string(raw) == `""` || b.Operation == rpc.OperationDelete && name != r.ID.APIName {
			return causes.Cause{}, false
		}
	}
	return causes.Cause{
		Name: "missing though sent", Text: fmt.Sprintf("the endpoint says that %s is missing, and it was sent: the code reads it under another name, which is fixed in it, or at another place.", name),
		Fix: "take the fields, and the active identifier, from the schema of the plan.",
	}, true
}

// quotes reports whether a text shows the beginning of a message, in JSON or not.
func quotes(text, message string) bool {
	message, _, _ = strings.Cut(message, "\n")
	if i := strings.IndexFunc(message, func(c rune) bool { return c > unicode.MaxASCII }); i >= 0 {
		message = message[:i]
	}
	letters := lettersOf(message)
	return letters != "" && strings.Contains(lettersOf(text), letters[:min(len(letters), 40)])
}

// lettersOf are the letters and digits of a text.
func lettersOf(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return -1
	}, text)
}

// reasons are the messages of a reply to a call that was refused, as a whole or for some
// of its records.
func reasons(r *exchange.Reply) []causes.Message {
	whole := causes.Message{Status: r.Status, Method: r.Method}
	switch {
	case r.IsError():
		whole.Text, whole.Code = r.ErrorText(), r.ErrorCode()
		return []causes.Message{whole}
	case r.Result() == nil:
		if r.OK() && r.Status >= http.StatusBadRequest {
			whole.Text = string(r.Body[:min(len(r.Body), 4<<10)])
			return []causes.Message{whole}
		}
		return nil
	}
	var out []causes.Message
	for _, res := range r.RecordResults().List {
		text := res.Text()
		if res.Success == nil || *res.Success || text == "" || slices.ContainsFunc(out, func(o causes.Message) bool { return o.Text == text }) {
			continue
		}
		out = append(out, causes.Message{Text: text, Status: r.Status})
	}
	return out
}

// NamesOf are the names that a statement for this call would hold.
func (sc *Scenario) NamesOf(r *exchange.Reply) []string {
	names := []string{r.Object}
	if o := sc.Catalog.Object(r.Object); o != nil {
		for _, f := range o.Fields {
			names = append(names, f.APIName)
		}
	}
	return names
}
