package wire

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// curlInline is the largest body in bytes that does not hide the command.
const curlInline = 300

// curlOwn are header lines that curl writes by itself.
var curlOwn = map[string]bool{
	"user-agent": true, "accept": true, "accept-encoding": true, "connection": true,
	"keep-alive": true, "host": true, "content-length": true,
}

// placeholderName finds a placeholder that a shell shall expand.
var placeholderName = regexp.MustCompile(`\$(?:DESTKIT_[A-Z0-9_]+|\{DESTKIT_[A-Z0-9_]+\})`)

// Curl gives a command for a POSIX shell that sends the exchange again: secrets as variables
// such as $DESTKIT_TOKEN, a long or binary body as a file, see CurlBodyFile.
func Curl(e Exchange) string { return curl(e, CurlBodyFile(e)) }

// Curl is the same with the whole body in the command, "" when only a part of the request is
// known or its body is no text.
func (e Exchange) Curl() string {
	if e.Request.Body.binary() {
		return ""
	}
	return curl(e, "")
}

func (b Body) binary() bool { return b.Base64 != "" || strings.Contains(b.Text, "\x00") }

func curl(e Exchange, file string) string {
	if e.Incoming || e.Request.Body.Truncated {
		return "" // the service sent it, not the judge; or only its beginning is known
	}
	words := []string{"curl -sS"}
	if e.Request.Method != "POST" || e.Request.Body.Size == 0 {
		words = append(words, "-X "+shellQuote(e.Request.Method))
	}
	words = append(words, shellQuote(e.Request.URL))
	typed := false
	for _, h := range e.Request.Header {
		name := strings.ToLower(h.Name)
		typed = typed || name == "content-type"
		if name == "accept-encoding" && h.Value == defaultAcceptEncoding {
			words = append(words, "--compressed")
		}
		switch {
		case curlOwn[name]:
		case h.Value == "":
			words = append(words, "-H "+shellQuote(h.Name+";"))
		default:
			words = append(words, "-H "+shellQuote(h.Name+": "+h.Value))
		}
	}
	if !typed { // curl would invent one
		words = append(words, "-H 'Content-Type:'")
	}
	if e.Request.Body.Size > 0 {
		words = append(words, curlBody(e.Request.Body, file))
	}
	return strings.Join(words, " ")
}

// BodyFolder is the folder of the files that Curl refers to, in that of the run.
const BodyFolder = "destkit-bodies"

// CurlBodyFile gives the name of the file that Curl refers to and the body that
// belongs there, or "" when the command holds the body itself.
func CurlBodyFile(e Exchange) string {
	if e.Request.Body.Size <= curlInline && !e.Request.Body.binary() {
		return ""
	}
	return fmt.Sprintf("%s/%s-%d.json", BodyFolder, cmp.Or(e.Check, "preflight"), e.ID)
}

func curlBody(body Body, file string) string {
	switch {
	case file != "" && body.Base64 != "":
		return "--data-binary @" + shellQuote(file)
	case file != "":
		return "-d @" + shellQuote(file)
	case strings.HasPrefix(body.Text, "@"): // a file to -d
		return "--data-raw " + shellQuote(body.Text)
	}
	return "-d " + shellQuote(body.Text)
}

// shellQuote quotes all but plain words, and placeholders that a POSIX shell shall expand.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./") == "" {
		return s
	}
	if !placeholderName.MatchString(s) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")
	word, at := `"`, 0
	for _, m := range placeholderName.FindAllStringIndex(s, -1) {
		word += escape.Replace(s[at:m[0]]) + s[m[0]:m[1]]
		at = m[1]
	}
	return word + escape.Replace(s[at:]) + `"`
}
