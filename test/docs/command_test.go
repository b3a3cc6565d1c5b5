// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is a command of a document and its expected output.
type command struct {
	source string
	// line is the line of the document on which the command begins.
	line int
	// output holds the expected lines. If it is empty, the output is not compared.
	output []string
	// statements is the number of shell statements. calls holds the literal words of each
	// program call.
	statements int
	calls      [][]string
}

// splitCommands splits a block into commands, which follow the prompt, and their output.
// If prompt is empty, all lines are commands.
func splitCommands(block string, firstLine int, prompt string) ([]command, error) {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	var out []command
	for i := 0; i < len(lines); {
		source, is := strings.CutPrefix(lines[i], prompt)
		switch {
		case !is && len(out) == 0:
			return nil, fmt.Errorf("the block begins with %q, not with a command: add the prompt %q", lines[i], prompt)
		case !is:
			last := &out[len(out)-1]
			last.output = append(last.output, lines[i])
			i++
			continue
		case strings.TrimSpace(source) == "":
			i++
			continue
		}
		from := i
		i++
		for ; incomplete(source) && i < len(lines); i++ {
			source += "\n" + lines[i]
		}
		c, err := parseCommand(source)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", firstLine+from, err)
		}
		c.line = firstLine + from
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the block has no command")
	}
	for i := range out {
		for n := len(out[i].output); n > 0 && strings.TrimSpace(out[i].output[n-1]) == ""; n-- {
			out[i].output = out[i].output[:n-1]
		}
	}
	return out, nil
}

// incomplete reports whether the shell would prompt for another line.
func incomplete(source string) bool {
	if trimmed := strings.TrimRight(source, "\\"); (len(source)-len(trimmed))%2 == 1 {
		return true
	}
	_, err := syntax.NewParser().Parse(strings.NewReader(source+"\n"), "")
	return syntax.IsIncomplete(err) || err != nil && strings.Contains(err.Error(), "unclosed here-document")
}

func parseCommand(source string) (command, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(source+"\n"), "")
	if err != nil {
		return command{}, fmt.Errorf("parse shell command: %w", err)
	}
	c := command{source: source, statements: len(file.Stmts)}
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, is := node.(*syntax.CallExpr); is && len(call.Args) > 0 {
			var words []string
			for _, word := range call.Args {
				words = append(words, word.Lit())
			}
			c.calls = append(c.calls, words)
		}
		return true
	})
	return c, nil
}

// makeTargets returns the make targets of the command, or nil if it also calls a program
// other than make.
func (c command) makeTargets() []string {
	var targets []string
	for _, call := range c.calls {
		if call[0] != "make" {
			return nil
		}
		for _, word := range call[1:] {
			if word != "" && !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") {
				targets = append(targets, word)
			}
		}
	}
	return targets
}

// readOnly reports whether the command changes nothing, so that it can be repeated until its
// output matches. A line with several statements does not count, because only the exit code
// of the last one would be checked.
func (c command) readOnly() bool {
	if c.statements > 1 {
		return false
	}
	reads := 0
	for _, call := range c.calls {
		switch {
		case call[0] == "curl", call[0] == "kubectl" && slices.Contains([]string{"get", "describe", "logs", "events", "top"}, kubectlVerb(call)):
			reads++
		case call[0] == "seamark" && slices.Contains([]string{"get", "explain", "top", "timeline", "check", "test"}, kubectlVerb(call)):
			reads++
		case slices.Contains([]string{"jq", "grep", "sort", "uniq", "head", "tail", "cut", "wc", "awk", "tr", "base64", "column"}, call[0]):
		default:
			return false
		}
	}
	return reads > 0
}

// kubectlVerb returns the first word that is neither a flag nor a flag's value.
func kubectlVerb(call []string) string {
	for i := 1; i < len(call); i++ {
		if slices.Contains([]string{"-n", "--namespace", "--kubeconfig", "--context"}, call[i]) {
			i++
			continue
		}
		if !strings.HasPrefix(call[i], "-") {
			return call[i]
		}
	}
	return ""
}
