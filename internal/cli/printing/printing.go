// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printing prints what a command found in the formats of kubectl: a table, a wide table,
// JSON, YAML, names, and templates. States have colors if the output is a terminal that shows
// colors and NO_COLOR is not set.
package printing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/liggitt/tabwriter"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// Formats returns the values of --output. Values that end with "=" are followed by a template.
func Formats() []string {
	return []string{"wide", "json", "yaml", "name", "jsonpath=", "go-template="}
}

// Flags are --output and --no-headers.
type Flags struct {
	// Output is the format. Empty is a table.
	Output string
	// NoHeaders omits the headers of a table.
	NoHeaders bool
}

// AddTo defines the flags in the command and completes formats.
func (f *Flags) AddTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&f.Output, "output", "o", "", "output format: "+allowed()+" (default a table)")
	flags.BoolVar(&f.NoHeaders, "no-headers", false, "print tables without headers")
	// It fails only if the flag does not exist or has a completion already.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(Formats(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

func allowed() string {
	return strings.ReplaceAll(strings.Join(Formats(), ", "), "=", "=TEMPLATE")
}

// IsTable reports whether the output is a table.
func (f *Flags) IsTable() bool { return f.Output == "" || f.Output == "wide" }

// Validate returns an error if the format or its template is invalid.
func (f *Flags) Validate() error {
	_, err := f.structured()
	return err
}

// structured returns the printer for JSON and templates, or nil for tables, names and YAML.
func (f *Flags) structured() (printers.ResourcePrinter, error) {
	if f.IsTable() || f.Output == "name" || f.Output == "yaml" {
		return nil, nil //nolint:nilnil // Stream prints these
	}
	flags := genericclioptions.NewPrintFlags("")
	flags.OutputFormat = &f.Output
	printer, err := flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("--output: %q is invalid: must be %s", f.Output, allowed())
	}
	if err != nil {
		return nil, fmt.Errorf("--output: %q is invalid: %w", f.Output, err)
	}
	return printer, nil
}

// Result is what a command found.
type Result struct {
	// Columns are the columns of the table. Those with a Priority other than 0 are wide.
	Columns []metav1.TableColumnDefinition
	// Rows have one cell per column.
	Rows [][]any
	// Names are printed as they are, each once: for example pod/game-0.
	Names []string
	// Object returns what JSON, YAML and templates show.
	Object func() runtime.Object
	// Colored is the name of the column that has colors, or empty. Color returns the style of a
	// cell of that column.
	Colored string
	Color   func(cell string) lipgloss.Style
}

// Table returns a column definition. Wide columns are shown by -o wide only.
func Table(wide bool, names ...string) []metav1.TableColumnDefinition {
	priority := int32(0)
	if wide {
		priority = 1
	}
	var columns []metav1.TableColumnDefinition
	for _, name := range names {
		columns = append(columns, metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority})
	}
	return columns
}

// List is an object with items, for Result.Object.
type List[T any] struct {
	metav1.TypeMeta `json:",inline"`
	// Items are printed as a JSON array, which is empty if there are none.
	Items []T `json:"items"`
}

// NewList returns a list of the kind.
func NewList[T any](kind string, items []T) *List[T] {
	if items == nil {
		items = []T{}
	}
	return &List[T]{TypeMeta: TypeMeta(kind), Items: items}
}

// TypeMeta returns the version and the kind of an object that a command prints.
func TypeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "cli.seamark.dev/v1alpha1", Kind: kind}
}

