package main

import "time"

// section is some goals that are measured together.
type section struct {
	name, part string
	takes      func(options) time.Duration // about
	measure    func(*workshop) ([]row, error)
}

// turns is the time of so many contenders, taken in turns.
func turns(contenders int) func(options) time.Duration {
	return func(o options) time.Duration {
		return time.Duration(contenders*o.rounds*(o.seconds+1)) * time.Second
	}
}

var sections = []section{
	{"load-one", "load, closed loop, one record, plain", turns(7), measureLoadOne},
	{"load-one-tls", "load, closed loop, one record, TLS", turns(3), measureLoadOneTLS},
	{"load-batches", "load, batches of 1,000", turns(3), measureLoadBatches},
	{"load-sustained", "load, 40,000 req/s, f1, plain", takesSustained, measureSustained},
	{"load-sustained-tls", "load, 40,000 req/s, f1, TLS", takesSustained, measureSustainedTLS},
	{"load-search", "load, search for the maximum, f1", takesSearch, measureSearch},
	{"load-known-limit", "load, search for a known limit", takesKnown, measureKnown},
	{"load-stall", "load, a simulator that stalls for 1 s of 10", takesStall, measureStall},
	{"simulator", "simulator", takesSimulator, measureSimulator},
	{"proxy", "proxy, recording and judging", takesProxy, measureProxy},
	{"sync", "syncs of 1 M rows", takesSync, measureSync},
	{"rest", "REST", takesREST, measureREST},
	{"judge", "judge", takesJudge, measureJudge},
	{"kill-matrix", "judge", takesMatrix, measureMatrix},
}

// contender is one of those that are compared.
type contender struct {
	name    string
	measure func() (float64, error)
}

// alternate measures all in turns, so that what else the machine does meets all
// of them alike.
func (w *workshop) alternate(contenders []contender) (map[string][]float64, error) {
	all := map[string][]float64{}
	for round := range w.options.rounds {
		for _, c := range contenders {
			if err := w.ctx.Err(); err != nil {
				return all, err
			}
			v, err := c.measure()
			if err != nil {
				return all, err
			}
			w.say("  round %d, %s: %s", round+1, c.name, digits(v))
			all[c.name] = append(all[c.name], v)
		}
	}
	return all, nil
}
