package loadpage

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"strings"
)

// curve is one line of a plot. Class gives its colour, which the page sets for
// light, dark and paper. A y that is no number is a gap.
type curve struct {
	name, class string
	x, y        []float64
	area, dots  bool // filled below; points and no line
}

// plot is a chart that is drawn as SVG, without a script.
type plot struct {
	title, unit, xTitle string
	curves              []curve
	bands               []band
	ticks               []tickAt // along x; nil: chosen
	timed, fromZero     bool     // x is seconds since the start
	whole               bool     // x counts things
	still               bool     // a pointer shows no values
	nines               bool     // x is a share of requests, see nineScale
	log                 bool     // y is a time in milliseconds, on a logarithmic axis
}

// band is a part of the x axis that is marked over the whole height. Without a
// class it is a time in which no reply came.
type band struct {
	from, to    float64
	name, class string
}

func (b band) look() string { return cmp.Or(b.class, "band") }

// tickAt is a mark on an axis.
type tickAt struct {
	at    float64
	label string
}

// frame is a size that a plot is drawn in: text keeps its size, so that a small
// screen needs a separate drawing.
type frame struct {
	class         string
	width, height float64
	ticks         int
	places        int // at which values can be read
}

var frames = []frame{{"wide", 880, 280, 10, 60}, {"small", 340, 240, 4, 30}}

// stillFrames are for pages that have two plots side by side.
var stillFrames = []frame{{"wide", 560, 240, 7, 0}, {"small", 340, 240, 4, 0}}

const (
	padLeft, padRight = 60.0, 14.0
	padTop, padBottom = 12.0, 48.0
	mostPoints        = 600 // drawn of a curve
	letter            = 6.7 // about the width of one, in the units of the drawing
)

// svg draws the plot, once for each frame; the page shows the one that fits.
func (p plot) svg() template.HTML {
	var b strings.Builder
	sizes := frames
	if p.still {
		sizes = stillFrames
	}
	for _, f := range sizes {
		p.draw(&b, f)
	}
	return template.HTML(b.String()) // only numbers and escaped words are in it
}

func (p plot) draw(b *strings.Builder, f frame) {
	fromX, toX, toY := p.extent()
	fmt.Fprintf(b, `<svg class="%s" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s, %s">`, f.class, f.width, f.height,
		template.HTMLEscapeString(p.title), template.HTMLEscapeString(p.unit))
	bottom := f.height - padBottom
	scaleX := func(v float64) float64 { return padLeft + (v-fromX)/(toX-fromX)*(f.width-padLeft-padRight) }
	scaleY := func(v float64) float64 { return bottom - v/toY*(bottom-padTop) }
	ticks := niceTicks(0, toY, 5)
	if p.log {
		var low float64
		low, toY = p.decades()
		scaleY = func(v float64) float64 {
			return bottom - math.Log(max(v, low)/low)/math.Log(toY/low)*(bottom-padTop)
		}
		ticks = logTicks(low, toY, bottom-padTop)
	}
	for _, band := range p.bands {
		from, to := scaleX(max(fromX, band.from)), scaleX(min(toX, band.to))
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, band.look(), from, padTop, max(1, to-from), bottom-padTop)
	}
	for _, t := range ticks {
		y := scaleY(t.at)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, padLeft, f.width-padRight, y, y)
		if t.label != "" {
			fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, padLeft-8, y+4, t.label)
		}
	}
	p.drawX(b, f, fromX, toX, scaleX)
	for _, c := range p.curves {
		c.draw(b, scaleX, scaleY)
	}
	if !p.still {
		p.drawValues(b, f, fromX, toX, scaleX)
	}
	b.WriteString("</svg>")
}

// drawX draws the part below the plot. A label that would touch the one
// before is left out.
func (p plot) drawX(b *strings.Builder, f frame, fromX, toX float64, scaleX func(float64) float64) {
	ticks := p.ticks
	switch {
	case ticks != nil:
	case p.timed:
		ticks = timeTicks(fromX, toX, f.ticks)
	case p.whole:
		ticks = niceTicks(fromX, toX, min(f.ticks, int(toX-fromX)))
	default:
		ticks = niceTicks(fromX, toX, f.ticks)
	}
	bottom, free := f.height-padBottom, math.Inf(-1)
	for _, t := range ticks {
		x := scaleX(t.at)
		if t.at < fromX || t.at > toX*1.0001 {
			continue
		}
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x, x, padTop, bottom+5)
		half := float64(len(t.label)) * letter / 2
		middle := min(x, f.width-half)
		if middle-half < free {
			continue
		}
		free = middle + half + 6
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, middle, bottom+19, template.HTMLEscapeString(t.label))
	}
	fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
		(padLeft+f.width-padRight)/2, f.height-8, template.HTMLEscapeString(p.xTitle))
}

