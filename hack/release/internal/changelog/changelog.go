// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changelog cuts the section of one version out of a changelog in the format of keepachangelog.com.
package changelog

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/seamark-dev/seamark/hack/release/internal/version"
)

// unreleased is the heading of the changes since the last release.
const unreleased = "Unreleased"

// Section returns the text of the section of a version, without its heading. If there is no such section, it is the
// section Unreleased, because the tag may precede the change of its heading. An empty section is an error.
//
// Links that are relative in the repository become links to its files at the version.
func Section(changelog string, v version.Version, repository string) (string, error) {
	sections := split(changelog)
	for _, name := range []string{v.Number(), string(v), unreleased} {
		text, found := sections[name]
		if !found {
			continue
		}
		if text == "" {
			return "", fmt.Errorf("the section %s of the changelog is empty: describe the changes of %s", name, v)
		}
		return absolute(text, repository+"/blob/"+string(v)+"/"), nil
	}
	return "", fmt.Errorf("the changelog has neither a section %s nor a section %s", v.Number(), unreleased)
}

// split returns the text of the sections by name. The heading of a section is `## [NAME]`, `## NAME`, and both may be
// followed by a dash and a date.
func split(changelog string) map[string]string {
	heading := regexp.MustCompile(`^## \[?([^\]\s]+)\]?`)
	sections := map[string]string{}
	name := ""
	var text strings.Builder
	end := func() {
		if name != "" {
			sections[name] = strings.TrimSpace(text.String())
		}
		text.Reset()
	}
	for line := range strings.Lines(changelog) {
		if found := heading.FindStringSubmatch(line); found != nil {
			end()
			name = found[1]
			continue
		}
		text.WriteString(line)
	}
	end()
	for name, text := range sections {
		if !hasContent(text) {
			sections[name] = ""
		}
	}
	return sections
}

// hasContent reports whether a section has more than headings and definitions of links.
func hasContent(text string) bool {
	definition := regexp.MustCompile(`^\[[^\]]+\]:`)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !definition.MatchString(line) {
			return true
		}
	}
	return false
}

// absolute adds the base to the targets of relative links.
func absolute(text, base string) string {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	return link.ReplaceAllStringFunc(text, func(found string) string {
		target := link.FindStringSubmatch(found)[1]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "#") || strings.HasPrefix(target, "mailto:") {
			return found
		}
		return "](" + base + target + ")"
	})
}
