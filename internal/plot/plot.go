// Package plot draws lines over logarithmic axes, as SVG.
package plot

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Chart is lines in one picture. Both axes are logarithmic: points must be above 0, others are left out.
type Chart struct {
	Title, X, Y string // Y and X name the axes
	Lines       []Line
}

// Line is points that belong together, in the order of their X.
type Line struct {
	Name   string
	Points []Point
}

// Point is one value.
type Point struct{ X, Y float64 }

// The picture's measures, in its own units.
const (
	width, height       = 720.0, 440.0
	left, right         = 80.0, 110.0
	top, bottom         = 50.0, 60.0
	paperWidth          = width - left - right
	paperHeight         = height - top - bottom
	maxTicks            = 12
	tickSize, textShift = 5.0, 4.0
)

var colours = []string{"#2563eb", "#dc2626", "#059669", "#9333ea", "#d97706", "#475569"}

// Write writes the chart as one SVG document.
func (c Chart) Write(w io.Writer) error {
	x, y := c.axis(func(p Point) float64 { return p.X }), c.axis(func(p Point) float64 { return p.Y })
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="13">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="white"/>`+"\n", width, height)
	label(&b, left, top-20, "start", c.Title)
	label(&b, left+paperWidth/2, height-15, "middle", c.X)
	fmt.Fprintf(&b, `<g transform="rotate(-90)">`)
	label(&b, -(top + paperHeight/2), 20, "middle", c.Y)
	b.WriteString("</g>\n")
	for _, v := range x.ticks() {
		at := left + x.at(v)*paperWidth
		grid(&b, at, top, at, top+paperHeight)
		label(&b, at, top+paperHeight+18, "middle", number(v))
	}
	for _, v := range y.ticks() {
		at := top + (1-y.at(v))*paperHeight
		grid(&b, left, at, left+paperWidth, at)
		label(&b, left-tickSize, at+textShift, "end", number(v))
	}
	for i, l := range c.Lines {
		l.draw(&b, x, y, colours[i%len(colours)])
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// draw draws a line with its points, and its name at its end.
func (l Line) draw(b *strings.Builder, x, y axis, colour string) {
	var path, dots strings.Builder
	var px, py float64
	for _, p := range l.Points {
		if !(p.X > 0) || !(p.Y > 0) {
			continue
		}
		px, py = left+x.at(p.X)*paperWidth, top+(1-y.at(p.Y))*paperHeight
		fmt.Fprintf(&path, "%.1f,%.1f ", px, py)
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, px, py, colour)
	}
	if path.Len() == 0 {
		return
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>%s`, strings.TrimSpace(path.String()), colour, dots.String())
	label(b, px+8, py+textShift, "start", l.Name)
	b.WriteByte('\n')
}

func label(b *strings.Builder, x, y float64, anchor, text string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, escape(text))
}

func grid(b *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`, x1, y1, x2, y2)
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace

// axis is the range of an axis, as powers of ten.
type axis struct{ from, to float64 }

// axis returns the range of what is drawn.
func (c Chart) axis(of func(Point) float64) axis {
	a := axis{math.Inf(1), math.Inf(-1)}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if v := of(p); p.X > 0 && p.Y > 0 {
				a.from, a.to = min(a.from, math.Log10(v)), max(a.to, math.Log10(v))
			}
		}
	}
	if a.from > a.to {
		return axis{0, 1} // nothing is drawn
	}
	return axis{a.from - 0.05, a.to + 0.05}
}

// at returns where a value is, from 0 to 1.
func (a axis) at(v float64) float64 { return (math.Log10(v) - a.from) / (a.to - a.from) }

// ticks returns round values within the range: ones, twos and fives, or, where these are too many, powers of ten.
func (a axis) ticks() (out []float64) {
	for _, steps := range [][]float64{{1, 2, 5}, {1}} {
		out = out[:0]
		for e := math.Floor(a.from); e <= a.to; e++ {
			for _, s := range steps {
				if v := s * math.Pow(10, e); a.at(v) >= 0 && a.at(v) <= 1 {
					out = append(out, v)
				}
			}
		}
		if len(out) <= maxTicks {
			break
		}
	}
	return out
}

// number writes a value as people do.
func number(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}
