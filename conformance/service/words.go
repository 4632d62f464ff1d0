package service

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// wordText is what stands for something else in the texts of a scenario. JSON
// has a quote or a space behind its brace.
var wordText = regexp.MustCompile(`\{([a-z][a-z0-9-]*)\}`)

// spoken puts what they stand for in place of the words:
//
//	{secret}, {secret-…}   a text of this scenario that nobody may show
//	{name}, {name-…}       a name of this scenario
//	{destination}          the id of its latest destination
//	{source}               the id of the source that the run reads from
//	{unknown}              an id that nothing has
//	{made}                 the id of what a call has made last
//	{stream}               the id of a source with topics
//	{…}                    what a step has put there
func (p *play) spoken(text string) (string, error) {
	var failed error
	out := wordText.ReplaceAllStringFunc(text, func(word string) string {
		s, err := p.word(word[1 : len(word)-1])
		if err != nil {
			failed = err
		}
		return s
	})
	return out, failed
}

// unknownID is far above what anybody has counted to, and small enough for
// every kind of integer.
const unknownID = 2_000_000_011

func (p *play) word(word string) (string, error) {
	switch word {
	case "destination":
		if p.dest == nil {
			return "", fmt.Errorf("there is no destination yet")
		}
		return strconv.FormatInt(p.dest.id, 10), nil
	case "source":
		return strconv.FormatInt(p.source, 10), nil
	case "unknown":
		return strconv.Itoa(unknownID), nil
	}
	if s, known := p.words[word]; known {
		return s, nil
	}
	kind, _, _ := strings.Cut(word, "-")
	switch kind {
	case "secret":
		p.words[word] = fmt.Sprintf("zz%sq%dx", p.opts.RunID, p.numbers.Add(1)) + secretTail
		p.secrets.Add(p.words[word], "$SECRET")
	case "name":
		p.words[word] = p.called("thing")
	default:
		return "", fmt.Errorf("nothing stands for {%s}", word)
	}
	return p.words[word], nil
}

// secretTail makes secrets long enough to be found in every encoding.
const secretTail = "kW7tQ2mZ"

// idOf is the id that a word stands for, 0 when there is none.
func (p *play) idOf(word string) int64 {
	n, _ := strconv.ParseInt(p.words[word], 10, 64)
	return n
}
