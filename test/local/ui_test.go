// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/seamark-dev/seamark/internal/ui/model"
	"github.com/seamark-dev/seamark/test/uistream"
)

// The page shows the pods and their history until the end of the run, whatever the output is.
func TestWebPage(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "seamark", "local", "-o", "json", "-f", examples+"first-marker", "--ui")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var address string
	lines := bufio.NewScanner(stderr)
	for address == "" && lines.Scan() {
		address, _ = strings.CutPrefix(lines.Text(), "Web page: ")
		if !strings.HasPrefix(address, "http://127.0.0.1:") {
			address = ""
		}
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	base.Path, base.RawQuery = "", ""
	if status, _ := get(t, http.DefaultClient, base.String()+"/"); status == http.StatusOK {
		t.Error("the page is served without the key")
	}
	if status, body := get(t, client, address); status != http.StatusOK || !strings.Contains(body, "<title>Seamark</title>") {
		t.Fatalf("page: status %d:\n%s", status, body)
	}

	stream := uistream.Open(t, client, base.String(), "")
	for pod := stream.Pods["default/worker-0"]; pod.State != model.Failed; pod = stream.Pods["default/worker-0"] {
		if _, more := stream.Next(); !more {
			t.Fatalf("the stream ended; worker-0: %+v", pod)
		}
	}
	if workload := stream.Pods["default/worker-0"].Workload; workload == nil || workload.Name != "worker" || len(stream.Pods) != 2 {
		t.Errorf("pods %+v, want two of the workload worker", stream.Pods)
	}
	var timeline model.Timeline
	_, body := get(t, client, base.String()+"/api/v1/timeline?namespace=default&pod=worker-0&since=15m")
	if err := json.Unmarshal([]byte(body), &timeline); err != nil || len(timeline.Lines) != 1 || timeline.Lines[0].Spans[len(timeline.Lines[0].Spans)-1].Phase != "Failed" {
		t.Errorf("timeline %s: %v", body, err)
	}

	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for {
		if _, more := stream.Next(); !more {
			break
		}
	}
	rest, err := io.ReadAll(stderr)
	if err := errors.Join(err, command.Wait()); err != nil {
		t.Errorf("seamark local: %v\n%s", err, rest)
	}
}

func get(t *testing.T, client *http.Client, address string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
