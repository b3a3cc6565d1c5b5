// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// TestLinks checks that the file and the heading of every relative link exist.
func TestLinks(t *testing.T) {
	links := 0
	for _, path := range append(pages(t), otherPages()...) {
		source, err := os.ReadFile(filepath.Join(root, path))
		must(t, err)
		for _, link := range linksOf(source) {
			links++
			if err := checkLink(path, link); err != nil {
				t.Errorf("%s: link %s: %v", path, link, err)
			}
		}
	}
	if links == 0 {
		t.Fatal("no links found")
	}
}

// otherPages returns pages whose commands are not run.
func otherPages() []string { return []string{"hack/cluster/README.md", "charts/seamark/README.md"} }

// TestEveryPageIsListed checks that the README of each folder below docs links to all its pages.
func TestEveryPageIsListed(t *testing.T) {
	for _, page := range pages(t) {
		list := filepath.Join(filepath.Dir(page), "README.md")
		if !strings.HasPrefix(page, "docs/") || page == list {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, list))
		must(t, err)
		if !slices.Contains(linksOf(source), filepath.Base(page)) {
			t.Errorf("%s does not link to %s", list, page)
		}
	}
}

// TestEveryExampleIsListed checks that the index of the examples links to the README of each folder,
// or to the program of a folder that is no example.
func TestEveryExampleIsListed(t *testing.T) {
	const index = "examples/README.md"
	source, err := os.ReadFile(filepath.Join(root, index))
	must(t, err)
	folder, links := os.DirFS(filepath.Join(root, filepath.Dir(index))), linksOf(source)
	names, err := fs.Glob(folder, "*")
	must(t, err)
	recipes, err := fs.Glob(folder, "recipes/*")
	must(t, err)
	for _, name := range append(names, recipes...) {
		entry, err := fs.Stat(folder, name)
		must(t, err)
		if entry.IsDir() && name != "recipes" && !slices.Contains(links, name+"/README.md") && !slices.Contains(links, name+"/main.go") {
			t.Errorf("%s links neither to %s/README.md nor to %s/main.go", index, name, name)
		}
	}
}

func linksOf(source []byte) []string {
	var out []string
	_ = ast.Walk(markdown(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Link:
				out = append(out, string(n.Destination))
			case *ast.Image:
				out = append(out, string(n.Destination))
			}
		}
		return ast.WalkContinue, nil
	})
	return out
}

// checkLink checks a link of a page. It does not request links to other sites.
func checkLink(page, link string) error {
	target, err := url.Parse(link)
	if err != nil || target.Scheme != "" {
		return err
	}
	path := filepath.Join(root, page)
	if target.Path != "" {
		path = filepath.Join(filepath.Dir(path), filepath.FromSlash(target.Path))
	}
	if within, err := filepath.Rel(root, path); err != nil || strings.HasPrefix(within, "..") {
		return fmt.Errorf("points outside the repository")
	}
	if _, err := os.Stat(path); err != nil || target.Fragment == "" {
		return err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !anchors(source)[target.Fragment] {
		return fmt.Errorf("the page has no heading with the anchor #%s", target.Fragment)
	}
	return nil
}

// named matches explicit anchors.
var named = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)

// anchors returns the anchors of a page, which GitHub generates from its headings.
func anchors(source []byte) map[string]bool {
	out := map[string]bool{}
	for _, heading := range headings(source) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, heading.text)
		unique := slug
		for n := 1; out[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", slug, n)
		}
		out[unique] = true
	}
	for _, match := range named.FindAllSubmatch(source, -1) {
		out[string(match[1])] = true
	}
	return out
}

type heading struct {
	level int
	text  string
}

func headings(source []byte) []heading {
	var out []heading
	_ = ast.Walk(markdown(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, is := n.(*ast.Heading); is && entering {
			out = append(out, heading{level: h.Level, text: plain(h, source)})
		}
		return ast.WalkContinue, nil
	})
	return out
}

// plain returns the text of a node without markup.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if leaf, is := n.(*ast.Text); is && entering {
			out.Write(leaf.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}
