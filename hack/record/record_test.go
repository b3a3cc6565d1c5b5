// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/hack/record/internal/cast"
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

func TestRecordAndDraw(t *testing.T) {
	folder := t.TempDir()
	recording, image := filepath.Join(folder, "new", "a.cast"), filepath.Join(folder, "images", "a.svg")
	arguments := []string{"--recording", recording, "--image", image, "--title", "A title", "--description", "What it shows", "--columns", "20", "--rows", "3"}
	command := []string{"--", "sh", "-c", `stty size; printf '\033[31mred\n'`}
	if err := run(t.Context(), append(arguments, command...)); err != nil {
		t.Fatal(err)
	}
	// Without a command, the recording is drawn again.
	first := read(t, image)
	if err := run(t.Context(), arguments); err != nil {
		t.Fatal(err)
	}
	if second := read(t, image); second != first {
		t.Errorf("the recording is drawn as\n%s\nand as\n%s", first, second)
	}
	for _, want := range []string{">3 20</text>", `class="c1">red</text>`, ">A title</title>", ">What it shows</desc>"} {
		if !strings.Contains(first, want) {
			t.Errorf("image without %q:\n%s", want, first)
		}
	}
}

func TestPlayReportsFailures(t *testing.T) {
	header := cast.Header{Version: 2, Width: 80, Height: 24}
	if _, err := play(t.Context(), []string{"sh", "-c", "exit 3"}, header); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want one with the exit status", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := play(ended, []string{"sleep", "60"}, header); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