// extent is the range of the axes; y begins at 0.
func (p plot) extent() (fromX, toX, toY float64) {
	fromX, toX = math.Inf(1), math.Inf(-1)
	for _, c := range p.curves {
		for i, x := range c.x {
			fromX, toX = min(fromX, x), max(toX, x)
			if !math.IsNaN(c.y[i]) {
				toY = max(toY, c.y[i])
			}
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

// decades is the range of a logarithmic axis: from a round value below the smallest
// that is drawn to one above the largest.
func (p plot) decades() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, c := range p.curves {
		for _, y := range c.y {
			if y > 0 && !math.IsInf(y, 0) {
				low, high = min(low, y), max(high, y)
			}
		}
	}
	if high == 0 {
		return 1, 10
	}
	low, high = roundDown(low), roundUp(high)
	if low == high {
		high = roundUp(high * 1.5)
	}
	return low, high
}

// roundDown and roundUp are the nearest of 1, 2 and 5 times a power of ten.
func roundDown(v float64) float64 {
	size := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*size <= v*1.0000001 {
			return m * size
		}
	}
	return size
}

func roundUp(v float64) float64 {
	size := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*size >= v*0.9999999 {
			return m * size
		}
	}
	return 10 * size
}

// draw adds the parts of a line between its gaps.
func (c curve) draw(b *strings.Builder, scaleX, scaleY func(float64) float64) {
	if c.dots {
		for i := range c.x {
			c.dot(b, scaleX(c.x[i]), scaleY(c.y[i]))
		}
		return
	}
	step := (len(c.x) + mostPoints - 1) / mostPoints
	for from := 0; from < len(c.x); {
		if math.IsNaN(c.y[from]) {
			from++
			continue
		}
		to := from
		for to < len(c.x) && !math.IsNaN(c.y[to]) {
			to++
		}
		c.drawPart(b, from, to, step, scaleX, scaleY)
		from = to
	}
}

func (c curve) dot(b *strings.Builder, x, y float64) {
	fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="3.5"/>`, c.class, x, y)
}

// drawPart adds a line without gaps, and the area under it. Of many points that
// fall on one place the highest is drawn: a peak must not vanish.
func (c curve) drawPart(b *strings.Builder, from, to, step int, scaleX, scaleY func(float64) float64) {
	if to-from == 1 {
		c.dot(b, scaleX(c.x[from]), scaleY(c.y[from]))
		return
	}
	var path strings.Builder
	firstX, lastX := scaleX(c.x[from]), 0.0
	for i := from; i < to; i += step {
		end := min(i+step, to)
		y := c.y[i]
		for _, v := range c.y[i:end] {
			y = max(y, v)
		}
		lastX = scaleX(c.x[end-1])
		fmt.Fprintf(&path, "%c%.1f %.1f", "LM"[b2i(i == from)], lastX, scaleY(y))
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

// niceTicks are about n round values of a range, all in one unit.
func niceTicks(from, to float64, n int) []tickAt {
	raw := (to - from) / float64(n)
	if !(raw > 0) || math.IsInf(raw, 0) {
		return nil
	}
	size := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if size*m >= raw {
			size *= m
			break
		}
	}
	return ticksOf(from, to, size, func(v float64) string { return axisLabel(v, to) })
}

// logTicks are 1, 2 and 5 times each power of ten of a range. Where labels of all of
// them would touch in that height, only the powers have one.
func logTicks(low, high, height float64) (list []tickAt) {
	few := height*math.Log10(2)/math.Log10(high/low) >= lineHeight
	for size := math.Pow(10, math.Floor(math.Log10(low)+1e-9)); size <= high*1.0000001; size *= 10 {
		for _, m := range []float64{1, 2, 5} {
			v := m * size
			if v < low*0.9999999 || v > high*1.0000001 {
				continue
			}
			t := tickAt{at: v}
			if few || m == 1 {
				t.label = timeLabel(v)
			}
			list = append(list, t)
		}
	}
	return list
}

// timeLabel is a round number of milliseconds in the unit that suits it.
func timeLabel(ms float64) string {
	switch {
	case ms >= 999.9:
		return fmt.Sprintf("%.4g s", ms/1000)
	case ms < 0.099:
		return fmt.Sprintf("%.4g µs", ms*1000)
	}
	return fmt.Sprintf("%.4g ms", ms)
}

func ticksOf(from, to, size float64, label func(float64) string) (list []tickAt) {
	for i := math.Ceil(from / size); i*size <= to*1.0000001; i++ {
		list = append(list, tickAt{i * size, label(i * size)})
	}
	return list
}

// timeTicks are about n moments of a range of seconds.
func timeTicks(from, to float64, n int) []tickAt {
	for _, size := range []float64{60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400} {
		if (to-from)/float64(n) > size || to-from < 180 {
			continue
		}
		if size < 3600 {
			return ticksOf(from, to, size, func(v float64) string { return fmt.Sprintf("%.0f min", v/60) })
		}
		return ticksOf(from, to, size, func(v float64) string { return fmt.Sprintf("%.0f h", v/3600) })
	}
	list := niceTicks(from, to, n)
	for i := range list {
		list[i].label += " s"
	}
	return list
}

// axisLabel is a number with few characters, in the unit that suits the largest
// of its axis.
func axisLabel(v, largest float64) string {
	switch {
	case v == 0:
		return "0"
	case largest >= 1e9:
		return fmt.Sprintf("%.4g G", v/1e9)
	case largest >= 1e6:
		return fmt.Sprintf("%.4g M", v/1e6)
	case largest >= 1e4:
		return fmt.Sprintf("%.4g k", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}
