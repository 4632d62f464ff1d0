package conformance

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	gherkin "github.com/cucumber/gherkin/go/v26"
	messages "github.com/cucumber/messages/go/v21"
)

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
