// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/uistream"
)

// maxWait is how long a page may take before the measure fails.
const maxWait = time.Minute

// opened runs a command that serves a page until its stream has sent the whole state. The time
// of the cost starts with the process. The number of pods must be right.
//
// The command is a child of the benchmark itself, because the kernel counts its peak memory from
// the start of the program in it.
func opened(b *harness.Bench, pods int, program string, args ...string) (c cost) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), maxWait)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	command.Stderr = &log
	out, err := command.StdoutPipe()
	b.Must(err)
	start := time.Now()
	b.Must(command.Start())
	events, err := openPage(ctx, out)
	c.Seconds = time.Since(start).Seconds()
	usage, usageErr := harness.UsageOf(command.Process.Pid)
	c.PeakMiB = float64(usage.Peak) / harness.Mebibyte
	if err := errors.Join(err, usageErr, command.Process.Signal(os.Interrupt), command.Wait()); err != nil {
		b.Fatalf("%s: %v; %s", command, err, &log)
	}
	// This is decoded only now, because it takes processor time.
	b.Must(checkPods(events, pods))
	return c
}

// openPage opens the page whose URL is on the output of a command, and returns the data of the
// events of its stream that have pods. It reads the stream until its state is complete.
func openPage(ctx context.Context, output io.Reader) ([][]byte, error) {
	page, err := uistream.Visit(ctx, output)
	if err != nil {
		return nil, fmt.Errorf("open the page: %w", err)
	}
	defer page.Client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page.Base+"/api/v1/stream", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	response, err := page.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("open the stream: status %s", response.Status)
	}
	return readStream(response.Body)
}

// readStream returns the data of the events that have pods, up to the event that the state is
// complete.
func readStream(stream io.Reader) ([][]byte, error) {
	var pods [][]byte
	reader := uistream.NewReader(stream)
	for {
		e, ok := reader.Next()
		switch {
		case !ok:
			return nil, errors.New("the stream has ended before its state was complete")
		case e.Name == "pods":
			pods = append(pods, e.Data)
		case e.Name == "ready":
			return pods, nil
		case e.Name == "end":
			return nil, fmt.Errorf("the stream has ended: %s", e.Data)
		}
	}
}

// checkPods returns an error unless the events have so many pods.
func checkPods(events [][]byte, want int) error {
	keys := map[string]bool{}
	for _, data := range events {
		var part model.Pods[struct {
			Key string `json:"key"`
		}]
		if err := json.Unmarshal(data, &part); err != nil {
			return fmt.Errorf("parse pods: %w", err)
		}
		for _, pod := range part.Pods {
			keys[pod.Key] = true
		}
	}
	return await.ErrorIf(len(keys) != want, "the page has %d pods, want %d", len(keys), want)
}
