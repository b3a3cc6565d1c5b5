// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/uistream"
)

// The page shows the pods and their history until the end of the run, whatever the output is.
func TestWebPage(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "seamark", "local", "-o", "json", "-f", examples+"first-marker", "--ui")
	stderr, err := command.StderrPipe()
	expect.NoError(t, err)
	expect.NoError(t, command.Start())
	var address string
	lines := bufio.NewScanner(stderr)
	for address == "" && lines.Scan() {
		address, _ = strings.CutPrefix(lines.Text(), "Web page: ")
		if !strings.HasPrefix(address, "http://127.0.0.1:") {
			address = ""
		}
	}
	page, err := uistream.Enter(t.Context(), address)
	expect.NoError(t, err)
	if status, _ := get(t, http.DefaultClient, page.Base+"/api/v1/session"); status == http.StatusOK {
		t.Error("the page shows data without the key")
	}

	stream := uistream.Open(t, page.Client, page.Base, "")
	for pod := stream.Pods["default/worker-0"]; pod.State != model.Failed; pod = stream.Pods["default/worker-0"] {
		if _, more := stream.Next(); !more {
			t.Fatalf("the stream ended; worker-0: %+v", pod)
		}
	}
	if workload := stream.Pods["default/worker-0"].Workload; workload == nil || workload.Name != "worker" || len(stream.Pods) != 2 {
		t.Errorf("pods %+v, want two of the workload worker", stream.Pods)
	}
	var timeline model.Timeline
	_, body := get(t, page.Client, page.Base+"/api/v1/timeline?namespace=default&pod=worker-0&since=15m")
	if err := json.Unmarshal([]byte(body), &timeline); err != nil || len(timeline.Lines) != 1 || timeline.Lines[0].Spans[len(timeline.Lines[0].Spans)-1].Phase != "Failed" {
		t.Errorf("timeline %s: %v", body, err)
	}

	expect.NoError(t, command.Process.Signal(syscall.SIGINT))
	for {
		if _, more := stream.Next(); !more {
			break
		}
	}
	rest, err := io.ReadAll(stderr)
	if next := "The web page was opened. For another browser, it has the URL " + page.Base; !strings.Contains(string(rest), next) || strings.Contains(string(rest), address) {
		t.Errorf("standard error has no other URL: %s", rest)
	}
	if err := errors.Join(err, command.Wait()); err != nil {
		t.Errorf("seamark local: %v\n%s", err, rest)
	}
}

func get(t *testing.T, client *http.Client, address string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	expect.NoError(t, err)
	response, err := client.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	return response.StatusCode, string(text)
}
