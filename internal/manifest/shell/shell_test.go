// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/manifest/shell"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestSplit(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		want []string
	}{
		"words":               {"cat /tmp/job", []string{"cat", "/tmp/job"}},
		"quotes":              {`grep "a b" 'c d'e`, []string{"grep", "a b", "c de"}},
		"option":              {"pg_isready -h localhost --port=5432", []string{"pg_isready", "-h", "localhost", "--port=5432"}},
		"empty":               {"", nil},
		"comment":             {"# nothing", nil},
		"variable":            {"cat $HOME/job", nil},
		"quoted variable":     {`cat "$HOME/job"`, nil},
		"pattern":             {"cat /tmp/*", nil},
		"home":                {"cat ~/job", nil},
		"pipe":                {"ps | grep x", nil},
		"two commands":        {"cat a; cat b", nil},
		"redirection":         {"cat a >/dev/null", nil},
		"assignment":          {"A=1 env", nil},
		"negation":            {"! cat a", nil},
		"background":          {"cat a &", nil},
		"substitution":        {"cat $(which x)", nil},
		"escape":              {`cat a\ b`, nil},
		"builtin":             {"cd /tmp", nil},
		"unfinished":          {"cat 'a", nil},
		"longer than allowed": {"cat " + strings.Repeat("x", shell.MaxScript), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := shell.Split(test.line)
			if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != nil) {
				t.Errorf("%v, words (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"valid":         {`[ ! -e "$DIR/closed" ]`, ""},
		"bash":          {`[[ a == b ]]`, ""},
		"missing fi":    {"if true; then\n  echo x\n", "line 1, column 1: `if` statement must end with `fi`"},
		"open quote":    {`echo "x`, "line 1, column 6: reached EOF without closing quote `\"`"},
		"too long":      {strings.Repeat("(", shell.MaxScript+1), ""},
		"deeply nested": {strings.Repeat("(", 1001), ""},
		"nested":        {strings.Repeat("(", 1000), "line 1, column 1000: `(` must be followed by an expression"},
		"line 2":        {"echo x\nfi", "line 2, column 1: `fi` can only be used to end an `if`"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := shell.Check(test.script); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestScriptOf(t *testing.T) {
	for name, test := range map[string]struct {
		command []string
		want    *shell.Script
	}{
		"sh":             {[]string{"sh", "-c", "x"}, &shell.Script{Index: 2, Text: "x", Args: []string{}}},
		"with path":      {[]string{"/bin/bash", "-ec", "x", "y"}, &shell.Script{Index: 2, Text: "x", Args: []string{"y"}}},
		"pipefail":       {[]string{"bash", "-euo", "pipefail", "-c", "x"}, &shell.Script{Index: 4, Text: "x", Args: []string{}}},
		"busybox":        {[]string{"busybox", "sh", "-c", "x"}, &shell.Script{Index: 3, Text: "x", Args: []string{}}},
		"missing script": {[]string{"sh", "-c"}, &shell.Script{Index: 2}},
		"script file":    {[]string{"sh", "/x.sh", "-c"}, nil},
		"long option":    {[]string{"bash", "--norc", "-c", "x"}, &shell.Script{Index: 3, Text: "x", Args: []string{}}},
		"other program":  {[]string{"cat", "-c", "x"}, nil},
		"busybox only":   {[]string{"busybox"}, nil},
		"empty":          {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := shell.ScriptOf(test.command)
			if ok != (test.want != nil) {
				t.Fatalf("got %v, %v", got, ok)
			}
			if ok {
				expect.Equal(t, "script", *test.want, got)
			}
		})
	}
}

func TestOperator(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want int
	}{
		"none":         {[]string{"-v", "/tmp/x"}, -1},
		"pipe":         {[]string{"x", "|", "grep"}, 1},
		"variable":     {[]string{"$HOME"}, 0},
		"braces":       {[]string{"${HOME}"}, 0},
		"Kubernetes":   {[]string{"a", "$(POD_NAME)"}, 1},
		"awk":          {[]string{"{print $1}"}, -1},
		"price":        {[]string{"$5", "$", "$()"}, -1},
		"quoted pipe":  {[]string{"a|b"}, -1},
		"substitution": {[]string{"$(cat x)"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, found := shell.Operator(test.args); got != test.want || found != (test.want >= 0) {
				t.Errorf("got %d, %v, want %d", got, found, test.want)
			}
		})
	}
}

func TestDoubt(t *testing.T) {
	script := func(text string) []string { return []string{"sh", "-c", text} }
	for name, test := range map[string]struct {
		command []string
		want    string
	}{
		"pipeline": {
			script("redis-cli role | grep -q master"),
			`"redis-cli role | grep -q master" ends with the exit code of its last program, also if the others fail or are missing`,
		},
		"pipeline of standard programs": {
			script("cat /x | grep -q a"), `"cat /x | grep -q a" ends with the exit code of its last program, also if the others fail or are missing`,
		},
		"pipeline in a variable": {
			script(`test "$(ps | wc -l)" -gt 3`), `"ps | wc -l" ends with the exit code of its last program, also if the others fail or are missing`,
		},
		"program": {script("redis-cli role"), `the shell ends with the exit code 127 if "redis-cli" is missing`},
		"program after a check": {
			[]string{"/bin/bash", "-ec", "test -e /x && exec /app/check"}, `the shell ends with the exit code 127 if "/app/check" is missing`,
		},
		"program in a condition": {
			script("if psql -c 'select 1'; then exit 0; fi; exit 1"), `the shell ends with the exit code 127 if "psql" is missing`,
		},
		"program that starts another": {[]string{"timeout", "2", "redis-cli"}, `"timeout" ends with a failure if the program that it starts is missing`},
		"no shell":                    {[]string{"redis-cli", "role"}, ""},
		"builtins":                    {script(`[ ! -e "$DIR/x" ] && read -r a </x && echo "$a"`), ""},
		"standard programs":           {script("/bin/cat /x; grep -q a /y"), ""},
		"function":                    {script("check() { test -e /x; }; check"), ""},
		"script in a file":            {script(`exec sh "$DIR/idle.sh"`), ""},
		"variable":                    {script(`"$PROGRAM" role`), ""},
		"search of a program":         {script("command -v redis-cli"), ""},
		"invalid script":              {script("if | a"), ""},
		"nothing":                     {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "Doubt", test.want, shell.Doubt(test.command))
		})
	}
}
