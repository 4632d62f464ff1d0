package judge

import (
	"github.com/destkit/destkit/conformance/internal/rules"
)

// tlsSteps judge the connection (spec 5.2.1).
func tlsSteps() []definition {
	return []definition{
		step(`^the service connects$`, func(sc *Scenario) any { return sc.connects }),
	}
}

func (sc *Scenario) connects() error {
	if sc.URL.Scheme != "https" {
		sc.Handshaken = &rules.Handshake{}
		return nil
	}
	sc.Handshaken = sc.Handshake(sc.Ctx)
	return nil
}
