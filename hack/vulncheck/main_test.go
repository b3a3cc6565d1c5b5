// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// findingID is the vulnerability of the database that the tests make.
const findingID = "GO-2020-0001"

// folder writes files into a new folder, and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// database makes a vulnerability database, in which one function of a package of the
// standard library is the vulnerability findingID in all versions of Go.
func database(t *testing.T, pkg, function string) string {
	t.Helper()
	const modified = "2020-01-02T03:04:05Z"
	type object = map[string]any
	return folder(t, map[string]string{
		"index/db.json":      encode(t, object{"modified": modified}),
		"index/modules.json": encode(t, []object{{"path": "stdlib", "vulns": []object{{"id": findingID, "modified": modified}}}}),
		"index/vulns.json":   encode(t, []object{{"id": findingID, "modified": modified}}),
		"ID/" + findingID + ".json": encode(t, object{
			"schema_version": "1.3.1", "id": findingID, "modified": modified, "published": modified,
			"summary": "made up", "details": "Made up for a test.",
			"database_specific": object{"url": "https://example.org/" + findingID},
			"affected": []object{{
				"package":            object{"name": "stdlib", "ecosystem": "Go"},
				"ranges":             []object{{"type": "SEMVER", "events": []object{{"introduced": "0"}}}},
				"ecosystem_specific": object{"imports": []object{{"path": pkg, "symbols": []string{function}}}},
			}},
		}),
	})
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFindings(t *testing.T) {
	module := folder(t, map[string]string{
		"go.mod":  "module example.org/app\n\ngo 1.26\n",
		"main.go": "package main\n\nimport \"encoding/hex\"\n\nfunc main() { println(hex.EncodeToString([]byte{1})) }\n",
	})
	for name, test := range map[string]struct {
		function string
		found    bool
	}{
		"called":   {"EncodeToString", true},
		"imported": {"Dump", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOVULNDB", "file://"+database(t, "encoding/hex", test.function))
			var out bytes.Buffer
			err := run(t.Context(), []string{module, "./..."}, "http://127.0.0.1:1", &out, &out)
			if found := err != nil; found != test.found {
				t.Errorf("error %v, want one: %t\n%s", err, test.found, out.String())
			}
			if named := strings.Contains(out.String(), findingID); named != test.found {
				t.Errorf("the vulnerability is named: %t, want %t\n%s", named, test.found, out.String())
			}
		})
	}
}

func TestDatabaseOutOfReach(t *testing.T) {
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	module := folder(t, map[string]string{"go.mod": "module example.org/app\n", "main.go": "package main\n\nfunc main() {}\n"})
	for name, test := range map[string]struct {
		args   []string
		set    string
		public string
		says   string
		fails  string
	}{
		"nobody answers":         {nil, "", gone.URL, "SKIPPED, nothing was checked", ""},
		"no database there":      {nil, "", broken.URL, "404 Not Found", ""},
		"required":               {[]string{"--required"}, "", gone.URL, "", "reach the vulnerability database"},
		"named and out of reach": {nil, broken.URL, gone.URL, "", "with database " + broken.URL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOVULNDB", test.set)
			var out bytes.Buffer
			err := run(t.Context(), append(test.args, module, "./..."), test.public, &out, &out)
			if !strings.Contains(out.String(), test.says) {
				t.Errorf("output %q, want %q in it", out.String(), test.says)
			}
			switch {
			case test.fails == "" && err != nil:
				t.Errorf("error %v", err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("error %v, want one with %q", err, test.fails)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"."}, "", &out, &out); err == nil || !strings.Contains(err.Error(), "want a module's folder") {
		t.Errorf("error %v", err)
	}
}
