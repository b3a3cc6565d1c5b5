// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printing prints what a command found in the formats of kubectl: a table, a wide table,
// JSON, YAML, names, and templates. States have colors if the output is a terminal that shows
// colors and NO_COLOR is not set.
package printing

import (
	"bytes"
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
	if f.IsTable() || f.Output == "name" {
		return nil
	}
	_, err := f.structured()
	return err
}

// structured returns the printer for all formats except tables and names.
func (f *Flags) structured() (printers.ResourcePrinter, error) {
	flags := genericclioptions.NewPrintFlags("")
	flags.OutputFormat = &f.Output
	printer, err := flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("--output: %q is invalid: must be %s", f.Output, allowed())
	}
	if err != nil {
		return nil, fmt.Errorf("--output: %q is invalid: %w", f.Output, err)
	}
	if f.Output == "yaml" {
		return yamlPrinter{printer}, nil
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
	switch {
	case f.IsTable():
		lines, err := f.Lines(result, HasColors(out, os.Getenv))
		if err != nil {
			return err
		}
		return write(Raw(out), lines)
	case f.Output == "name":
		return write(out, result.names())
	default:
		printer, err := f.structured()
		if err != nil {
			return err
		}
		return printObject(out, printer, result)
	}
}

// names returns the names without repetitions.
func (r Result) names() []string { return slices.Compact(slices.Clone(r.Names)) }

func printObject(out io.Writer, printer printers.ResourcePrinter, result Result) error {
	if err := printer.PrintObj(result.Object(), Raw(out)); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

func write(out io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := io.WriteString(out, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// Lines returns the lines of the table: the header, unless NoHeaders is set, and one per row.
func (f *Flags) Lines(result Result, colors bool) ([]string, error) {
	var buffer bytes.Buffer
	lines, err := f.layOut(result, &buffer, printers.GetNewTabWriter(&buffer), colors)
	if err == nil && f.NoHeaders {
		lines = lines[1:]
	}
	return lines, err
}

// layOut returns the header and the rows as lines. The columns are as wide as the writer remembers.
func (f *Flags) layOut(result Result, buffer *bytes.Buffer, columns *tabwriter.Writer, colors bool) ([]string, error) {
	result.Rows = safeRows(result.Rows)
	table := &metav1.Table{ColumnDefinitions: result.Columns}
	for _, cells := range result.Rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	buffer.Reset()
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: f.Output == "wide"}).PrintObj(table, columns); err != nil {
		return nil, fmt.Errorf("print table: %w", err)
	}
	if err := columns.Flush(); err != nil {
		return nil, fmt.Errorf("print table: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(buffer.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if colors && result.Colored != "" {
		result.color(lines)
	}
	return lines, nil
}

// safeRows returns the rows with safe text: lines with colors bypass the writer of Safe.
func safeRows(rows [][]any) [][]any {
	safe := make([][]any, len(rows))
	for i, cells := range rows {
		for _, cell := range cells {
			safe[i] = append(safe[i], text.Safe(fmt.Sprint(cell)))
		}
	}
	return safe
}

// color colors the cells of one column in the lines of a table. The first line is the header.
func (r Result) color(lines []string) {
	column := slices.IndexFunc(r.Columns, func(c metav1.TableColumnDefinition) bool { return c.Name == r.Colored })
	start := strings.Index(" "+lines[0]+" ", " "+strings.ToUpper(r.Colored)+" ")
	if column < 0 || start < 0 {
		return
	}
	for i, cells := range r.Rows {
		cell, line := fmt.Sprint(cells[column]), lines[i+1]
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

// IsTerminal reports whether the output is a terminal.
func IsTerminal(out io.Writer) bool {
	file, isFile := Raw(out).(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
