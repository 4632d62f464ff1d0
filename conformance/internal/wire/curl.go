package wire

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// curlInline is the largest body in bytes that stands in the command itself: a longer one
// hides the command.
const curlInline = 300

// curlOwn are header lines that curl writes by itself.
var curlOwn = map[string]bool{
	"user-agent": true, "accept": true, "accept-encoding": true, "connection": true,
	"keep-alive": true, "host": true, "content-length": true,
}

// placeholderName finds a placeholder that a shell shall expand.
var placeholderName = regexp.MustCompile(`\$(?:DESTKIT_[A-Z0-9_]+|\{DESTKIT_[A-Z0-9_]+\})`)

// Curl gives a command for a POSIX shell that sends the exchange again. Secrets
// stand as $DESTKIT_TOKEN and the like, to be set by whoever runs it, and so does a
// URL that holds one; a long or binary body as a file, see CurlBodyFile.
func Curl(e Exchange) string { return curl(e, CurlBodyFile(e)) }

// Curl is the command for a POSIX shell that sends the exchange again, with its body as a
// whole, and with secrets as variables such as $DESTKIT_TOKEN. It is "" when only a part
// of the request is known, or its body is no text.
func (e Exchange) Curl() string {
	if e.Request.Body.Base64 != "" || strings.Contains(e.Request.Body.Text, "\x00") {
		return ""
	}
	return curl(e, "")
}

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
		if !curlOwn[name] {
			words = append(words, "-H "+shellQuote(headerWord(h)))
		}
	}
	if !typed { // curl would invent one
		words = append(words, "-H 'Content-Type:'")
	}
	if body := curlBody(e, file); body != "" {
		words = append(words, body)
	}
	return strings.Join(words, " ")
}

// headerWord writes a header for curl, where "Name;" sends an empty value.
func headerWord(h Header) string {
	if h.Value == "" {
		return h.Name + ";"
	}
	return h.Name + ": " + h.Value
}

// BodyFolder is the folder of the files that Curl refers to, in that of the run.
const BodyFolder = "destkit-bodies"

// CurlBodyFile gives the name of the file that Curl refers to and the body that
// belongs there, or "" when the command holds the body itself.
func CurlBodyFile(e Exchange) string {
	body := e.Request.Body
	if body.Size <= curlInline && body.Base64 == "" && !strings.Contains(body.Text, "\x00") {
		return ""
	}
	check := cmp.Or(e.Check, "preflight")
	return fmt.Sprintf("%s/%s-%d.json", BodyFolder, check, e.ID)
}

func curlBody(e Exchange, file string) string {
	if e.Request.Body.Size == 0 {
		return ""
	}
	if file != "" {
		if e.Request.Body.Base64 != "" {
			return "--data-binary @" + shellQuote(file)
		}
		return "-d @" + shellQuote(file)
	}
	if strings.HasPrefix(e.Request.Body.Text, "@") { // a file to -d
		return "--data-raw " + shellQuote(e.Request.Body.Text)
	}
	return "-d " + shellQuote(e.Request.Body.Text)
}

// shellQuote quotes for a POSIX shell: plain words stay, placeholders are left
// to expand, all else is literal.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./") == "" {
		return s
	}
	if !placeholderName.MatchString(s) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")
	at := 0
	for _, m := range placeholderName.FindAllStringIndex(s, -1) {
		b.WriteString(escape.Replace(s[at:m[0]]))
		b.WriteString(s[m[0]:m[1]])
		at = m[1]
	}
	b.WriteString(escape.Replace(s[at:]))
	b.WriteByte('"')
	return b.String()
}
