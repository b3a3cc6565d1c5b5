// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
)

const (
	readmeZh = "README.zh.md"
	docsZh   = "docs/zh/"
	indexZh  = docsZh + "README.md"
)

// translated reports whether a page is a translation.
func translated(path string) bool {
	return path == readmeZh || strings.HasPrefix(path, docsZh)
}

// originalOf returns the English page that a page translates.
func originalOf(path string) string {
	if path == readmeZh {
		return "README.md"
	}
	return "docs/" + strings.TrimPrefix(path, docsZh)
}

// translations returns the translation of each page that has one.
func translations(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, path := range pages(t) {
		if translated(path) {
			out[originalOf(path)] = path
		}
	}
	return out
}

// shape is what a translation has in common with its original.
type shape struct {
	// Needs is what the commands need.
	Needs string
	// Levels holds the level of each heading.
	Levels []int
	// Blocks holds the language and contents of each code block, without comments.
	Blocks []string
	// Rows is the number of table rows.
	Rows int
	// Targets holds the link targets, sorted.
	Targets []string
}

func shapeOf(t *testing.T, path string) shape {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, path))
	must(t, err)
	d, err := parseDocument(path, source)
	must(t, err)
	s := shape{Needs: d.needs, Targets: targetsOf(t, path, source)}
	for _, h := range headings(source) {
		s.Levels = append(s.Levels, h.level)
	}
	_ = ast.Walk(markdown(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block, is := n.(*ast.FencedCodeBlock); is && entering {
			s.Blocks = append(s.Blocks, string(block.Language(source))+"\n"+withoutComments(string(block.Lines().Value(source))))
		}
		if n.Kind().String() == "TableRow" && entering {
			s.Rows++
		}
		return ast.WalkContinue, nil
	})
	return s
}

// targetsOf returns the targets of a page's links. A translated page counts as its original, and
// its anchors, which differ between the languages, are left out.
func targetsOf(t *testing.T, path string, source []byte) []string {
	t.Helper()
	var out []string
	pairs := translations(t)
	for _, link := range linksOf(source) {
		target, err := url.Parse(link)
		must(t, err)
		if target.Scheme == "" {
			page := path
			if target.Path != "" {
				page = filepath.Join(filepath.Dir(path), filepath.FromSlash(target.Path))
			}
			if translated(page) {
				page = originalOf(page)
			}
			target.Path = page
			if _, has := pairs[page]; has {
				target.Fragment = ""
			}
		}
		out = append(out, target.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// originals returns the pages that must have a translation.
func originals() []string {
	return []string{
		"README.md", "docs/README.md", "docs/first-marker.md", "docs/install.md",
		"docs/migrate-from-openkruise.md", "docs/troubleshooting.md",
		"docs/cloneset.md", "docs/statefulset.md", "docs/sidecarset.md", "docs/advancedcronjob.md", "docs/daemonset.md", "docs/broadcastjob.md", "docs/imagepulljob.md",
		"docs/cli.md", "docs/ui.md", "docs/local.md", "docs/write-markers.md",
		"docs/concepts.md", "docs/judging.md", "docs/configuration.md", "docs/security.md",
	}
}

func TestMainPagesAreTranslated(t *testing.T) {
	pairs := translations(t)
	for _, original := range originals() {
		if _, has := pairs[original]; !has {
			t.Errorf("%s has no translation", original)
		}
	}
}

// TestTranslations checks that each Chinese page has the same headings, code blocks and table
// rows as its English original, in the same order, and the same link targets, and that both link
// to each other.
func TestTranslations(t *testing.T) {
	for _, path := range pages(t) {
		if !translated(path) || path == indexZh {
			continue
		}
		t.Run(path, func(t *testing.T) {
			original := originalOf(path)
			if diff := cmp.Diff(shapeOf(t, original), shapeOf(t, path)); diff != "" {
				t.Errorf("%s differs from %s (-en +zh):\n%s", path, original, diff)
			}
			linked(t, original, path)
			linked(t, path, original)
		})
	}
}

// TestTranslationsLinkToTranslations checks that a Chinese page links to an English page only if this
// has no translation, or is its own original. The Chinese index lists fewer pages than the English one.
func TestTranslationsLinkToTranslations(t *testing.T) {
	pairs := translations(t)
	for original, page := range pairs {
		source, err := os.ReadFile(filepath.Join(root, page))
		must(t, err)
		for _, link := range linksOf(source) {
			target, err := url.Parse(link)
			must(t, err)
			path := filepath.Join(filepath.Dir(page), filepath.FromSlash(target.Path))
			if want, has := pairs[path]; target.Scheme == "" && target.Path != "" && has && path != original && want != indexZh {
				t.Errorf("%s links to %s, want %s", page, link, want)
			}
		}
	}
}

// linked checks that a page links to its other language before the first section.
func linked(t *testing.T, page, other string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	head, _, _ := strings.Cut(string(source), "\n## ")
	want, err := filepath.Rel(filepath.Dir(page), other)
	must(t, err)
	if !slices.Contains(linksOf([]byte(head)), want) {
		t.Errorf("%s does not link to %s at its top", page, want)
	}
}

// codeComment matches the comments in code, which are translated.
var codeComment = regexp.MustCompile(`(?m)\s+# .*$`)

func withoutComments(code string) string { return codeComment.ReplaceAllString(code, "") }