// DeepCopyObject returns a copy that shares what the items point to.
func (l *List[T]) DeepCopyObject() runtime.Object {
	return &List[T]{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
}

// Print prints the result.
func (f *Flags) Print(out io.Writer, result Result) error {
	stream, err := f.Stream(out)
	if err != nil {
		return err
	}
	return stream.Print(result)
}

// Lines returns the lines of the table: the header, unless NoHeaders is set, and one per row.
func (f *Flags) Lines(result Result, colors bool) ([]string, error) {
	return f.newStream(nil, colors).lines(result)
}

// Stream prints one result after another, as `kubectl get --watch` does: a table has one header,
// and its columns do not become narrower.
type Stream struct {
	flags  *Flags
	out    io.Writer
	colors bool
	text   bytes.Buffer
	// columns remembers the widths of the columns.
	columns *tabwriter.Writer
	// structured prints JSON and templates. It is nil for other formats.
	structured printers.ResourcePrinter
	// printed is whether a result was printed.
	printed bool
}

func (f *Flags) newStream(out io.Writer, colors bool) *Stream {
	s := &Stream{flags: f, out: out, colors: colors}
	s.columns = printers.GetNewTabWriter(&s.text)
	return s
}

// Stream returns a stream in the format of the flags.
func (f *Flags) Stream(out io.Writer) (*Stream, error) {
	s := f.newStream(out, HasColors(out, os.Getenv))
	var err error
	s.structured, err = f.structured()
	return s, err
}

// Print prints the result after the previous one.
func (s *Stream) Print(result Result) error {
	var err error
	switch {
	case s.structured != nil:
		err = s.structured.PrintObj(result.Object(), Raw(s.out))
	case s.flags.Output == "name":
		err = write(s.out, slices.Compact(slices.Clone(result.Names)))
	case s.flags.Output == "yaml":
		err = s.printYAML(result)
	default:
		var lines []string
		if lines, err = s.lines(result); err == nil {
			err = write(Raw(s.out), lines)
		}
	}
	if err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// printYAML prints the object as a document of YAML.
func (s *Stream) printYAML(result Result) error {
	content, err := YAML(result.Object())
	if s.printed {
		content = append([]byte("---\n"), content...)
	}
	s.printed = true
	if err == nil {
		_, err = Raw(s.out).Write(content)
	}
	return err
}

func write(out io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(out, strings.Join(lines, "\n")+"\n")
	return err //nolint:wrapcheck // the caller wraps it
}

// lines returns the header, unless it was printed or is not wanted, and the rows.
func (s *Stream) lines(result Result) ([]string, error) {
	table := &metav1.Table{ColumnDefinitions: result.Columns}
	for _, cells := range result.Rows {
		row := metav1.TableRow{}
		for _, cell := range cells {
			// Lines with colors bypass the writer of Safe.
			row.Cells = append(row.Cells, text.Safe(fmt.Sprint(cell)))
		}
		table.Rows = append(table.Rows, row)
	}
	s.text.Reset()
	err := printers.NewTablePrinter(printers.PrintOptions{Wide: s.flags.Output == "wide"}).PrintObj(table, s.columns)
	if err := errors.Join(err, s.columns.Flush()); err != nil {
		return nil, fmt.Errorf("align columns: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if s.colors && result.Colored != "" {
		result.color(table.Rows, lines)
	}
	if s.printed || s.flags.NoHeaders {
		lines = lines[1:]
	}
	s.printed = true
	return lines, nil
}

// color colors the cells of one column in the lines of a table. The first line is the header.
func (r Result) color(rows []metav1.TableRow, lines []string) {
	column := slices.IndexFunc(r.Columns, func(c metav1.TableColumnDefinition) bool { return c.Name == r.Colored })
	start := strings.Index(" "+lines[0]+" ", " "+strings.ToUpper(r.Colored)+" ")
	if column < 0 || start < 0 {
		return
	}
	for i, row := range rows {
		cell, line := fmt.Sprint(row.Cells[column]), lines[i+1]
		if len(line) >= start && strings.HasPrefix(line[start:], cell) {
			lines[i+1] = line[:start] + r.Color(cell).Render(cell) + line[start+len(cell):]
		}
	}
}

// HasColors reports whether the output is a terminal that shows colors, and the environment does
// not turn them off by NO_COLOR or TERM=dumb.
func HasColors(out io.Writer, getenv func(string) string) bool {
	return IsTerminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// HasScreen reports whether the output is a terminal on which a program can draw: a dumb one cannot move
// its cursor.
func HasScreen(out io.Writer) bool { return IsTerminal(out) && os.Getenv("TERM") != "dumb" }

// Width returns the number of columns of the terminal, 0 if the output is none on which a program can draw.
func Width(out io.Writer) int {
	file, isFile := Raw(out).(*os.File)
	if !isFile || !HasScreen(out) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// IsTerminal reports whether the output is a terminal.
func IsTerminal(out io.Writer) bool {
	file, isFile := Raw(out).(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
