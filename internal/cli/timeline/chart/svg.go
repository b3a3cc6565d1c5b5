// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/internal/web/history"
)

// Sizes of an SVG in pixels.
const (
	margin, titleHeight        = 16, 28
	nameWidth, plotWidth       = 300, 680
	lineHeight, lineGap        = 24, 10
	scaleHeight, legendHeight  = 24, 28
	legendBox, legendItemWidth = 12, 150
)

// SVG prints the timeline as an SVG of 1012 pixels width, on a white background. Each span has a
// title with its phase, times and message, which browsers show as a tooltip.
func (t Timeline) SVG(out io.Writer) error {
	height := 2*margin + titleHeight + len(t.Lines)*(lineHeight+lineGap) + scaleHeight + legendHeight
	width := 2*margin + nameWidth + plotWidth
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="13" fill="#222222">`+"\n",
		width, height, width, height)
	title := fmt.Sprintf("Probes of pod %s/%s", t.Namespace, t.Pod)
	fmt.Fprintf(&svg, "<title>%s</title>\n", escape(title))
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&svg, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", margin, margin+14, escape(title))
	y := margin + titleHeight
	for i, line := range t.Lines {
		fmt.Fprintf(&svg, `<text x="%d" y="%d">%s</text>`+"\n", margin, y+17, escape(t.names()[i]))
		for _, span := range line.Spans {
			t.rect(&svg, span, y)
		}
		y += lineHeight + lineGap
	}
	t.axis(&svg, y)
	t.legend(&svg, y+scaleHeight)
	svg.WriteString("</svg>\n")
	if _, err := io.WriteString(out, svg.String()); err != nil {
		return fmt.Errorf("print the timeline: %w", err)
	}
	return nil
}

// x returns the position of a moment.
func (t Timeline) x(at time.Time) float64 {
	return margin + nameWidth + plotWidth*float64(at.Sub(t.Start))/float64(t.End.Sub(t.Start))
}

func (t Timeline) rect(svg *strings.Builder, span history.Span, y int) {
	l := lookOf(span.Phase)
	height := lineHeight * l.share
	title := fmt.Sprintf("%s from %s to %s", l.text, span.Start.Format(clock), span.End.Format(clock))
	if span.Message != "" {
		title += ": " + span.Message
	}
	fmt.Fprintf(svg, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>`+"\n",
		t.x(span.Start), float64(y)+lineHeight-height, max(t.x(span.End)-t.x(span.Start), 1), height, l.fill, escape(title))
}

func (t Timeline) axis(svg *strings.Builder, y int) {
	const left, right = margin + nameWidth, margin + nameWidth + plotWidth
	fmt.Fprintf(svg, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#222222"/>`+"\n", left, y, right, y)
	fmt.Fprintf(svg, `<text x="%d" y="%d">%s</text>`+"\n", left, y+16, t.Start.Format(clock))
	fmt.Fprintf(svg, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+right)/2, y+16, t.Start.Add(t.End.Sub(t.Start)/2).Format(clock))
	fmt.Fprintf(svg, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", right, y+16, t.End.Format(clock))
}

func (t Timeline) legend(svg *strings.Builder, y int) {
	for i, l := range looks() {
		x := margin + i*legendItemWidth
		fmt.Fprintf(
			svg, `<rect x="%d" y="%.1f" width="%d" height="%.1f" fill="%s"/>`+"\n", x, float64(y)+8+legendBox*(1-l.share), legendBox, legendBox*l.share, l.fill,
		)
		fmt.Fprintf(svg, `<text x="%d" y="%d">%s</text>`+"\n", x+legendBox+6, y+19, escape(l.text))
	}
}

func escape(text string) string {
	var escaped strings.Builder
	// Writing to a strings.Builder does not fail.
	_ = xml.EscapeText(&escaped, []byte(text))
	return escaped.String()
}
