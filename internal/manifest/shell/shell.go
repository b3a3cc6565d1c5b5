// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shell knows what needs a shell: it splits a command line into a program and its
// arguments if no shell is needed, and finds commands that are meant for a shell but do not get
// one.
package shell

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// MaxScript is the longest script that is parsed, in bytes. A marker cannot have a longer one.
	MaxScript = 16384
	// maxParentheses bounds how deep the parser recurses, and so its time.
	maxParentheses = 1000
)

// Split returns the program and the arguments of a command line. It reports false if the line needs
// a shell, such as for a variable, a pipe or a second command, or if it is empty or invalid.
func Split(line string) ([]string, bool) {
	file, err := parse(line)
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	statement := file.Stmts[0]
	call, isCall := statement.Cmd.(*syntax.CallExpr)
	if !isCall || len(call.Args) == 0 || len(call.Assigns) > 0 || len(statement.Redirs) > 0 ||
		statement.Negated || statement.Background || statement.Coprocess || len(file.Last) > 0 {
		return nil, false
	}
	words := make([]string, 0, len(call.Args))
	for _, arg := range call.Args {
		word, literal := literalOf(arg)
		if !literal {
			return nil, false
		}
		words = append(words, word)
	}
	if IsBuiltin(words[0]) {
		return nil, false
	}
	return words, true
}

// literalOf returns the text of a word, or false if a shell would expand it.
func literalOf(word *syntax.Word) (string, bool) {
	var text strings.Builder
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, `\*?[~{`) {
				return "", false
			}
			text.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || p.Dollar || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				text.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return text.String(), true
}

// Check returns why a script is not valid for a shell, or nil. It accepts what bash accepts, so that
// it finds mistakes, not differences between shells. It does not parse scripts that are longer than
// MaxScript or have more than 1,000 opening parentheses.
func Check(script string) error {
	if !parses(script) {
		return nil
	}
	_, err := parse(script)
	var wrong syntax.ParseError
	if errors.As(err, &wrong) {
		return fmt.Errorf("line %d, column %d: %s", wrong.Pos.Line(), wrong.Pos.Col(), wrong.Text)
	}
	return err
}

func parses(script string) bool {
	return len(script) <= MaxScript && strings.Count(script, "(") <= maxParentheses
}

func parse(script string) (*syntax.File, error) {
	if !parses(script) {
		return nil, errors.New("too long")
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
}

// Script is the script of a command that runs a shell, such as [sh, -c, SCRIPT].
type Script struct {
	// Index is the index of the script in the command. It is the length of the command if the
	// script is missing.
	Index int
	// Text is the script, and Args are the parameters after it, the first of which is $0.
	Text string
	Args []string
}

// ScriptOf returns the script of a command. It reports false if the command does not run a shell
// with -c.
func ScriptOf(command []string) (Script, bool) {
	start := 1
	if len(command) > 1 && path.Base(command[0]) == "busybox" {
		command, start = command[1:], 2
	}
	if len(command) == 0 || !slices.Contains([]string{"sh", "bash", "ash", "dash", "ksh"}, path.Base(command[0])) {
		return Script{}, false
	}
	named := false
	for i, arg := range command[1:] {
		switch {
		case (strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "+")) && len(arg) > 1:
			if !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c") {
				named = true
			}
		case strings.HasPrefix(command[i], "-") && strings.HasSuffix(command[i], "o"):
			// The name of an option, as in -o pipefail.
		case !named:
			return Script{}, false
		default:
			return Script{Index: start + i, Text: arg, Args: command[i+2:]}, true
		}
	}
	return Script{Index: start + len(command) - 1}, named
}

// IsBuiltin reports whether the word is a command or keyword of shells for which systems have no
// program.
func IsBuiltin(word string) bool {
	return slices.Contains([]string{
		".", ":", "[[", "{", "alias", "break", "case", "cd", "continue", "declare", "eval", "exec", "exit", "export", "for",
		"if", "let", "local", "read", "readonly", "return", "set", "shift", "source", "trap", "type", "typeset", "ulimit",
		"umask", "unalias", "unset", "until", "wait", "while",
	}, word)
}

// Operator returns the first argument that only a shell would interpret: an operator such as | or
// &&, or a variable. It returns false if there is none.
func Operator(args []string) (index int, found bool) {
	operators := []string{"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "1>&2", ">/dev/null", "2>/dev/null"}
	index = slices.IndexFunc(args, func(arg string) bool { return slices.Contains(operators, arg) || isVariable(arg) })
	return index, index >= 0
}

// isVariable reports whether the word is the value of a variable, as $NAME, ${NAME} or $(NAME).
// Kubernetes expands the last form in the commands of containers, but not in those of probes.
func isVariable(word string) bool {
	name, found := strings.CutPrefix(word, "$")
	if !found {
		return false
	}
	for _, quotes := range []string{"{}", "()"} {
		if len(name) > 2 && name[0] == quotes[0] && name[len(name)-1] == quotes[1] {
			name = name[1 : len(name)-1]
			break
		}
	}
	return syntax.ValidName(name)
}
