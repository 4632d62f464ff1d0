package control

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/settings"
)

// TrustSetting are the certificates that all processes trust.
const TrustSetting = "trust"

// most bounds the certificates that an installation keeps, in bytes.
const most = 4 << 20

// Gate makes connections to destinations from now on with these certificates, as PEM, and
// gives their number.
type Gate interface {
	Trust(text []byte) (int, error)
}

// Forks keep certificates for the forks to come.
type Forks interface{ Trust(text []byte) }

// Trust is what one process trusts.
type Trust struct {
	gate     Gate
	forks    Forks
	settings *settings.Settings // nil where no other process shares the installation
	followed int                // bytes of the setting
}

// NewTrust trusts nothing yet.
func NewTrust(gate Gate, forks Forks) *Trust { return &Trust{gate: gate, forks: forks} }

// Share lets what is trusted hold for all processes, and for those that start later.
func (t *Trust) Share(all *settings.Settings) { t.settings = all }

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
	if t.settings == nil {
		t.forks.Trust(text)
		return map[string]int{"trusted": n}, nil
	}
	if err := t.settings.Set(c.R.Context(), TrustSetting, func(kept []byte) ([]byte, error) { return with(kept, text) }); err != nil {
		return nil, err
	}
	return map[string]int{"trusted": n}, nil
}

// with adds the certificates of a text that are not kept yet.
func with(kept, text []byte) ([]byte, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		// The certificate alone: what stands around it may be anything.
		if one := pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}); !bytes.Contains(kept, one) {
			kept = append(kept, one...)
		}
	}
	if len(kept) > most {
		return nil, problem.Refuse(http.StatusConflict, "the installation has %d MiB of certificates; name them at the start of each process instead", most>>20)
	}
	return kept, nil
}

// Follow takes over the certificates that are new: others only come behind
// those that are known.
func (t *Trust) Follow(_ context.Context, state []byte) error {
	if len(state) <= t.followed {
		return nil
	}
	more := state[t.followed:]
	if _, err := t.gate.Trust(more); err != nil {
		return err
	}
	t.forks.Trust(more)
	t.followed = len(state)
	return nil
}

// Followed is how many bytes of certificates were taken over from the installation.
func (t *Trust) Followed() int { return t.followed }
