package foreign

import (
	"regexp"
	"strings"
)

// Request is an HTTP request as a command for curl in a POSIX shell. Nothing in it can add a word
// to the command; variables such as $DESTKIT_TOKEN stay variables.
type Request struct {
	Method, URL string
	Header      [][2]string // names and values
	Token       string      // variable that holds the bearer token, "": none
	Body        string
	File        string // that holds the body, instead of Body
	Binary      bool   // File is sent as it is
}

// Variable finds a placeholder that a shell shall expand.
var Variable = regexp.MustCompile(`\$(?:DESTKIT_[A-Z0-9_]+|\{DESTKIT_[A-Z0-9_]+\})`)

// curlOwn are header lines that curl writes by itself.
var curlOwn = map[string]bool{
	"user-agent": true, "accept": true, "connection": true, "keep-alive": true, "host": true, "content-length": true,
}

// Curl gives the words of the command: quoted, each option with its value.
func (r Request) Curl() []string {
	words := []string{"curl -sS"}
	if r.Method != "POST" || r.Body == "" && r.File == "" {
		words = append(words, "-X "+shellText(r.Method))
	}
	words = append(words, shellText(r.URL))
	if r.Token != "" {
		words = append(words, `-H "Authorization: Bearer $`+r.Token+`"`)
	}
	typed := false
	for _, h := range r.Header {
		name := strings.ToLower(h[0])
		typed = typed || name == "content-type"
		switch {
		case curlOwn[name], name == "accept-encoding" && h[1] == "identity":
		case name == "accept-encoding" && strings.Contains(h[1], "gzip"):
			words = append(words, "--compressed")
		case h[1] == "":
			words = append(words, "-H "+shellText(h[0]+";"))
		default:
			words = append(words, "-H "+shellText(h[0]+": "+h[1]))
		}
	}
	if !typed { // curl would invent one
		words = append(words, "-H 'Content-Type:'")
	}
	switch {
	case r.File != "" && r.Binary:
		words = append(words, "--data-binary @"+shellText(r.File))
	case r.File != "":
		words = append(words, "-d @"+shellText(r.File))
	case strings.HasPrefix(r.Body, "@"): // a file to -d
		words = append(words, "--data-raw "+shellText(r.Body))
	case r.Body != "":
		words = append(words, "-d "+shellText(r.Body))
	}
	return words
}

// ShellWord quotes a word where a POSIX shell would read it as something else.
func ShellWord(word string) string { return quoted(word, "/._-+:@%,=") }

// shellText is ShellWord for texts that may hold variables.
func shellText(s string) string {
	if !Variable.MatchString(s) {
		return quoted(s, "/._-")
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")
	word, at := `"`, 0
	for _, m := range Variable.FindAllStringIndex(s, -1) {
		word += escape.Replace(s[at:m[0]]) + s[m[0]:m[1]]
		at = m[1]
	}
	return word + escape.Replace(s[at:]) + `"`
}

func quoted(word, signs string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+signs) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
