// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseDocument(t *testing.T) {
	type seen struct {
		Needs, NotRun            string
		Fails, Interrupt, Hidden bool
		Timeout                  time.Duration
		Commands                 []string
		Output                   [][]string
	}
	const needs = "<!-- needs: local -->\n\n"
	tests := map[string]struct {
		source string
		want   []seen
		err    string
	}{
		"no commands": {source: "# Title\n\nWords, `code`.\n"},
		"commands and output": {
			source: needs + "```console\n$ one\nfirst\n\nsecond\n\n$ two\n```\n",
			want:   []seen{{Commands: []string{"one", "two"}, Output: [][]string{{"first", "", "second"}, nil}}},
		},
		"multi-line commands": {
			source: needs + "```console\n$ a \\\n  b\n$ cat <<EOF\nx\nEOF\n$ for i in 1 2; do\necho $i\ndone\n1\n```\n",
			want: []seen{{
				Commands: []string{"a \\\n  b", "cat <<EOF\nx\nEOF", "for i in 1 2; do\necho $i\ndone"},
				Output:   [][]string{nil, nil, {"1"}},
			}},
		},
		"block in a list": {
			source: needs + "1. Do:\n\n   ```console\n   $ one\n   out\n   ```\n",
			want:   []seen{{Commands: []string{"one"}, Output: [][]string{{"out"}}}},
		},
		"comments": {
			source: needs + "<!-- run:\nhidden\n\nmore\n-->\n\n<!-- timeout: 5m -->\n<!-- not run: no cloud here -->\n```console\n$ a\n```\n\n<!-- fails -->\n\n```console\n$ b\n```\n",
			want: []seen{
				{Hidden: true, Commands: []string{"hidden", "more"}, Output: [][]string{nil, nil}},
				{NotRun: "no cloud here", Timeout: 5 * time.Minute, Commands: []string{"a"}, Output: [][]string{nil}},
				{Fails: true, Timeout: 5 * time.Minute, Commands: []string{"b"}, Output: [][]string{nil}},
			},
		},
		"no needs":                 {source: "```console\n$ a\n```\n", err: "does not declare what its commands need"},
		"unknown needs":            {source: "<!-- needs: luck -->\n", err: `needs: "luck": must be local, cluster, alone, installation or recipe`},
		"unknown comment":          {source: "<!-- skip: it -->\n", err: `unknown comment " skip"`},
		"not run without a reason": {source: "<!-- not run: -->\n", err: "a reason is required"},
		"shell block":              {source: "```bash\nls\n```\n", err: "a block of bash"},
		"unknown language":         {source: "```Bash\nls\n```\n", err: "a block of Bash"},
		"command elsewhere":        {source: "```\n$ ls\n```\n", err: "a command in a block without a language"},
		"root's command elsewhere": {source: "```\n# kubectl get pods\n```\n", err: "a command in a block without a language"},
		"command without prompt":   {source: "```\nsudo ls\n```\n", err: "a command in a block without a language"},
		"command in HTML":          {source: "<pre>\nkubectl get pods\n</pre>\n", err: "HTML is not checked for commands"},
		"block in between":         {source: "<!-- fails -->\n```yaml\na: b\n```\n", err: "no console block follows the comment on line 1"},
		"indented block":           {source: "Words:\n\n    ls\n", err: "x.md:3: an indented code block"},
		"output first":             {source: needs + "```console\nout\n$ a\n```\n", err: "not with a command"},
		"invalid shell syntax":     {source: needs + "```console\n$ )\n```\n", err: "x.md:4: line 4: parse shell command"},
		"comment before text":      {source: "<!-- fails -->\n\nWords.\n", err: "no console block follows the comment on line 1"},
		"comment at the end":       {source: "<!-- fails -->\n", err: "x.md:1: no console block follows"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := parseDocument("x.md", []byte(test.source))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want one with %q", err, test.err)
				}
				return
			}
			must(t, err)
			var got []seen
			for _, st := range d.steps {
				one := seen{NotRun: st.notRun, Fails: st.fails, Interrupt: st.interrupt, Hidden: st.hidden}
				if st.timeout != defaultTimeout {
					one.Timeout = st.timeout
				}
				for _, c := range st.commands {
					one.Commands, one.Output = append(one.Commands, c.source), append(one.Output, c.output)
				}
				got = append(got, one)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadOnlyCommands(t *testing.T) {
	tests := map[string]bool{
		"kubectl get pods":                            true,
		"seamark -n games get":                        true,
		"seamark init --label busy":                   false,
		"kubectl -n x get pods | grep a":              true,
		"kubectl --namespace=x logs deployment/a":     true,
		"pod=$(kubectl get pods -o name | head -1)":   true,
		"kubectl delete pod x":                        false,
		"kubectl get pods -o name | xargs kubectl rm": false,
		"kubectl get pods && kubectl delete pod x":    false,
		"kubectl get pods; kubectl get nodes":         false,
		"echo x":                                      false,
		"curl -s localhost | jq .x":                   true,
	}
	for source, want := range tests {
		c, err := parseCommand(source)
		must(t, err)
		if got := c.readOnly(); got != want {
			t.Errorf("%s: %t, want %t", source, got, want)
		}
	}
}

func TestMakeTargetsOfCommand(t *testing.T) {
	tests := map[string][]string{
		"make run":                             {"run"},
		"make -s cluster-up NODES=2":           {"cluster-up"},
		"make install && make run":             {"install", "run"},
		"make install && kubectl get pods":     nil,
		"kubectl get pods":                     nil,
		"sudo make demo":                       nil,
		"make install; echo $(kubectl get po)": nil,
	}
	for source, want := range tests {
		c, err := parseCommand(source)
		must(t, err)
		if diff := cmp.Diff(want, c.makeTargets()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", source, diff)
		}
	}
}

func TestMatches(t *testing.T) {
	tests := map[string]struct {
		expected, output string
		differs          bool
	}{
		"no expected output":       {output: "anything\n"},
		"equal":                    {expected: "a b", output: "a b\n"},
		"different":                {expected: "a b", output: "a c\n", differs: true},
		"more lines":               {expected: "a", output: "a\nb\n", differs: true},
		"fewer lines":              {expected: "a\nb", output: "a\n", differs: true},
		"blanks":                   {expected: "NAME  AGE", output: "NAME      AGE  \n"},
		"missing blank":            {expected: "a b", output: "ab\n", differs: true},
		"any text":                 {expected: "a ... z", output: "a bcd z\n"},
		"any lines":                {expected: "a\n...\nz", output: "a\nb\nc\nz\n"},
		"no lines":                 {expected: "a\n...\nz", output: "a\nz\n"},
		"any lines, wrong end":     {expected: "a\n...\nz", output: "a\nb\nc\n", differs: true},
		"Deployment's pod":         {expected: "worker-6f7b8d9c5d-4kq2p 1/1", output: "worker-7c9d4bb8f6-xx7zl   1/1\n"},
		"other Deployment's pod":   {expected: "worker-6f7b8d9c5d-4kq2p", output: "server-7c9d4bb8f6-xx7zl\n", differs: true},
		"DaemonSet's pod":          {expected: "agent-4kq2p", output: "agent-xx7zl\n"},
		"durations":                {expected: "Running 0 12s", output: "Running 0 2m3s\n"},
		"number is not a duration": {expected: "Running 0", output: "Running 1\n", differs: true},
		"times":                    {expected: "at 2026-01-02T03:04:05Z", output: "at 2027-11-12T13:14:15.678Z\n"},
		"addresses":                {expected: "10.0.0.1:80", output: "10.232.1.17:80\n"},
		"UUIDs":                    {expected: "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", output: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed\n"},
		"pattern characters":       {expected: "a.b*(c)", output: "a.b*(c)\n"},
		"literal dot":              {expected: "a.b", output: "axb\n", differs: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var expected []string
			if test.expected != "" {
				expected = strings.Split(test.expected, "\n")
			}
			if err := matches(expected, test.output); (err != nil) != test.differs {
				t.Errorf("%v, want a difference: %t", err, test.differs)
			}
		})
	}
}

// TestShell runs documents that must pass and documents that must fail.
func TestShell(t *testing.T) {
	tests := map[string]struct {
		block, before string
		err           string
	}{
		"variables are kept":        {block: "$ a=1\n$ echo $a\n1\n"},
		"output on both streams":    {block: "$ echo out; echo err >&2\nout\nerr\n"},
		"wrong output":              {block: "$ echo a\nb\n", err: "not what the document shows"},
		"failure":                   {block: "$ false\n", err: "exit code 1"},
		"failure within":            {block: "$ false; true\n", err: "exit code 1"},
		"failure in a pipe":         {block: "$ false | true\n", err: "exit code 1"},
		"unset variable":            {block: "$ echo $unset_one\n", err: "unbound variable"},
		"expected failure":          {before: "<!-- fails -->\n", block: "$ false\n"},
		"unexpected success":        {before: "<!-- fails -->\n", block: "$ true\n", err: "want a failure"},
		"in the background":         {block: "$ sleep 1000 &\n$ echo $?\n0\n"},
		"interrupted":               {before: "<!-- interrupt -->\n", block: "$ echo a; sleep 1000\na\n"},
		"output before Ctrl-C":      {before: "<!-- timeout: 300ms -->\n<!-- interrupt -->\n", block: "$ echo b; sleep 1000\na\n", err: "did not print"},
		"timeout":                   {before: "<!-- timeout: 300ms -->\n", block: "$ sleep 1000\n", err: "deadline exceeded"},
		"repeated until it matches": {block: "$ curl() { echo x >>$file; cat $file; }\n$ file=$(mktemp)\n$ curl\nx\nx\nx\n$ rm $file\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := parseDocument("x.md", []byte("<!-- needs: local -->\n\n"+test.before+"```console\n"+test.block+"```\n"))
			must(t, err)
			s, err := newShell(t.TempDir(), nil)
			must(t, err)
			defer s.close()
			for _, st := range d.steps {
				for i, c := range st.commands {
					if err = (&workspace{}).command(t, s, st, c, i == len(st.commands)-1); err != nil {
						break
					}
				}
			}
			switch {
			case test.err == "" && err != nil:
				t.Error(err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("error %v, want one with %q", err, test.err)
			}
		})
	}
}
