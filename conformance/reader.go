package conformance

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	gherkin "github.com/cucumber/gherkin/go/v26"
	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
)

// This file alone talks to godog, which parses a scenario and matches its steps.

var suiteCounter atomic.Uint64

// parseScenario lets godog run the scenario with steps that only note their arguments.
// Its own exit code plays no part: a run that matches nothing exits 0 there and a
// skipped scenario counts as passed.
func parseScenario(c *Check, known []Step, actor any) *parsedScenario {
	name := fmt.Sprintf("%s-%d", c.ID, suiteCounter.Add(1))
	reading := &reader{}
	readers.Store(name, reading)
	defer readers.Delete(name)
	suite := godog.TestSuite{
		Name: name,
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			for _, d := range known {
				sc.Step(d.pattern, reading.noting(d, actor))
			}
		},
		Options: &godog.Options{
			Format: "destkit", Output: io.Discard, Strict: true, NoColors: true,
			FeatureContents: []godog.Feature{{Name: c.File, Contents: c.source}},
		},
	}
	suite.Run()
	if reading.odd == nil && len(reading.steps) == 0 {
		reading.odd = &outcome{status: HarnessError, reason: "no step was run"}
	}
	return &reading.parsedScenario
}

// reader is the formatter to which godog reports what it reads.
type reader struct {
	parsedScenario
	noted []boundStep
}

var readers sync.Map // suite name -> *reader

func init() {
	godog.Format("destkit", "notes the steps of scenarios", func(suite string, _ io.Writer) godog.Formatter {
		if r, ok := readers.Load(suite); ok {
			return r.(*reader)
		}
		return &reader{}
	})
}

// noting is a function with the arguments of a step, which it keeps.
func (r *reader) noting(d Step, actor any) any {
	kind := reflect.TypeOf(d.bind(actor))
	return reflect.MakeFunc(outside(kind), func(args []reflect.Value) []reflect.Value {
		for i, arg := range args {
			args[i] = inside(arg)
		}
		r.noted = append(r.noted, boundStep{of: d, args: args})
		out := make([]reflect.Value, kind.NumOut())
		for i := range out {
			out[i] = reflect.Zero(kind.Out(i))
		}
		return out
	}).Interface()
}

// outside is the type of a step's function as godog has to see it.
func outside(kind reflect.Type) reflect.Type {
	var in, out []reflect.Type
	for i := range kind.NumIn() {
		arg := kind.In(i)
		if arg == reflect.TypeFor[*wire.DataTable]() {
			arg = reflect.TypeFor[*godog.Table]()
		}
		in = append(in, arg)
	}
	for i := range kind.NumOut() {
		out = append(out, kind.Out(i))
	}
	return reflect.FuncOf(in, out, false)
}

// inside is an argument as the step takes it.
func inside(arg reflect.Value) reflect.Value {
	table, ok := arg.Interface().(*godog.Table)
	if !ok {
		return arg
	}
	return reflect.ValueOf(wire.NewDataTable(lists.Of(table.Rows, func(row *messages.PickleTableRow) []string {
		return lists.Of(row.Cells, func(c *messages.PickleTableCell) string { return c.Value })
	})...))
}

func (r *reader) refuse(format string, args ...any) {
	if r.odd == nil {
		r.odd = &outcome{status: HarnessError, reason: fmt.Sprintf(format, args...)}
	}
}

// Passed gives a step that was noted its text.
func (r *reader) Passed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	for _, l := range r.noted {
		l.text = s.Text
		r.steps = append(r.steps, l)
	}
	r.noted = nil
}

// TestRunStarted and the other methods make the formatter of godog.
func (r *reader) TestRunStarted()                                          {}
func (r *reader) Feature(*messages.GherkinDocument, string, []byte)        {}
func (r *reader) Pickle(*messages.Pickle)                                  {}
func (r *reader) Defined(*messages.Pickle, *messages.PickleStep, *stepDef) {}
func (r *reader) Skipped(*messages.Pickle, *messages.PickleStep, *stepDef) {}
func (r *reader) Summary()                                                 {}

type stepDef = godog.StepDefinition

// Pending reports a step that was left open.
func (r *reader) Pending(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	r.refuse("step is pending: %s", s.Text)
}

// Failed reports arguments that are not those of the step.
func (r *reader) Failed(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef, err error) {
	r.refuse("step %s: %v", s.Text, err)
}

// Undefined reports a sentence that no definition understands.
func (r *reader) Undefined(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef) {
	r.refuse("step is not defined: %s", s.Text)
}

// Ambiguous reports a sentence that two definitions understand.
func (r *reader) Ambiguous(_ *messages.Pickle, s *messages.PickleStep, _ *stepDef, _ error) {
	r.refuse("step is ambiguous: %s", s.Text)
}

// parseFeature parses a feature file as gherkin.ParseGherkinDocument does, in half the
// time.
func parseFeature(data []byte) (*messages.GherkinDocument, error) {
	builder := gherkin.NewAstBuilder((&messages.Incrementing{}).NewId)
	parser := gherkin.NewParser(builder)
	parser.StopAtFirstError(false)
	err := parser.Parse(gherkin.NewScanner(bytes.NewReader(data)), tagMatcher{gherkin.NewMatcher(gherkin.DialectsBuiltin())})
	return builder.GetGherkinDocument(), err
}

// tagMatcher reads the lines of tags itself, since the matcher of the library compiles
// a pattern again for each tag.
type tagMatcher struct{ gherkin.Matcher }

// MatchTagLine leaves any line to the library that is not of tags with single spaces
// between them.
func (m tagMatcher) MatchTagLine(line *gherkin.Line) (bool, *gherkin.Token, error) {
	column := line.Indent() + 1
	tags := &gherkin.Token{Type: gherkin.TokenTypeTagLine, Location: &gherkin.Location{Line: line.LineNumber, Column: column}}
	for tag := range strings.SplitSeq(line.TrimmedLineText, " ") {
		name, ok := strings.CutPrefix(tag, gherkin.TagPrefix)
		if !ok || name == "" || strings.ContainsAny(name, gherkin.TagPrefix+gherkin.CommentPrefix) || strings.ContainsFunc(name, unicode.IsSpace) {
			return m.Matcher.MatchTagLine(line)
		}
		tags.Items = append(tags.Items, &gherkin.LineSpan{Column: column, Text: tag})
		column += utf8.RuneCountInString(tag) + 1
	}
	return true, tags, nil
}
