// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// theme is a set of colors.
type theme struct {
	name             string
	back, text, grid color.Color
	lines            []color.Color
}

func rgb(hex uint32) color.Color {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255} //nolint:gosec // Bytes of the number.
}

// The colors of the lines also differ for users who cannot distinguish red and green.
func lightTheme() theme {
	return theme{
		name: "light", back: rgb(0xffffff), text: rgb(0x1f2328), grid: rgb(0xd8dee4),
		lines: []color.Color{rgb(0x0969da), rgb(0xbc4c00), rgb(0x1a7f37), rgb(0x8250df), rgb(0x57606a)},
	}
}

func darkTheme() theme {
	return theme{
		name: "dark", back: rgb(0x0d1117), text: rgb(0xe6edf3), grid: rgb(0x30363d),
		lines: []color.Color{rgb(0x58a6ff), rgb(0xf0883e), rgb(0x3fb950), rgb(0xbc8cff), rgb(0x8b949e)},
	}
}

func themes() []theme { return []theme{lightTheme(), darkTheme()} }

func imageName(c harness.Chart, t theme) string {
	return fmt.Sprintf("images/performance-%s-%s.svg", c.Name, t.name)
}

// paint returns the SVG picture of a chart. The same chart gives the same bytes.
func paint(c harness.Chart, t theme) ([]byte, error) {
	p, err := newPlot(c, t)
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(620, 340)
	p.Draw(draw.Crop(draw.New(canvas), 10, -16, 8, -10))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("write picture: %w", err)
	}
	return out.Bytes(), nil
}

// newPlot lays out a chart.
func newPlot(c harness.Chart, t theme) (*plot.Plot, error) {
	p := plot.New()
	sans := func(style *draw.TextStyle, size vg.Length) {
		style.Font.Variant, style.Font.Size, style.Color = font.Variant("Sans"), size, t.text
	}
	p.BackgroundColor = t.back
	p.Title.Text, p.Title.Padding = c.Title, 8
	sans(&p.Title.TextStyle, 13)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		sans(&axis.Label.TextStyle, 11)
		sans(&axis.Tick.Label, 10)
		axis.Color, axis.Tick.Color = t.text, t.text
	}
	p.X.Label.Text, p.Y.Label.Text = c.X, c.Y
	sans(&p.Legend.TextStyle, 10)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs = true, true, 10, -4
	p.Legend.Padding = 2
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = t.grid, t.grid
	p.Add(grid)
	for i, s := range c.Series {
		points := make(plotter.XYs, len(s.Points))
		for j, point := range s.Points {
			points[j] = plotter.XY{X: point.X, Y: point.Y}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, fmt.Errorf("series %s: %w", s.Label, err)
		}
		line.Width, line.Color = 1.6, t.lines[i%len(t.lines)]
		dots.Color, dots.Shape, dots.Radius = line.Color, draw.CircleGlyph{}, 2.4
		if s.Dashed {
			line.Dashes = []vg.Length{5, 4}
			p.Add(line)
			p.Legend.Add(s.Label, line)
			continue
		}
		p.Add(line, dots)
		p.Legend.Add(s.Label, line, dots)
	}
	// The axes start at 0 and leave room for the legend.
	p.X.Min, p.Y.Min = 0, 0
	p.Y.Max *= 1.25
	return p, nil
}
