// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is a command of a document, and what it is expected to print.
type command struct {
	source string
	// line of the document on which it begins.
	line int
	// output are the lines below it, none if it is not compared.
	output []string
	// statements are how many commands the shell makes of it, and calls the words of each
	// program that it calls, as far as they are literal.
	statements int
	calls      [][]string
}

// splitCommands reads a block: commands behind the prompt, and their output. Without a
// prompt all lines are commands.
func splitCommands(block string, firstLine int, prompt string) ([]command, error) {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	var out []command
	for i := 0; i < len(lines); {
		source, is := strings.CutPrefix(lines[i], prompt)
		switch {
		case !is && len(out) == 0:
			return nil, fmt.Errorf("the block begins with %q and not with a command: put %q before it", lines[i], prompt)
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
		return nil, fmt.Errorf("a block without a command")
	}
	for i := range out {
		for n := len(out[i].output); n > 0 && strings.TrimSpace(out[i].output[n-1]) == ""; n-- {
			out[i].output = out[i].output[:n-1]
		}
	}
	return out, nil
}

// incomplete says whether the shell would ask for another line.
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
		return command{}, fmt.Errorf("no command of the shell: %w", err)
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

// makeTargets are the targets that the command makes, nil if it calls another program
// than make.
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

// onlyLooks says whether the command changes nothing, so that a reader who does not see
// yet what stands there looks again. Of several commands in one line the last alone would
// be judged, so they don't count.
func (c command) onlyLooks() bool {
	if c.statements > 1 {
		return false
	}
	looks := 0
	for _, call := range c.calls {
		switch {
		case call[0] == "curl", call[0] == "kubectl" && slices.Contains([]string{"get", "describe", "logs", "events", "top"}, kubectlVerb(call)):
			looks++
		case slices.Contains([]string{"jq", "grep", "sort", "uniq", "head", "tail", "cut", "wc", "awk", "tr", "base64", "column"}, call[0]):
		default:
			return false
		}
	}
	return looks > 0
}

// kubectlVerb is the first word that is no flag, nor the value of a flag before it.
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
