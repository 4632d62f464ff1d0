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
//	{secret}, {secret-…}   a text of this scenario that must not be shown
//	{name}, {name-…}       a name of this scenario
//	{destination}          the id of its latest destination
//	{source}               the id of the source that the run reads from
//	{unknown}              an id that nothing has
//	{made}                 the id of what a call has made last
//	{stream}               the id of a source with topics
//	{…}                    what a step has put there
func (sc *scenario) spoken(text string) (string, error) {
	var failed error
	out := wordText.ReplaceAllStringFunc(text, func(word string) string {
		s, err := sc.word(word[1 : len(word)-1])
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

func (sc *scenario) word(word string) (string, error) {
	switch word {
	case "destination":
		if sc.dest == nil {
			return "", fmt.Errorf("there is no destination yet")
		}
		return strconv.FormatInt(sc.dest.id, 10), nil
	case "source":
		return strconv.FormatInt(sc.source, 10), nil
	case "unknown":
		return strconv.Itoa(unknownID), nil
	}
	if s, known := sc.words[word]; known {
		return s, nil
	}
	kind, _, _ := strings.Cut(word, "-")
	switch kind {
	case "secret":
		sc.words[word] = fmt.Sprintf("zz%sq%dx", sc.opts.RunID, sc.numbers.Add(1)) + secretTail
		sc.secrets.Add(sc.words[word], "$SECRET")
	case "name":
		sc.words[word] = sc.called("thing")
	default:
		return "", fmt.Errorf("nothing stands for {%s}", word)
	}
	return sc.words[word], nil
}

// secretTail makes secrets long enough to be found in every encoding.
const secretTail = "kW7tQ2mZ"

// idOf is the id that a word stands for, 0 when there is none.
func (sc *scenario) idOf(word string) int64 {
	n, _ := strconv.ParseInt(sc.words[word], 10, 64)
	return n
}
