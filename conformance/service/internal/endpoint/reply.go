package endpoint

import (
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// WrapScript lets change alter what the endpoint answers from now on.
func (p *Endpoint) WrapScript(change func(*Call, *Reply)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	script := p.script
	p.script = func(c *Call) *Reply {
		var r *Reply
		if script != nil {
			r = script(c)
		}
		if r == nil {
			r = AsIs()
		}
		change(c, r)
		return r
	}
}

// AsIs is the simulator's own answer.
func AsIs() *Reply {
	return &Reply{Edit: func(body []byte, _ http.Header) []byte { return body }}
}

// AddHeader adds a header to the answer, beside other lines of its name.
func (r *Reply) AddHeader(name, value string) {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header[name] = append(r.Header[name], value) // as it stands: the wire keeps its case
}

// Fail answers with a status, and a body that says so.
func (r *Reply) Fail(status int) {
	r.Status, r.Edit, r.Store = status, nil, false
	r.Body = jsonvalue.Encode(map[string]any{"message": http.StatusText(status)})
}

// CarryOut hands a call to the simulator past everything that is recorded.
func (p *Endpoint) CarryOut(body []byte) []byte {
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest("POST", "/", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/json")
	p.sim.ServeHTTP(recorder, request)
	return recorder.Body.Bytes()
}
