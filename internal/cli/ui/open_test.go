// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

const pageURL = "http://127.0.0.1:1/?namespace=a#key=b"

func TestBrowser(t *testing.T) {
	for name, test := range map[string]struct {
		system    string
		env       map[string]string
		installed []string
		want      []string
		err       string
	}{
		"Linux":               {"linux", map[string]string{"DISPLAY": ":0"}, []string{"xdg-open"}, []string{"/bin/xdg-open", pageURL}, ""},
		"Wayland":             {"freebsd", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, []string{"xdg-open"}, []string{"/bin/xdg-open", pageURL}, ""},
		"macOS":               {"darwin", nil, nil, []string{"open", pageURL}, ""},
		"Windows":             {"windows", nil, nil, []string{"rundll32", "url.dll,FileProtocolHandler", pageURL}, ""},
		"variable":            {"linux", map[string]string{"BROWSER": "firefox"}, []string{"firefox"}, []string{"/bin/firefox", pageURL}, ""},
		"no display":          {"linux", nil, []string{"xdg-open"}, nil, "there is no display, as DISPLAY and WAYLAND_DISPLAY are not set"},
		"no xdg-open":         {"linux", map[string]string{"DISPLAY": ":0"}, nil, nil, "the program xdg-open is not installed"},
		"variable is useless": {"darwin", map[string]string{"BROWSER": "none"}, nil, nil, `the variable BROWSER is "none", which is no program`},
	} {
		t.Run(name, func(t *testing.T) {
			o := opener{test.system, func(name string) string { return test.env[name] }, func(program string) (string, error) {
				if !slices.Contains(test.installed, program) {
					return "", errors.New("not found")
				}
				return "/bin/" + program, nil
			}}
			got, err := o.command(pageURL)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" || message != test.err {
				t.Errorf("command() = %v, want %q (-want +got):\n%s", err, test.err, diff)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	program, out := filepath.Join(folder, "browser"), filepath.Join(folder, "out")
	script := "#!/bin/sh\necho \"$1\" >" + out + "\nexit 3\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("BROWSER", program)
	failed := make(chan error, 1)
	expect.NoError(t, newOpener().open(t.Context(), pageURL, func(err error) { failed <- err }))
	select {
	case err := <-failed:
		if !strings.HasSuffix(err.Error(), "browser: exit status 3") {
			t.Errorf("the browser failed with %v", err)
		}
	case <-time.After(await.Timeout):
		t.Fatal("the failure was not reported")
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != pageURL+"\n" {
		t.Errorf("the browser opened %q, %v", got, err)
	}
}
