// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// letters matches the characters of names that Kubernetes generates.
const letters = `[bcdfghjklmnpqrstvwxz2456789]`

// forms are patterns of values that differ between runs. A value in the expected text that
// matches a form matches any value of the first such form in the output.
var forms = []string{
	`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`,                      // UUIDs
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?`, // times
	`\d\d:\d\d:\d\d(?:\.\d+)?`,
	`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`,                         // IPv4 addresses
	`-` + letters + `{6,10}-` + letters + `{5}\b`,                // pods of a Deployment
	`-` + letters + `{5}\b`,                                      // pods of a DaemonSet or Job
	`\b\d+(?:\.\d+)?(?:ms|s|m|h|d)(?:\d+(?:\.\d+)?(?:s|m|h))*\b`, // durations
	`-?\b\d+(?:\.\d+)?(?:ms|µs)\b`,
}

var (
	anyForm = regexp.MustCompile(strings.Join(forms, "|") + `|\.\.\.|[ \t]+`)
	single  = compileForms()
)

func compileForms() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, form := range forms {
		out = append(out, regexp.MustCompile(`^(?:`+form+`)$`))
	}
	return out
}

// matches returns an error if the output is not what the document shows.
func matches(expected []string, output string) error {
	if len(expected) == 0 {
		return nil
	}
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range expected {
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		pattern.WriteString(linePattern(strings.TrimSpace(line)) + `[ \t]*\n`)
	}
	pattern.WriteString(`\n*\z`)
	re, err := regexp.Compile(pattern.String())
	if err != nil {
		return fmt.Errorf("compile the expected output: %w", err)
	}
	if !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	output = strings.ReplaceAll(output, "\r", "")
	if !re.MatchString(output) {
		return fmt.Errorf("the output is not what the document shows:\n%s", strings.Join(expected, "\n"))
	}
	return nil
}

// linePattern returns the pattern for one line of expected output.
func linePattern(line string) string {
	var out strings.Builder
	out.WriteString(`[ \t]*`)
	for line != "" {
		at := anyForm.FindStringIndex(line)
		if at == nil {
			out.WriteString(regexp.QuoteMeta(line))
			break
		}
		out.WriteString(regexp.QuoteMeta(line[:at[0]]))
		out.WriteString(formOf(line[at[0]:at[1]]))
		line = line[at[1]:]
	}
	return out.String()
}

func formOf(text string) string {
	switch {
	case text == "...":
		return `[^\n]*?`
	case strings.TrimSpace(text) == "":
		return `[ \t]+`
	}
	for i, form := range single {
		if form.MatchString(text) {
			return `(?:` + forms[i] + `)`
		}
	}
	return regexp.QuoteMeta(text)
}
