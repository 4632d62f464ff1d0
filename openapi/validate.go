package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// ErrMethod is the error of a method that is not one of the six (spec 4.2).
var ErrMethod = errors.New("unknown method")

// Problem is one place where a value is not what the contract says.
type Problem struct {
	// Path is a JSON pointer into the value, "" for the value itself.
	Path string
	// Message is one lower-case phrase.
	Message string
}

// InvalidError lists everything that is wrong with the params or the result of
// a call.
type InvalidError struct {
	Method string
	// Part is "params" or "result".
	Part string
	// Problems has at least one entry; they are sorted by path.
	Problems []Problem
}

// Error gives all problems in one line.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = e.Part + p.Path + ": " + p.Message
	}
	return "validate " + e.Method + ": " + strings.Join(texts, "; ")
}

// ValidateParams checks the params of a call against the contract strictly:
// required keys, no others, the right types. Beyond the schema, the plan of a
// sync_batch must have exactly one active identifier, and each key of its
// schema must be the field_api_name of its field. It does not look at what the
// records hold.
//
// The error is an *InvalidError, wraps ErrMethod for an unknown method, or says
// where params is not JSON.
func ValidateParams(method string, params []byte) error {
	value, problems, err := check(method, params, func(c contract) *jsonschema.Schema { return c.params })
	if err != nil {
		return fmt.Errorf("validate params of %q: %w", method, err)
	}
	if len(problems) == 0 && method == methodSyncBatch {
		problems = planProblems(value)
	}
	return invalid(method, "params", problems)
}

// ValidateResult checks the result of a call against the contract: required
// keys and their types. Additional members pass, because the published
// examples have them. Which errors are possible: see ValidateParams.
func ValidateResult(method string, result []byte) error {
	_, problems, err := check(method, result, func(c contract) *jsonschema.Schema { return c.result })
	if err != nil {
		return fmt.Errorf("validate result of %q: %w", method, err)
	}
	return invalid(method, "result", problems)
}

// check decodes a text and matches it with a schema of the method.
func check(method string, text []byte, pick func(contract) *jsonschema.Schema) (value any, problems []Problem, err error) {
	c, ok := contracts()[method]
	if !ok {
		return nil, nil, ErrMethod
	}
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, nil, fmt.Errorf("decode json: %w", err)
	}
	err = pick(c).Validate(value)
	var failed *jsonschema.ValidationError
	if errors.As(err, &failed) {
		return value, leaves(nil, failed, message.NewPrinter(language.English)), nil
	}
	return value, nil, err
}

// leaves collects the causes that have no further cause: they name the place
// and the reason, what stands above only repeats that something is wrong.
func leaves(to []Problem, e *jsonschema.ValidationError, p *message.Printer) []Problem {
	for _, cause := range e.Causes {
		to = leaves(to, cause, p)
	}
	if len(e.Causes) == 0 {
		to = append(to, Problem{Path: pointer(e.InstanceLocation), Message: e.ErrorKind.LocalizedString(p)})
	}
	return to
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// pointer writes a path as a JSON pointer (RFC 6901).
func pointer(tokens []string) string {
	var sb strings.Builder
	for _, t := range tokens {
		sb.WriteByte('/')
		sb.WriteString(pointerEscape.Replace(t))
	}
	return sb.String()
}

func invalid(method, part string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return &InvalidError{Method: method, Part: part, Problems: slices.Compact(problems)}
}
