package destination

import (
	"github.com/destkit/destkit/conformance/internal/rules"
)

// tlsSteps judge the connection (spec 5.2.1).
func tlsSteps() []definition {
	return []definition{
		step(`^the service connects$`, func(sc *scenario) any { return sc.connects }),
	}
}

func (sc *scenario) connects() error {
	if sc.url.Scheme != "https" {
		sc.handshaken = &rules.Handshake{}
		return nil
	}
	sc.handshaken = sc.handshake(sc.ctx)
	return nil
}
