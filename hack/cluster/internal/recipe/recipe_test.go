// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipe

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const description = `image: example.org/db
tags: [v1, v2]
packages: {db-server: "1.2-3", dash: "", db-client: "1.2-3"}
user: "65532"
entrypoint: [db]
files: {/usr/bin/start: start.sh}
`

// write writes a description and its file into a folder, and reads it.
func write(t *testing.T, folder, content, script string) (*Description, error) {
	t.Helper()
	for name, data := range map[string]string{fileName: content, "start.sh": script} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(data), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Read(folder)
}

// An archive is kept as long as its description does not change. The versions in it are compared each time.
func TestArchiveIsKept(t *testing.T) {
	folder := t.TempDir()
	d, err := write(t, folder, description, "exec db")
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(folder, "db.tar")
	stamp, err := json.Marshal(record{Digest: d.digest, Versions: map[string]string{"db-server": "1.2-4", "db-client": "1.2-3", "dash": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{archive: "archive", archive + ".json": string(stamp)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := d.Build(t.Context(), archive, &out); err != nil {
		t.Fatal(err)
	}
	want := "example.org/db:v1,v2 " + archive + "\nWarning: package db-server has version 1.2-4, tested is 1.2-3\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	for name, change := range map[string][2]string{
		"version": {strings.Replace(description, "1.2-3", "1.2-4", 1), "exec db"},
		"file":    {description, "exec db -v"},
	} {
		changed, err := write(t, folder, change[0], change[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, kept := changed.made(archive, archive+".json"); kept {
			t.Errorf("the archive is kept after a change of the %s", name)
		}
	}
	if err := os.Remove(archive); err != nil {
		t.Fatal(err)
	}
	if _, kept := d.made(archive, archive+".json"); kept {
		t.Error("the record counts without the archive")
	}
}

func TestInvalidDescriptions(t *testing.T) {
	for want, content := range map[string]string{
		"unknown field":        description + "cmd: [db]\n",
		"tags: required":       strings.Replace(description, "[v1, v2]", "[]", 1),
		"packages: required":   "image: a\ntags: [b]\nuser: \"1\"\nentrypoint: [c]\n",
		`"../x" is invalid`:    strings.Replace(description, "start.sh", "../x", 1),
		"no such file":         strings.Replace(description, "start.sh", "stop.sh", 1),
		"user: required":       strings.Replace(description, `"65532"`, `""`, 1),
		"entrypoint: required": strings.Replace(description, "[db]", "[]", 1),
	} {
		if _, err := write(t, t.TempDir(), content, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
