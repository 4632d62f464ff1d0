package loadgen

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// curve is one line of a plot. Class gives its colour, which the page sets for
// light, dark and paper.
type curve struct {
	name, class string
	x, y        []float64
	area        bool
}

// plot is a chart that is drawn as SVG, without a script.
type plot struct {
	title, unit, xUnit string
	curves             []curve
	ticks              []tickAt // along x; nil: chosen
	fromZero           bool
}

// tickAt is a mark on an axis.
type tickAt struct {
	at    float64
	label string
}

const (
	plotWidth, plotHeight = 860.0, 250.0
	padLeft, padRight     = 64.0, 14.0
	padTop, padBottom     = 12.0, 34.0
	mostPoints            = 600 // drawn of a curve
)

// svg draws the plot.
func (p plot) svg() template.HTML {
	fromX, toX, toY := p.extent()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, plotWidth, plotHeight, template.HTMLEscapeString(p.title))
	scaleX := func(v float64) float64 { return padLeft + (v-fromX)/(toX-fromX)*(plotWidth-padLeft-padRight) }
	scaleY := func(v float64) float64 { return plotHeight - padBottom - v/toY*(plotHeight-padTop-padBottom) }
	for _, t := range niceTicks(0, toY, 5) {
		y := scaleY(t.at)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			padLeft, plotWidth-padRight, y, y, padLeft-8, y+4, t.label)
	}
	ticks := p.ticks
	if ticks == nil {
		ticks = niceTicks(fromX, toX, 9)
	}
	for i, t := range ticks {
		if t.at < fromX || t.at > toX {
			continue
		}
		x, label := scaleX(t.at), t.label
		if i == len(ticks)-1 && p.xUnit != "" {
			label += " " + p.xUnit
		}
		anchor := "middle"
		if x > plotWidth-padRight-20 {
			anchor = "end"
		}
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`,
			x, x, plotHeight-padBottom, plotHeight-padBottom+5, x, plotHeight-padBottom+20, anchor, template.HTMLEscapeString(label))
	}
	for _, c := range p.curves {
		c.draw(&b, scaleX, scaleY)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // only numbers and escaped words are in it
}

// extent is the range of the axes; y begins at 0.
func (p plot) extent() (fromX, toX, toY float64) {
	fromX, toX = math.Inf(1), math.Inf(-1)
	for _, c := range p.curves {
		for i, x := range c.x {
			fromX, toX, toY = min(fromX, x), max(toX, x), max(toY, c.y[i])
		}
	}
	if p.fromZero {
		fromX = 0
	}
	if !(fromX < toX) {
		fromX, toX = 0, max(1, toX)
	}
	if toY <= 0 {
		toY = 1
	}
	return fromX, toX, toY * 1.05
}

// draw adds a line, and the area under it. Of many points that fall on one
// place the highest is drawn: a peak must not vanish.
func (c curve) draw(b *strings.Builder, scaleX, scaleY func(float64) float64) {
	if len(c.x) == 0 {
		return
	}
	step := (len(c.x) + mostPoints - 1) / mostPoints
	var path strings.Builder
	firstX, lastX := scaleX(c.x[0]), 0.0
	for i := 0; i < len(c.x); i += step {
		end := min(i+step, len(c.x))
		y := c.y[i]
		for _, v := range c.y[i:end] {
			y = max(y, v)
		}
		lastX = scaleX(c.x[end-1])
		fmt.Fprintf(&path, "%c%.1f %.1f", "LM"[b2i(i == 0)], lastX, scaleY(y))
	}
	if len(c.x) == 1 {
		fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="3"/>`, c.class, firstX, scaleY(c.y[0]))
		return
	}
	if c.area {
		fmt.Fprintf(b, `<path class="area %s" d="%sL%.1f %.1fL%.1f %.1fZ"/>`, c.class, path.String(), lastX, scaleY(0), firstX, scaleY(0))
	}
	fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, c.class, path.String())
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// niceTicks are about n round values of a range.
func niceTicks(from, to float64, n int) []tickAt {
	raw := (to - from) / float64(n)
	if !(raw > 0) {
		return nil
	}
	size := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if size*m >= raw {
			size *= m
			break
		}
	}
	var list []tickAt
	for v := math.Ceil(from/size) * size; v <= to*1.0000001; v += size {
		list = append(list, tickAt{v, axisLabel(v)})
	}
	return list
}

// axisLabel is a number with few characters.
func axisLabel(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.3g G", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.3g M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.4g k", v/1e3)
	case v == 0:
		return "0"
	}
	return fmt.Sprintf("%.4g", v)
}
