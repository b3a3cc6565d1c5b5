// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// demoImage is the image that `make demo-record` writes.
const demoImage = "../../docs/images/demo.svg"

func TestDemoImage(t *testing.T) {
	content, err := os.ReadFile(demoImage)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > maxImage {
		t.Errorf("the image has %d bytes, want at most %d", len(content), maxImage)
	}
	found := map[string]int{}
	for decoder := xml.NewDecoder(bytes.NewReader(content)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the image is not well-formed: %v", err)
		}
		if element, isStart := token.(xml.StartElement); isStart {
			found[element.Name.Local]++
			checkAttributes(t, element)
		}
	}
	for element := range found {
		if !strings.Contains(" svg title desc style rect g text ", " "+element+" ") {
			t.Errorf("the image has an element %s", element)
		}
	}
	if found["title"] != 1 || found["desc"] != 1 {
		t.Errorf("the image has %d titles and %d descriptions, want one of each", found["title"], found["desc"])
	}
	checkText(t, string(content))
}

// checkAttributes reports event handlers and references.
func checkAttributes(t *testing.T, element xml.StartElement) {
	for _, a := range element.Attr {
		if name := a.Name.Local; strings.HasPrefix(name, "on") || name == "href" {
			t.Errorf("element %s has the attribute %s", element.Name.Local, name)
		}
	}
}

// checkText reports what depends on the machine of the recording, or what an image in a page must not load.
func checkText(t *testing.T, content string) {
	if !strings.Contains(content, "prefers-reduced-motion") {
		t.Error("the image moves for readers who prefer reduced motion")
	}
	// The address of the SVG namespace is not loaded.
	rest := strings.Replace(content, `xmlns="http://www.w3.org/2000/svg"`, "", 1)
	if found := regexp.MustCompile(`(?i)https?:|url\(|@import|@font-face|/(home|root|tmp|var|work|Users)/`).FindString(rest); found != "" {
		t.Errorf("the image contains %q", found)
	}
	if host, err := os.Hostname(); err == nil && len(host) > 3 && strings.Contains(content, host) {
		t.Errorf("the image contains the host name %q", host)
	}
}

func TestRecord(t *testing.T) {
	folder := t.TempDir()
	recording, image := filepath.Join(folder, "a.cast"), filepath.Join(folder, "a.svg")
	err := run(t.Context(), []string{
		"--recording", recording, "--image", image, "--title", "A & B", "--description", "What it shows", "--columns", "20", "--rows", "3",
		"--", "sh", "-c", `stty size; printf '\033[?25l\033[31mred  <\033[0;1m→\n'`,
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, wanted := range map[string][]string{
		recording: {`{"height":3,"idle_time_limit":2,"title":"A & B","version":2,"width":20}` + "\n" + `[0,"o","3 20\r\n`, `<\u001b[0;1m→\r\n"]`},
		image: {
			`<title id="t">A &amp; B</title>`, ">What it shows</desc>", `<text x="16" y="30" textLength="33.6">3 20</text>`,
			`<text x="16" y="49" textLength="50.4" class="c1">red  &lt;</text><text x="66.4" y="49" textLength="8.4" class="b">→</text>`,
		},
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wanted {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s without %q:\n%s", file, want, content)
			}
		}
	}
}

func TestPlayReportsFailures(t *testing.T) {
	size := image{columns: 80, rows: 24}
	if _, _, err := play(t.Context(), []string{"sh", "-c", "exit 3"}, size); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want one with the exit status", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := play(ended, []string{"sleep", "60"}, size); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestWhole(t *testing.T) {
	const text = "aé→😀b"
	for end := range len(text) + 1 {
		want := end
		for !utf8.ValidString(text[:want]) {
			want--
		}
		if got := whole([]byte(text[:end])); got != want {
			t.Errorf("of %d bytes, %d are whole characters, want %d", end, got, want)
		}
	}
}

// parseFrames returns frames with one character per row, from texts such as "100 ab".
func parseFrames(t *testing.T, texts ...string) []frame {
	t.Helper()
	var frames []frame
	for _, text := range texts {
		var at time.Duration
		var rows string
		if _, err := fmt.Sscan(text, &at, &rows); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame{at * time.Millisecond, strings.Split(rows, "")})
	}
	return frames
}

func TestThin(t *testing.T) {
	for name, test := range map[string]struct{ frames, want []string }{
		"nothing":                   {nil, nil},
		"a change":                  {[]string{"0 a", "1000 b"}, []string{"0 a", "1000 b"}},
		"the same is removed":       {[]string{"0 a", "1000 a"}, []string{"0 a"}},
		"short times are removed":   {[]string{"0 a", "10 b", "20 c", "1000 d"}, []string{"0 a", "20 c", "1000 d"}},
		"a steady output has steps": {[]string{"0 a", "60 b", "120 c", "180 d"}, []string{"0 a", "120 c", "180 d"}},
		"waits are shortened":       {[]string{"0 a", "60000 b", "61000 c"}, []string{"0 a", "2000 b", "3000 c"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(parseFrames(t, test.want...), thin(parseFrames(t, test.frames...)), cmp.AllowUnexported(frame{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIntervals(t *testing.T) {
	type shown = map[interval][]string
	for name, test := range map[string]struct {
		frames []frame
		want   shown
	}{
		"no frames":               {nil, shown{}},
		"a row that stays":        {[]frame{{0, []string{"a"}}, {1, []string{"a"}}}, shown{{0, 9}: {"a"}}},
		"a row that changes":      {[]frame{{0, []string{"a"}}, {2, []string{"b"}}}, shown{{0, 2}: {"a"}, {2, 9}: {"b"}}},
		"a row that is erased":    {[]frame{{0, []string{"a"}}, {2, []string{""}}}, shown{{0, 2}: {"a"}}},
		"a row that comes back":   {[]frame{{0, []string{"a"}}, {2, []string{""}}, {3, []string{"a"}}}, shown{{0, 2}: {"a"}, {3, 9}: {"a"}}},
		"a row that begins later": {[]frame{{0, []string{"a", ""}}, {2, []string{"a", "c"}}}, shown{{0, 9}: {"a"}, {2, 9}: {"c"}}},
		"rows of the same time":   {[]frame{{1, []string{"a", "c"}}, {2, []string{"b", "d"}}}, shown{{1, 2}: {"a", "c"}, {2, 9}: {"b", "d"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, intervals(test.frames, 9)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderShowsTheLastFrameWithoutAnimation(t *testing.T) {
	got := string(image{columns: 10, rows: 2}.render([]frame{{0, []string{"first", "both"}}, {2 * time.Second, []string{"last", "both"}}}))
	for _, want := range []string{
		"animation:8s step-end infinite", `<g class="f k0">first</g>`, `<g class="f z k1">both</g>`, `<g class="f z k2">last</g>`,
		"@keyframes k0{0%{visibility:visible}25%,to{visibility:hidden}}", "@keyframes k1{0%{visibility:visible}to{visibility:visible}}",
		"@keyframes k2{0%{visibility:hidden}25%{visibility:visible}to{visibility:visible}}",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("image without %s:\n%s", want, got)
		}
	}
}
