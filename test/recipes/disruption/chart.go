// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"html"
	"strings"
)

// Sizes of the chart in pixels.
const (
	width, margin = 860, 16
	names, bars   = 290, 430
	row, gap      = 22, 26
	top           = 64
)

// Chart returns an SVG image: for each program and variant, a bar as long as the median of the time without a write, with the number of
// elections.
func Chart(runs []Run) string {
	longest := 1.0
	lines := 0
	for _, program := range Programs(runs) {
		for _, variant := range Variants() {
			if selected := of(runs, program, variant); len(selected) > 0 {
				median, _ := values(selected, outage)
				longest, lines = max(longest, median), lines+1
			}
		}
	}
	height := top + lines*row + len(Programs(runs))*gap + margin
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" `, width, height)
	fmt.Fprintln(&svg, `font-family="sans-serif" font-size="14" fill="#1f2328">`)
	fmt.Fprintf(&svg, "<title>Seconds without a write during an upgrade</title>\n"+`<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text := func(x float64, y int, attributes, content string) {
		fmt.Fprintf(&svg, `<text x="%.0f" y="%d"%s>%s</text>`+"\n", x, y, attributes, html.EscapeString(content))
	}
	text(margin, margin+16, ` font-size="18" font-weight="bold"`, "Seconds without a write during an upgrade")
	text(margin, margin+36, ` fill="#57606a"`, "three replicas, a client that writes 20 times per second; median")
	y := top
	for _, program := range Programs(runs) {
		text(margin, y+18, ` font-weight="bold"`, program)
		y += gap
		for _, variant := range Variants() {
			selected := of(runs, program, variant)
			if len(selected) == 0 {
				continue
			}
			median, _ := values(selected, outage)
			elections, _ := values(selected, func(r Run) float64 { return float64(r.Elections) })
			length := bars * median / longest
			text(margin+12, y+15, "", variant)
			fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", margin+names, y+2, max(length, 1), row-5, colour(variant))
			text(margin+names+length+6, y+15, "", fmt.Sprintf("%s s, %s", number(median), plural(elections)))
			y += row
		}
	}
	return svg.String() + "</svg>\n"
}

func outage(r Run) float64 { return r.Outage }

func plural(elections float64) string {
	if elections == 1 {
		return "1 election"
	}
	return number(elections) + " elections"
}

// colour is that of a bar.
func colour(variant string) string {
	if variant == Plain || variant == Marked {
		return "#8c959f"
	}
	return "#0969da"
}
