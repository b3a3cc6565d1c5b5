// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"io"
	"strconv"
	"strings"
	"text/template"
)

// pageText is the reference with its tables as templates.
//
//go:embed metrics.md.tmpl
var pageText string

// writePage writes the reference as Markdown.
func writePage(out io.Writer, programs []Program) error {
	page, err := template.New("metrics").Funcs(template.FuncMap{
		"join":   strings.Join,
		"number": func(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) },
		"last":   func(buckets []float64) int { return len(buckets) - 1 },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return page.Execute(out, programs)
}
