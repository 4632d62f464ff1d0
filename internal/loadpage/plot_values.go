package loadpage

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/quantity"
)

// drawValues adds what a pointer over the plot shows: the values of all curves at the
// place under it. The style sheet shows them, so that no script is needed.
func (p plot) drawValues(b *strings.Builder, f frame, fromX, toX float64, scaleX func(float64) float64) {
	places := p.places(f.places)
	bottom := f.height - padBottom
	for i, x := range places {
		from, to := scaleX(fromX), scaleX(toX)
		if i > 0 {
			from = (scaleX(places[i-1]) + scaleX(x)) / 2
		}
		if i < len(places)-1 {
			to = (scaleX(x) + scaleX(places[i+1])) / 2
		}
		lines := p.valuesAt(x)
		if len(lines) == 0 || to <= from {
			continue
		}
		fmt.Fprintf(b, `<g class="hit"><rect class="pick" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/><line class="at" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`,
			from, padTop, to-from, bottom-padTop, scaleX(x), scaleX(x), padTop, bottom)
		p.drawBox(b, f, scaleX(x), append([]valueLine{{text: p.placeText(x)}}, lines...))
		b.WriteString("</g>")
	}
}

// valueLine is a line of the box with the values, in the colour of its curve.
type valueLine struct{ class, text string }

// lineHeight is that of the box, in the units of the drawing.
const lineHeight = 16.0

// drawBox draws the values to the right of a place, or to the left where there is no
// room.
func (p plot) drawBox(b *strings.Builder, f frame, at float64, lines []valueLine) {
	longest := 0
	for _, l := range lines {
		longest = max(longest, utf8.RuneCountInString(l.text))
	}
	width := float64(longest)*letter + 18
	left := at + 8
	if left+width > f.width {
		left = max(padLeft+4, at-8-width)
	}
	fmt.Fprintf(b, `<g class="says"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5"/>`, left, padTop+2, width, float64(len(lines))*lineHeight+8)
	for i, l := range lines {
		fmt.Fprintf(b, `<text class="said %s" x="%.1f" y="%.1f">%s</text>`, l.class, left+9, padTop+2+lineHeight*float64(i+1), template.HTMLEscapeString(l.text))
	}
	b.WriteString("</g>")
}

// places are at most n of the points along x.
func (p plot) places(n int) []float64 {
	var all []float64
	for _, c := range p.curves {
		all = append(all, c.x...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) <= n {
		return all
	}
	some := make([]float64, 0, n)
	for i := range n {
		some = append(some, all[i*(len(all)-1)/(n-1)])
	}
	return slices.Compact(some)
}

// valuesAt are the values of the curves at x, each of its nearest point.
func (p plot) valuesAt(x float64) (lines []valueLine) {
	for _, c := range p.curves {
		at := -1
		for i := range c.x {
			if at < 0 || math.Abs(c.x[i]-x) < math.Abs(c.x[at]-x) {
				at = i
			}
		}
		if at < 0 || math.IsNaN(c.y[at]) || c.dots && c.x[at] != x {
			continue
		}
		lines = append(lines, valueLine{c.class, c.name + ": " + p.valueText(c.y[at])})
	}
	return lines
}

func (p plot) valueText(v float64) string {
	if p.log {
		return quantity.Time(v)
	}
	return quantity.Rate(v)
}

// placeText is where on the x axis a place is.
func (p plot) placeText(x float64) string {
	switch {
	case p.timed && x >= 180:
		return fmt.Sprintf("%.0f min %.0f s", math.Floor(x/60), math.Mod(x, 60))
	case p.timed:
		return fmt.Sprintf("%.3g s", x)
	case p.nines:
		return fmt.Sprintf("%.6g %%", 100*(1-math.Pow(10, -x)))
	case p.whole:
		return fmt.Sprintf("%s %.0f", p.xTitle, x)
	}
	return fmt.Sprintf("%.4g", x)
}
