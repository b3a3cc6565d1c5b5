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

// split returns the text of the sections by name, or "" for one with only headings and definitions of links. The
// heading of a section is `## [NAME]`, `## NAME`, and both may be followed by a dash and a date.
func split(changelog string) map[string]string {
	heading := regexp.MustCompile(`(?m)^## \[?([^\]\s]+)\]?.*$`)
	content := regexp.MustCompile(`(?m)^[^#\[\s]|^\[[^\]]+\][^:]`)
	found := heading.FindAllStringSubmatchIndex(changelog, -1)
	sections := map[string]string{}
	for i, at := range found {
		end := len(changelog)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		text := changelog[at[1]:end]
		if !content.MatchString(text) {
			text = ""
		}
		sections[changelog[at[2]:at[3]]] = strings.TrimSpace(text)
	}
	return sections
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
