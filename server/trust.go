package server

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
)

// maxTrusted bounds the certificates that an installation keeps, in bytes.
const maxTrusted = 4 << 20

// controlTrust adds authorities for destinations (spec 5.2.1). Where several
// processes share an installation, they hold for all of them, and for those that
// start later.
func (s *Server) controlTrust(c *call.Control) (any, error) {
	text, err := c.Text(1 << 20)
	if err != nil {
		return nil, err
	}
	n, err := s.gate.Trust(text)
	if err != nil {
		return nil, problem.Refuse(http.StatusBadRequest, "%v", err)
	}
	if s.settings == nil {
		s.forks.Trust(text)
		return map[string]int{"trusted": n}, nil
	}
	err = s.settings.Set(c.R.Context(), settingTrust, func(kept []byte) ([]byte, error) {
		for rest := text; ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			// The certificate alone: nobody knows what stands around it.
			if one := pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}); !bytes.Contains(kept, one) {
				kept = append(kept, one...)
			}
		}
		if len(kept) > maxTrusted {
			return nil, problem.Refuse(http.StatusConflict, "the installation has %d MiB of certificates; name them at the start of each process instead", maxTrusted>>20)
		}
		return kept, nil
	})
	if err != nil {
		return nil, err
	}
	return map[string]int{"trusted": n}, nil
}

// followTrust takes over the certificates that are new: others only come behind
// those that are known.
func (s *Server) followTrust(_ context.Context, state []byte) error {
	if len(state) <= s.trusted {
		return nil
	}
	more := state[s.trusted:]
	if _, err := s.gate.Trust(more); err != nil {
		return err
	}
	s.forks.Trust(more)
	s.trusted = len(state)
	return nil
}
