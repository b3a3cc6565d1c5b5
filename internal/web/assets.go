// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/internal/web/page"
)

// servePage serves a file of the page, or index.html at /. Browsers ask whether it has changed each
// time, so that a page never has files of two versions.
func servePage(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	content, err := fs.ReadFile(page.Files(), name)
	if err != nil {
		WriteError(w, errNoPath)
		return
	}
	// The types do not depend on those that the host knows.
	types := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}
	sum := sha256.Sum256(content)
	header := w.Header()
	header.Set("Content-Type", types[path.Ext(name)])
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}
