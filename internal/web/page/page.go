// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page contains the web page of Seamark: HTML, style sheets and JavaScript modules that
// browsers run as they are, without a build step. The page shows what the HTTP API of package web
// returns, and nothing else: it loads nothing from other hosts and stores only the language, the
// theme, whether single keys are used, and the session with the server of a command.
//
// The modules of the page, by what they import:
//
//   - main assembles the page;
//   - session, slot, stream, poll, store, objects and location are the data: what the server sends, and what the
//     URL selects;
//   - filter, summary, colors, groups and phases are pure functions and classes, without the document;
//   - grid, cells, problems, markers, sets, toolbar, legend, panel, podview, setview, timeline, events, header and
//     help draw the parts of the page with the functions of dom;
//   - i18n, en, zh and reasons are the texts.
package page

import (
	"embed"
	"io/fs"
)

//go:embed index.html assets
var files embed.FS

// Files returns the files of the page: index.html, and the folder assets, to which index.html refers
// by relative paths.
func Files() fs.FS { return files }
