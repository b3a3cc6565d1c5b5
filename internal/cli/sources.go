// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// downloadTimeout limits the download of one manifest.
	downloadTimeout = 30 * time.Second
	// maxManifestBytes limits the size of one manifest.
	maxManifestBytes = 16 << 20
)

// isURL reports whether a file name is a URL, as kubectl decides it.
func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// download returns the contents of a URL.
func download(ctx context.Context, url string) (content []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read manifest %s: server answered %s", url, response.Status)
	}
	content, err = io.ReadAll(io.LimitReader(response.Body, maxManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", url, err)
	}
	if len(content) > maxManifestBytes {
		return nil, fmt.Errorf("read manifest %s: larger than %d bytes", url, maxManifestBytes)
	}
	return content, nil
}

// parseCommands parses the values of --command into commands by container.
func parseCommands(values []string) (map[string]string, error) {
	commands := map[string]string{}
	for _, value := range values {
		container, command, found := strings.Cut(value, "=")
		if !found || container == "" || command == "" {
			return nil, fmt.Errorf("--command: %q is invalid: must be CONTAINER='COMMAND'", value)
		}
		if _, twice := commands[container]; twice {
			return nil, fmt.Errorf("--command: container %q has two commands", container)
		}
		commands[container] = command
	}
	return commands, nil
}
