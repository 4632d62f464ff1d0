package rest

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
)

// NothingAt is the message for a path that the API does not have, with the path
// that was probably meant.
func NothingAt(path string) string {
	inside, below := strings.CutPrefix(path, api.BasePath)
	meant := meantPath(inside)
	switch {
	case meant == "":
		return "there is nothing at this path; the API is below " + api.BasePath
	case !below:
		return fmt.Sprintf("there is nothing at this path; the API is below %s, did you mean %s%s?", api.BasePath, api.BasePath, meant)
	}
	return fmt.Sprintf("there is nothing at this path; did you mean %s?", meant)
}

// meantPath is the described path that differs from path by slips in its words,
// with the identifiers that path has; "" when there is none.
func meantPath(path string) string {
	asked := strings.Split(strings.Trim(path, "/"), "/")
	best, least := "", len(path)
	for _, described := range openapi.Operations() {
		words := strings.Split(strings.Trim(described.Path, "/"), "/")
		if len(words) != len(asked) {
			continue
		}
		distance := 0
		for i, word := range words {
			switch {
			case asked[i] == "":
				distance = len(path)
			case strings.HasPrefix(word, "{"):
				words[i] = asked[i]
				if strings.Trim(asked[i], "0123456789") != "" {
					distance += len(word) // a word is no identifier
				}
			case suggest.Word(asked[i], []string{word}) == "":
				distance = len(path)
			default:
				distance += suggest.Distance(asked[i], word)
			}
		}
		if distance < least {
			best, least = "/"+strings.Join(words, "/"), distance
		}
	}
	return best
}
