// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// number formats a value with three significant digits.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func quantity(v float64, unit string) string { return strings.TrimSpace(number(v) + " " + unit) }

func budget(r harness.Result) string {
	if r.Budget == nil {
		return ""
	}
	text := "at most "
	if r.Budget.AtLeast {
		text = "at least "
	}
	if r.Budget.OfRatio {
		return text + number(r.Budget.Limit) + " ×"
	}
	return text + quantity(r.Budget.Limit, r.Unit)
}

func met(r harness.Result) string {
	switch {
	case r.Budget == nil:
		return ""
	case r.Met():
		return "yes"
	default:
		return "**no**"
	}
}

func floor(r harness.Result) string {
	if r.FloorName == "" {
		return ""
	}
	return r.FloorName + ": " + quantity(r.Floor, r.Unit)
}

func ratio(r harness.Result) string {
	if r.FloorName == "" {
		return ""
	}
	return number(r.Ratio()) + " ×"
}

// noise returns the error of a value in percent.
func noise(r harness.Result) string {
	if r.Noise == 0 {
		return ""
	}
	return "± " + number(math.Round(r.Noise*1000)/10) + " %"
}

// head names the columns of a table of results.
func head() []string {
	return []string{"measure", "value", "noise", "floor in the same run", "ratio", "budget", "met"}
}

// Table returns rows of results for a terminal or a page.
func Table(results []harness.Result) string {
	var rows [][]string
	for _, r := range results {
		rows = append(rows, []string{r.Name, quantity(r.Value, r.Unit), noise(r), floor(r), ratio(r), budget(r), met(r)})
	}
	return Markdown(head(), rows)
}

// rowsOf returns the rows of the first table of results in a text, with all columns.
func rowsOf(text string) [][]string {
	var columns []int
	var rows [][]string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			if columns != nil {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "| \n"), "|")
		row := make([]string, len(head()))
		for i, cell := range cells {
			cell = strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|")
			if len(rows) == 0 {
				columns = append(columns, slices.Index(head(), cell))
			} else if i < len(columns) && columns[i] >= 0 {
				row[columns[i]] = cell
			}
		}
		rows = append(rows, row)
	}
	// The first two lines are the names of the columns and the line below.
	return rows[min(2, len(rows)):]
}

// Markdown returns a table for a page, without the columns that are empty.
func Markdown(head []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var columns []int
	for i := range head {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			columns = append(columns, i)
		}
	}
	line := func(cells []string) string {
		out := "|"
		for _, i := range columns {
			out += " " + strings.ReplaceAll(cells[i], "|", "\\|") + " |"
		}
		return out + "\n"
	}
	out := line(head) + "|" + strings.Repeat(" --- |", len(columns)) + "\n"
	for _, row := range rows {
		out += line(row)
	}
	return out
}

// summaryBlock lists the first value with a budget of each measure and the values that miss theirs,
// counts the budgets, and names the measures that have failed or have no results. The values are those of the
// blocks, which may be of earlier runs.
func summaryBlock(measures []harness.Measure, blocks map[string]string, records Records) string {
	const budget, met = 5, 6
	var listed [][]string
	budgets, kept := 0, 0
	missing := map[string]bool{}
	for _, m := range measures {
		rows := rowsOf(blocks[m.Name])
		missing[m.Name] = len(rows) == 0
		first := true
		for _, row := range rows {
			if row[budget] == "" {
				continue
			}
			budgets++
			if row[met] == "yes" {
				kept++
			}
			if first || row[met] != "yes" {
				row[0] = m.Name + ": " + row[0]
				listed = append(listed, row)
			}
			first = false
		}
	}
	list := func(title string, include func(measure string) bool) string {
		var names []string
		for _, m := range measures {
			if include(m.Name) {
				names = append(names, "`"+m.Name+"`")
			}
		}
		if len(names) == 0 {
			return ""
		}
		return "\n" + wrap(title+": "+strings.Join(names, ", ")+".")
	}
	hasFailed := func(measure string) bool { return records[measure].Failed != "" }
	return Markdown(head(), listed) + fmt.Sprintf("\n%d of %d budgets are met.\n", kept, budgets) + list("Failed in the last run", hasFailed) +
		list("Not measured", func(measure string) bool { return missing[measure] && !hasFailed(measure) })
}

// measureBlock shows the results of one measure: table and notes.
func measureBlock(record Record) string {
	var out strings.Builder
	o := record.Output
	if record.Failed != "" {
		fmt.Fprintf(&out, "**This measure failed on %s.**", record.Failed)
		if record.measured() {
			fmt.Fprintf(&out, " The results are those of %s.", record.Machine.Date)
		}
		out.WriteString("\n\n")
	}
	out.WriteString(Table(o.Results))
	for _, note := range o.Notes {
		out.WriteString("\n" + wrap(note))
	}
	return out.String()
}

// Curves shows the charts of one measure as Mermaid diagrams, which have no legend: a line below
// names the series by their colors.
func Curves(charts []harness.Chart) string {
	colors := []struct{ name, code string }{{"Blue", "#0969da"}, {"orange", "#bc4c00"}, {"green", "#1a7f37"}}
	list := func(values []float64) string {
		var out []string
		for _, v := range values {
			out = append(out, number(v))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	var out strings.Builder
	for _, c := range charts {
		top, lines := 0.0, ""
		var palette, names []string
		for i, s := range c.Series {
			top = max(top, slices.Max(s.Values))
			lines += "  line " + list(s.Values) + "\n"
			palette, names = append(palette, colors[i].code), append(names, colors[i].name+": "+s.Name)
		}
		fmt.Fprintf(
			&out, "\n```mermaid\n%%%%{init: {\"themeVariables\": {\"xyChart\": {\"plotColorPalette\": %q}}}}%%%%\nxychart-beta\n", strings.Join(palette, ", "),
		)
		fmt.Fprintf(&out, "  title %q\n  x-axis %q %s\n  y-axis %q 0 --> %s\n%s```\n\n", c.Title, c.X, list(c.At), c.Unit, number(1.1*top), lines)
		out.WriteString(wrap(strings.Join(names, "; ") + "."))
	}
	return out.String()
}

// machineBlock describes the machines, commits and dates of all records. Usually it is one row of all
// measures; otherwise, each names its measures.
func machineBlock(measures []harness.Measure, records Records) string {
	var machines []Machine
	names := map[Machine][]string{}
	for _, m := range measures {
		record := records[m.Name]
		if !record.measured() {
			continue
		}
		if !slices.Contains(machines, record.Machine) {
			machines = append(machines, record.Machine)
		}
		names[record.Machine] = append(names[record.Machine], "`"+m.Name+"`")
	}
	var rows [][]string
	for _, m := range machines {
		measured := ""
		if len(names[m]) < len(measures) {
			measured = strings.Join(names[m], ", ")
		}
		rows = append(rows, []string{
			fmt.Sprintf("%d × %s, %s", m.Cores, m.CPU, m.Memory), m.Kernel, m.Kubernetes, m.Etcd, m.Go, m.Commit, m.Date, measured,
		})
	}
	return Markdown([]string{"machine", "kernel", "Kubernetes", "etcd", "Go", "commit", "date", "measures"}, rows)
}

// wrap breaks a paragraph into lines of at most 100 characters.
func wrap(text string) string {
	var out strings.Builder
	length := 0
	for i, word := range strings.Fields(text) {
		separator := " "
		if length += 1 + len(word); length > 100 {
			separator, length = "\n", len(word)
		}
		if i == 0 {
			separator, length = "", len(word)
		}
		out.WriteString(separator + word)
	}
	return out.String() + "\n"
}
