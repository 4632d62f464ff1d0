package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/reach"
)

// errSignIn means that the console requires the control token.
var errSignIn = errors.New("this console needs the control token")

// A session is a cookie with the moment at which it ends, sealed with a key that is
// made from the control token: it holds over restarts and in every process that has the
// same token, and does not reveal the token.
const sessionTime = 12 * time.Hour

// admit returns why a request may not see the console: the rules of /_control,
// with a cookie as the browser's way to give the token.
func (c *Console) admit(r *http.Request) error {
	if reach.OwnOrigin(r) {
		return reach.ErrOutbound
	}
	token := c.opts.Token
	if token == "" {
		return errors.Join(reach.AdmitLoopback(r), fromForm(r))
	}
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && sameText(given, token) {
		return nil
	}
	if signedIn(r, token) {
		return fromForm(r)
	}
	if c.opts.LoopbackToo && reach.AdmitLoopback(r) == nil {
		return fromForm(r)
	}
	return errSignIn
}

// fromForm refuses what a page of another origin sends. A browser adds cookies to
// that, and loopback is open to all that runs on the machine, so a change must prove
// that a form of this console sends it. Other ports of the same host count as the same
// site, and are other origins.
func fromForm(r *http.Request) error {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	switch {
	case site == "same-origin":
	case site == "none" && !changes: // typed, or a bookmark
	case site != "":
		return fmt.Errorf("a page of another site may not call here (Sec-Fetch-Site: %.20q)", site)
	case origin == "http://"+r.Host || origin == "https://"+r.Host:
	case origin == "" && !changes:
	case origin == "":
		return errors.New("only a form of this console may change something here; programs use the other routes of /_control")
	default:
		return fmt.Errorf("a page of the origin %.100q may not call here", origin)
	}
	return nil
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// sealed is a text with its proof.
func sealed(token, purpose, text string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("destkit console " + purpose + "\x00" + text))
	return hex.EncodeToString(mac.Sum(nil))
}

// sessionCookie differs with the token: two programs on ports of one host share their
// cookies.
func sessionCookie(token string) string { return "destkit_console_" + sealed(token, "name", "")[:8] }

func signedIn(r *http.Request, token string) bool {
	kept, err := r.Cookie(sessionCookie(token))
	if err != nil {
		return false
	}
	ends, proof, _ := strings.Cut(kept.Value, ".")
	at, err := strconv.ParseInt(ends, 10, 64)
	return err == nil && sameText(proof, sealed(token, "session", ends)) && time.Now().Unix() < at
}

// signIn takes the token from the form.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	req := c.request(w, r)
	if err := fromForm(r); err != nil {
		c.renderDoor(w, req, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := parseForm(r); err != nil {
		c.renderDoor(w, req, err)
		return
	}
	if c.opts.Token == "" || !sameText(strings.TrimSpace(r.PostForm.Get("token")), c.opts.Token) {
		c.renderDoor(w, req, errors.New("the control token is wrong"))
		return
	}
	ends := strconv.FormatInt(time.Now().Add(sessionTime).Unix(), 10)
	cookie := req.cookie(sessionCookie(c.opts.Token), ends+"."+sealed(c.opts.Token, "session", ends), int(sessionTime/time.Second))
	http.SetCookie(w, cookie)
	http.Redirect(w, r, req.Root+"/", http.StatusSeeOther)
}

// signOut takes the cookie back.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	req := c.request(w, r)
	http.SetCookie(w, req.cookie(sessionCookie(c.opts.Token), "", -1))
	http.Redirect(w, r, req.Root+"/", http.StatusSeeOther)
}

// renderDoor is what who is not let in sees.
func (c *Console) renderDoor(w http.ResponseWriter, req *Request, why error) {
	code := http.StatusForbidden
	if c.opts.Token != "" {
		code = http.StatusUnauthorized
	}
	if !strings.Contains(req.HTTP.Header.Get("Accept"), "text/html") {
		http.Error(w, why.Error(), code)
		return
	}
	f := c.frame(req, nil)
	f.Nav = nil
	f.Data = struct {
		Why   string
		Token bool
	}{Token: c.opts.Token != "", Why: why.Error()}
	c.render(w, code, "door", f)
}
