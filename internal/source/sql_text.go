package source

import "strings"

// What of SQL is looked at as text: where a statement ends, and names. The
// databases do the rest.

// tokenKind is the class of a piece of SQL.
type tokenKind int

const (
	tokenSpace tokenKind = iota // also comments
	tokenWord                   // a bare name, keyword or number
	tokenName                   // a name in quotes
	tokenText                   // a literal
	tokenSign                   // one character of anything else
)

// token is a piece of SQL; end is the byte after it.
type token struct {
	kind       tokenKind
	start, end int
}

// nextToken reads the token at byte i, which is inside the text. A comment or
// literal without end reaches to the end of the text.
func nextToken(text string, i int) token {
	closed := func(kind tokenKind, from int, by string) token {
		n := strings.Index(text[from:], by)
		if n < 0 {
			return token{kind, i, len(text)}
		}
		return token{kind, i, from + n + len(by)}
	}
	switch c := text[i]; {
	case c == '\'':
		return quoted(text, i, tokenText, '\'')
	case c == '"' || c == '`':
		return quoted(text, i, tokenName, c)
	case c == '[':
		return closed(tokenName, i+1, "]")
	case strings.HasPrefix(text[i:], "--"):
		return closed(tokenSpace, i, "\n")
	case strings.HasPrefix(text[i:], "/*"):
		return closed(tokenSpace, i+2, "*/")
	case isSpace(c):
		j := i + 1
		for j < len(text) && isSpace(text[j]) {
			j++
		}
		return token{tokenSpace, i, j}
	case isWord(c):
		j := i + 1
		for j < len(text) && isWord(text[j]) {
			j++
		}
		return token{tokenWord, i, j}
	}
	return token{tokenSign, i, i + 1}
}

// quoted reads to the closing quote; a doubled one stands for itself.
func quoted(text string, i int, kind tokenKind, by byte) token {
	for j := i + 1; j < len(text); j++ {
		if text[j] != by {
			continue
		}
		if j+1 == len(text) || text[j+1] != by {
			return token{kind, i, j + 1}
		}
		j++
	}
	return token{kind, i, len(text)}
}

// isSpace: the white space of SQL is that of ASCII.
func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

// isWord takes letters beyond ASCII as the databases do, byte by byte.
func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// unquoted is the name that a word or a quoted name stands for.
func unquoted(piece string) string {
	if len(piece) < 2 {
		return piece
	}
	switch by := piece[0]; by {
	case '"', '`':
		return strings.ReplaceAll(piece[1:len(piece)-1], string([]byte{by, by}), string(by))
	case '[':
		return piece[1 : len(piece)-1]
	}
	return piece
}

// oneStatement cuts a text down to its one statement, without the semicolon and
// the comments after it, or says why it is not exactly one, and at which byte.
func oneStatement(text string) (body, problem string, at int) {
	end, ended := 0, false
	for i := 0; i < len(text); {
		t := nextToken(text, i)
		i = t.end
		switch {
		case t.kind == tokenSpace:
		case text[t.start] == 0:
			return text, "the query holds a NUL character", t.start
		case text[t.start] == ';':
			ended = true
		case ended:
			return text, "the query must be one statement", t.start
		default:
			end = t.end
		}
	}
	if end == 0 {
		return text, "the query is empty", -1
	}
	return text[:end], "", -1
}
