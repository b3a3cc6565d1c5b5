// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// What a document's commands need.
const (
	// needsLocal means that the commands need no cluster.
	needsLocal = "local"
	// needsCluster means a cluster with Seamark, which the document does not change.
	needsCluster = "cluster"
	// needsAlone means a cluster with Seamark that no other document uses meanwhile.
	needsAlone = "alone"
	// needsInstallation means a cluster whose installation the document changes.
	needsInstallation = "installation"
	// needsRecipe means a cluster with Seamark and the image of the recipe that the document belongs to.
	needsRecipe = "recipe"
)

// defaultTimeout is the timeout of a command if the document sets no other.
const defaultTimeout = 2 * time.Minute

// document is the part of a page that is run.
type document struct {
	// path is relative to the root of the repository.
	path  string
	needs string
	// steps holds the console blocks and the hidden commands, in order.
	steps []step
	// finally holds the hidden commands that always run at the end.
	finally []command
}

// step is a console block or a group of hidden commands.
type step struct {
	commands []command
	line     int
	timeout  time.Duration
	// hidden is true for commands that the page does not show.
	hidden bool
	// notRun is the reason why the block is not run, or empty.
	notRun string
	// fails means that the last command must exit with a code other than 0.
	fails bool
	// interrupt means that the last command runs until Ctrl-C.
	interrupt bool
}

// parser holds the state of parsing a document.
type parser struct {
	document
	source []byte
	// next holds the options that a comment on line nextLine sets for the next block.
	next     step
	nextLine int
	timeout  time.Duration
}

// readDocument reads a page and checks the conventions of this package.
func readDocument(path string) (document, error) {
	source, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return document{}, err
	}
	return parseDocument(path, source)
}

func parseDocument(path string, source []byte) (document, error) {
	p := &parser{document: document{path: path}, source: source, timeout: defaultTimeout}
	err := ast.Walk(markdown(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		if err := p.block(n); err != nil {
			return ast.WalkStop, fmt.Errorf("%s:%d: %w", path, p.line(n), err)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return document{}, err
	}
	if p.nextLine != 0 {
		return document{}, fmt.Errorf("%s:%d: no console block follows the comment", path, p.nextLine)
	}
	if p.needs == "" && len(p.steps) > 0 {
		return document{}, fmt.Errorf("%s: does not declare what its commands need: add <!-- needs: local|cluster|alone|installation|recipe -->", path)
	}
	return p.document, nil
}

func markdown(source []byte) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
}

// line returns the number of the node's first line.
func (p *parser) line(n ast.Node) int {
	if n.Lines() == nil || n.Lines().Len() == 0 {
		return 1
	}
	return lineAt(p.source, n.Lines().At(0).Start)
}

func lineAt(source []byte, offset int) int { return 1 + bytes.Count(source[:offset], []byte("\n")) }

func (p *parser) block(n ast.Node) error {
	switch n := n.(type) {
	case *ast.HTMLBlock:
		return p.comment(n)
	case *ast.CodeBlock:
		return fmt.Errorf("an indented code block: use a fenced block, with the language console if it has commands")
	case *ast.FencedCodeBlock:
		language := string(n.Language(p.source))
		if language == "console" {
			return p.console(n)
		}
		if err := checkOtherLanguage(language, string(n.Lines().Value(p.source))); err != nil {
			return err
		}
	case *ast.Document, *ast.List, *ast.ListItem, *ast.TextBlock, *ast.Paragraph, *ast.Heading:
	}
	if p.nextLine != 0 && n.Kind() != ast.KindList && n.Kind() != ast.KindListItem {
		return fmt.Errorf("no console block follows the comment on line %d", p.nextLine)
	}
	return nil
}

// call matches a line that looks like a command: after a prompt, or with a known program's name.
var call = regexp.MustCompile(
	`(?m)^\s*(?:\$ |(?:[#%>] +)?(?:sudo +)?(?:apt-get|crictl|curl|git|go|helm|jq|kubectl|kustomize|make|seamark(?:-\w+)?|ssh|sudo) +\S)`,
)

// checkOtherLanguage returns an error if a block that is not run has commands.
func checkOtherLanguage(language, contents string) error {
	switch language {
	case "go", "json", "mermaid", "promql", "yaml":
	case "":
		if line := call.FindString(contents); line != "" {
			return fmt.Errorf("a command in a block without a language, %q: use the language console, so that it is run", line)
		}
	default:
		return fmt.Errorf("a block of %s: use the language console, so that it is run, or a language without commands", language)
	}
	return nil
}

func (p *parser) console(n *ast.FencedCodeBlock) error {
	s := p.next
	p.next, p.nextLine = step{}, 0
	s.line, s.timeout = p.line(n), p.timeout
	commands, err := splitCommands(string(n.Lines().Value(p.source)), s.line, "$ ")
	if err != nil {
		return err
	}
	s.commands = commands
	p.steps = append(p.steps, s)
	return nil
}

// comment parses an HTML comment. Other HTML is an error, because commands in it would not be found.
func (p *parser) comment(n *ast.HTMLBlock) error {
	raw := string(n.Lines().Value(p.source))
	if n.HasClosure() {
		raw += string(n.ClosureLine.Value(p.source))
	}
	raw = strings.TrimSpace(raw)
	if strings.HasPrefix(raw, "<picture>") {
		return nil
	}
	if !strings.HasPrefix(raw, "<!--") {
		return fmt.Errorf("HTML is not checked for commands: write Markdown")
	}
	raw = strings.TrimSuffix(strings.TrimPrefix(raw, "<!--"), "-->")
	key, value, _ := strings.Cut(raw, ":")
	line, value := p.line(n), strings.TrimSpace(value)
	switch strings.TrimSpace(key) {
	case "needs":
		return p.need(value)
	case "generated", "end", "vale off", "vale on": // Around what a program writes, or what vale does not check.
		return nil
	case "timeout":
		timeout, err := time.ParseDuration(value)
		p.timeout = timeout
		return err
	case "run", "finally":
		commands, err := splitCommands(value, line+1, "")
		if err != nil {
			return err
		}
		if strings.TrimSpace(key) == "finally" {
			p.finally = append(p.finally, commands...)
			return nil
		}
		p.steps = append(p.steps, step{commands: commands, line: line, timeout: p.timeout, hidden: true})
		return nil
	case "not run":
		if value == "" {
			return fmt.Errorf("not run: a reason is required")
		}
		p.next.notRun = value
	case "fails":
		p.next.fails = true
	case "interrupt":
		p.next.interrupt = true
	default:
		return fmt.Errorf("unknown comment %q: must be one of needs, timeout, run, finally, not run, fails, interrupt", key)
	}
	p.nextLine = line
	return nil
}

func (p *parser) need(value string) error {
	if !slices.Contains([]string{needsLocal, needsCluster, needsAlone, needsInstallation, needsRecipe}, value) {
		return fmt.Errorf("needs: %q: must be local, cluster, alone, installation or recipe", value)
	}
	if p.needs != "" {
		return fmt.Errorf("needs: is declared twice")
	}
	p.needs = value
	return nil
}
