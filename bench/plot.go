package bench

import (
	"fmt"
	"math"
	"strings"
)

// The drawing, in its own units. There are two charts, one above the other.
const (
	plotWidth  = 640
	plotHeight = 220 // of a chart
	plotLeft   = 70
	plotRight  = 20
	plotTop    = 46
	plotGap    = 64
)

// SVG draws throughput and the 99th percentile over the runs in flight.
func SVG(title string, points []W3Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotTop+2*plotHeight+2*plotGap)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n"+`<text x="%d" y="22" font-size="15">%s</text>`+"\n", plotLeft, svgText(title))
	var rates, delays []float64
	for _, p := range points {
		rates, delays = append(rates, p.RunsPerSecond), append(delays, p.P99MS)
	}
	chart(&b, plotTop, "runs a second", "#1f6feb", points, rates)
	chart(&b, plotTop+plotHeight+plotGap, "p99, milliseconds", "#cf222e", points, delays)
	b.WriteString("</svg>\n")
	return b.String()
}

// chart draws one line with its axes.
func chart(b *strings.Builder, top int, name, colour string, points []W3Result, values []float64) {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	step := niceStep(most)
	most = max(step, math.Ceil(most/step)*step)
	y := func(v float64) float64 { return float64(top+plotHeight) - v/most*plotHeight }
	x := func(i int) float64 {
		if len(points) < 2 {
			return plotLeft
		}
		return plotLeft + float64(i)*float64(plotWidth-plotLeft-plotRight)/float64(len(points)-1)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", plotLeft, top-8, colour, name)
	for v := 0.0; v <= most*1.0001; v += step {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			plotLeft, plotWidth-plotRight, y(v), y(v), plotLeft-6, y(v)+4, v)
	}
	var line []string
	for i, v := range values {
		line = append(line, fmt.Sprintf("%.1f,%.1f", x(i), y(v)))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n",
			x(i), y(v), colour, x(i), top+plotHeight+16, points[i].Inflight)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(line, " "), colour)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">runs in flight</text>`+"\n", plotWidth-plotRight, top+plotHeight+32)
}

// niceStep is a round number of which about five make the most.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, m := range []float64{1, 2, 5} {
		if most/(m*unit) <= 5 {
			return m * unit
		}
	}
	return 10 * unit
}

func svgText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
