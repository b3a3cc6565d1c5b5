// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxQuoted is the length of the longest part of a script in a message, in bytes.
const maxQuoted = 80

// Doubt returns why a failure of a command may not mean that its check has failed: a shell, or another
// program that starts programs, ends with an exit code of its own if a program is missing, and a
// pipeline hides the exit codes of all programs but the last one. It is empty if there is no reason.
func Doubt(command []string) string {
	if script, isShell := ScriptOf(command); isShell {
		return doubtOfScript(script.Text)
	}
	if len(command) > 1 && slices.Contains([]string{"env", "timeout", "nice", "nohup"}, path.Base(command[0])) {
		return fmt.Sprintf("%q ends with a failure if the program that it starts is missing", command[0])
	}
	return ""
}

// doubtOfScript returns the first pipeline, or the first program that an image with a shell may lack.
func doubtOfScript(script string) string {
	file, err := parse(script)
	if err != nil {
		return ""
	}
	functions := map[string]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		if function, isFunction := node.(*syntax.FuncDecl); isFunction {
			functions[function.Name.Value] = true
		}
		return true
	})
	doubt := ""
	syntax.Walk(file, func(node syntax.Node) bool {
		if doubt != "" {
			return false
		}
		switch n := node.(type) {
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				pipeline := text.Truncate(script[n.Pos().Offset():n.End().Offset()], maxQuoted)
				doubt = fmt.Sprintf("%q ends with the exit code of its last program, also if the others fail or are missing", pipeline)
			}
		case *syntax.CallExpr:
			if program := programOf(n.Args); program != "" && !functions[program] && !isStandard(program) {
				doubt = fmt.Sprintf("the shell ends with the exit code 127 if %q is missing", text.Truncate(program, maxQuoted))
			}
		}
		return true
	})
	return doubt
}

// programOf returns the program that a command starts, or nothing if it is not known or there is none.
func programOf(args []*syntax.Word) string {
	for _, arg := range args {
		word, literal := literalOf(arg)
		switch {
		case !literal || strings.HasPrefix(word, "-"):
			return ""
		case word != "exec" && word != "command" && word != "time":
			return word
		}
	}
	return ""
}

// isStandard reports whether a program is a part of the shell, or of the utilities that come with it.
func isStandard(program string) bool {
	if folder := path.Dir(program); slices.Contains([]string{"/bin", "/usr/bin"}, folder) {
		program = path.Base(program)
	}
	return IsBuiltin(program) || slices.Contains([]string{
		"[", "ash", "awk", "basename", "cat", "cd", "chmod", "cmp", "cp", "cut", "date", "dd", "df", "diff", "dirname", "du", "echo", "env",
		"expr", "false", "find", "grep", "head", "id", "kill", "ln", "ls", "mkdir", "mktemp", "mv", "od", "printf", "ps", "pwd", "readlink",
		"rm", "rmdir", "sed", "sh", "sleep", "sort", "stat", "tail", "tee", "test", "touch", "tr", "true", "tty", "uname", "uniq", "wc", "xargs",
	}, program)
}
