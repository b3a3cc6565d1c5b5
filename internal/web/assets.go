// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// index is the file that is served at /.
const index = "index.html"

// assets are the files of the page by path.
type assets map[string]asset

type asset struct {
	content     []byte
	contentType string
	tag         string
}

// readAssets reads all files.
func readAssets(files fs.FS) (assets, error) {
	found := assets{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		sum := sha256.Sum256(content)
		found[name] = asset{content: content, contentType: typeOf(name), tag: `"` + hex.EncodeToString(sum[:16]) + `"`}
		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	return found, nil
}

// typeOf returns the type of a file. It does not depend on the types that the host knows.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(path.Ext(name))
	}
}

// ServeHTTP serves a file. Browsers ask whether it has changed each time, so that a page never has
// files of two versions.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = index
	}
	file, found := a[name]
	if !found {
		WriteError(w, errNoPath)
		return
	}
	header := w.Header()
	header.Set("Content-Type", file.contentType)
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", file.tag)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file.content))
}
