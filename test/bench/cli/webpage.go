// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/seamark-dev/seamark/internal/ui/model"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	// maxWait is how long a page may take before the measure fails.
	maxWait = time.Minute
	// maxEvent is the maximum size of one event of the stream.
	maxEvent = 16 << 20
	mebibyte = 1 << 20
)

// measurePage runs a command that serves a page until its stream has sent the whole state. The time
// of the cost starts with the process. The number of pods must be right.
//
// The command is a child of the benchmark itself, because the kernel counts its peak memory from
// the start of the program in it.
func measurePage(ctx context.Context, pods int, program string, args ...string) (c cost, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = maxWait
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	command.Stderr = &log
	out, err := command.StdoutPipe()
	if err != nil {
		return cost{}, fmt.Errorf("open the output of %s: %w", program, err)
	}
	start := time.Now()
	if err := command.Start(); err != nil {
		return cost{}, fmt.Errorf("start %s: %w", program, err)
	}
	events, err := openPage(ctx, out)
	c.Seconds = time.Since(start).Seconds()
	usage, usageErr := harness.Attach("seamark", command.Process.Pid, "").Usage()
	c.PeakMiB = float64(usage.Peak) / mebibyte
	err = errors.Join(err, usageErr, command.Process.Signal(os.Interrupt), command.Wait())
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w; %s", command, err, &log)
	}
	// This is decoded only now, because it takes processor time.
	return c, checkPods(events, pods)
}

// openPage opens the page whose URL is on the output of a command, and returns the data of the
// events of its stream that have pods. It reads the stream until its state is complete.
func openPage(ctx context.Context, output io.Reader) (events [][]byte, err error) {
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read the URL: %w", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("create cookies: %w", err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Jar: jar}
	address := strings.TrimSpace(line)
	body, err := open(ctx, client, address)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	base, _, _ := strings.Cut(address, "/?")
	if body, err = open(ctx, client, base+"/api/v1/stream"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	return readStream(body)
}

// open returns the body of an answer.
func open(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", address, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("open the page: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("open %s: status %s", request.URL.Path, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// readStream returns the data of the events that have pods, up to the event that the state is
// complete.
func readStream(stream io.Reader) ([][]byte, error) {
	scanner := bufio.NewScanner(stream)
	scanner.Buffer(nil, maxEvent)
	var events [][]byte
	event := ""
	for scanner.Scan() {
		line := scanner.Bytes()
		if name, isName := bytes.CutPrefix(line, []byte("event: ")); isName {
			event = string(name)
		}
		data, isData := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case !isData:
		case event == "pods":
			events = append(events, bytes.Clone(data))
		case event == "ready":
			return events, nil
		case event == "end":
			return nil, fmt.Errorf("the stream has ended: %s", data)
		}
	}
	return nil, fmt.Errorf("the stream has ended before its state was complete: %w", errors.Join(scanner.Err(), io.ErrUnexpectedEOF))
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
	if len(keys) != want {
		return fmt.Errorf("the page has %d pods, want %d", len(keys), want)
	}
	return nil
}
