package loadgen

import (
	"fmt"
	"runtime"

	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// generator reports whether the generator was the limit and not the target. It is,
// where a free connection was not used on time, where it had no processor left,
// or no descriptor or port.
func (m *measure) generator() Generator {
	wall := max(float64(m.ended-m.began), float64(m.stopped-m.began)) / 1e9
	g := Generator{
		Unsent: m.unsent, Late: m.late, Queued: m.queued, Unanswered: m.cut, Connections: m.connects,
		CPUSeconds: m.cpu.Own.Seconds(), CPUs: runtime.NumCPU(),
	}
	if wall > 0 {
		g.OwnCPUs = m.cpu.Own.Seconds() / wall
		if m.cpu.Known {
			g.MachineCPUs = min(m.cpu.Machine.Seconds()/wall, float64(g.CPUs))
		}
	}
	add := func(format string, args ...any) {
		g.Limited = true
		g.Reasons = append(g.Reasons, fmt.Sprintf(format, args...))
	}
	if m.requests >= 100 && m.late*100 > m.requests {
		add("%d of %s %s sent more than 1 ms late although a connection was free", m.late, quantity.Count(m.requests, "request"), quantity.Verb(m.late, "was", "were"))
	}
	cpus := float64(g.CPUs)
	switch {
	case g.OwnCPUs > 0.9*cpus:
		add("the generator kept %.1f of %s busy", g.OwnCPUs, quantity.Count(g.CPUs, "processor"))
	case g.MachineCPUs > 0.95*cpus:
		add("%s of this machine %s busy, %.1f of %s with the generator: target and generator share %[4]s, or others do", allOf(g.CPUs, "processor"), quantity.Verb(g.CPUs, "was", "were"), g.OwnCPUs, quantity.Verb(g.CPUs, "it", "them"))
	}
	kinds := map[string]int64{}
	for _, t := range m.tallies {
		kinds[t.Kind] += t.Count
	}
	if n := kinds[wire.KindDescriptors]; n > 0 {
		add("%s this machine had no file descriptor left", quantity.Count(n, "time"))
	}
	if n := kinds[wire.KindPorts]; n > 0 {
		add("%s this machine had no local port left", quantity.Count(n, "time"))
	}
	return g
}
