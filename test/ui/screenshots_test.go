// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	gocmp "github.com/google/go-cmp/cmp"
)

const (
	// images is the folder of the screenshots.
	images = "../../docs/images"
	// elements lists what the screenshots show.
	elements = "testdata/screenshot.txt"
	// maxBytes is the maximum size of a screenshot.
	maxBytes = 150_000
)

// TestScreenshots checks that the screenshots in the documents show the elements that the page has now. With
// UPDATE_SCREENSHOTS=1 it takes them.
func TestScreenshots(t *testing.T) {
	_, p := show(t, sample(), "?pod=games/game-server-7")
	equal(p, shown, 41)
	p.await("document.querySelector('.timeline .line')")
	p.size(1280, 860)
	var lines []string
	for _, node := range p.tree() {
		// The times differ in each run.
		if node.role != "graphics-symbol" && !strings.HasPrefix(node.name, "game-server#idle from ") {
			lines = append(lines, strings.TrimSpace(node.role+" "+node.name))
		}
	}
	shows := strings.Join(lines, "\n") + "\n"
	update := os.Getenv("UPDATE_SCREENSHOTS") != ""
	for _, theme := range []string{"light", "dark"} {
		path := filepath.Join(images, "ui-"+theme+".png")
		if update {
			p.prefer(theme)
			if err := os.WriteFile(path, reduce(t, get(p, chromedp.CaptureScreenshot())), 0o644); err != nil { //nolint:gosec // documents are readable
				t.Fatal(err)
			}
		}
		checkImage(t, path)
	}
	if update {
		if err := os.WriteFile(elements, []byte(shows), 0o644); err != nil { //nolint:gosec // documents are readable
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(elements)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), shows); diff != "" {
		t.Errorf("the screenshots are not current: run UPDATE_SCREENSHOTS=1 make test-ui (-screenshot +page):\n%s", diff)
	}
}

func checkImage(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > maxBytes || config.Width != 1280 || config.Height != 860 {
		t.Errorf("%s has %d bytes and %dx%d pixels, want at most %d bytes and 1280x860 pixels", path, len(data), config.Width, config.Height, maxBytes)
	}
}

// reduce returns the image with the 256 most frequent colors: the others are shades at the edges of letters.
func reduce(t *testing.T, data []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	bounds := full.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		c, _ := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
		return c
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(key(a), key(b)))
	})
	palette := color.Palette{}
	for _, c := range frequent[:min(256, len(frequent))] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8, len(count))
	for c := range count {
		nearest[c] = uint8(palette.Index(c)) //nolint:gosec // at most 256 colors
	}
	reduced := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			reduced.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, reduced); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func key(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
