package control

import (
	"net/http"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
)

// Gate makes connections to destinations from now on with these certificates, as PEM, and
// gives their number.
type Gate interface {
	Trust(text []byte) (int, error)
}

// Trust adds authorities.
type Trust struct {
	gate Gate
}

// NewTrust trusts nothing yet.
func NewTrust(gate Gate) *Trust { return &Trust{gate: gate} }

// Routes are those of the control API.
func (t *Trust) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/trust", "body: certificates as PEM; destinations may be signed by them from now on", t.post),
	}
}

func (t *Trust) post(c *call.Control) (any, error) {
	text, err := c.Text(1 << 20)
	if err != nil {
		return nil, err
	}
	n, err := t.gate.Trust(text)
	if err != nil {
		return nil, problem.Refuse(http.StatusBadRequest, "%v", err)
	}
	return map[string]int{"trusted": n}, nil
}
