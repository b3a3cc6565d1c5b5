// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/internal/manifest/shell"
)

// checkCommand checks the command of an exec probe, which runs without a shell.
func (c *checker) checkCommand(o *object, field string, command []string) {
	if len(command) == 0 {
		return
	}
	program, item := command[0], func(i int) string { return fmt.Sprintf("%s[%d]", field, i) }
	switch {
	case strings.ContainsAny(program, " \t\n"):
		c.add(ruleShellLine, o, item(0), fmt.Sprintf("%q is the name of one program: an exec probe does not split its command", program),
			"use "+flow(splitOrShell(strings.Join(command, " "))))
		return
	case shell.IsBuiltin(program):
		c.add(ruleShellBuiltin, o, item(0), fmt.Sprintf("%q exists only inside shells, and an exec probe runs without a shell", program),
			"use "+flow([]string{"sh", "-c", strings.Join(command, " ")}))
		return
	}
	if script, isShell := shell.ScriptOf(command); isShell {
		c.checkScript(o, field, command, script)
	} else if i, found := shell.Operator(command[1:]); found {
		c.add(ruleShellSyntax, o, item(i+1), fmt.Sprintf("%q is an argument of %q: an exec probe runs without a shell", command[i+1], program),
			"use "+flow([]string{"sh", "-c", strings.Join(command, " ")}))
	}
	if !path.IsAbs(program) {
		where := "is searched in the PATH of the container"
		if strings.Contains(program, "/") {
			where = "is relative to the working directory of the container"
		}
		c.add(ruleNoPath, o, item(0), fmt.Sprintf("%q %s", program, where), "use the absolute path of the program")
	}
}

func (c *checker) checkScript(o *object, field string, command []string, script shell.Script) {
	item := fmt.Sprintf("%s[%d]", field, script.Index)
	if script.Index >= len(command) {
		c.add(ruleShellScript, o, field, "the script after -c is missing", "")
		return
	}
	if err := shell.Check(script.Text); err != nil {
		c.add(ruleShellScript, o, item, "the script has a syntax error: "+err.Error(), "")
		return
	}
	if len(script.Args) > 0 && !strings.ContainsAny(script.Text, " \t\n$;|&<>") {
		c.add(ruleShellArguments, o, fmt.Sprintf("%s[%d]", field, script.Index+1),
			fmt.Sprintf("the script is only %q: what follows is not a part of it", script.Text),
			"use one item for the script: "+flow(append(slices.Clone(command[:script.Index]), strings.Join(command[script.Index:], " "))))
	}
}

// splitOrShell returns a command that runs the line, with a shell if the line needs one.
func splitOrShell(line string) []string {
	if words, ok := shell.Split(line); ok {
		return words
	}
	return []string{"sh", "-c", line}
}

// flow returns the command as a list on one line, which is valid YAML.
func flow(command []string) string {
	items := make([]string, len(command))
	for i, word := range command {
		// A string always encodes.
		encoded, _ := json.Marshal(word)
		items[i] = string(encoded)
	}
	return "[" + strings.Join(items, ", ") + "]"
}
