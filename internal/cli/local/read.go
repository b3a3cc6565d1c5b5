// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

func (o *Options) read(ctx context.Context) (manifest.Objects, error) {
	found, unreadable := (&files.Loader{Stdin: o.In, AllowRemote: o.AllowRemote}).Load(ctx, o.Filenames)
	if o.Kustomize != "" {
		content, err := files.Build(o.Kustomize, o.AllowRemote)
		found = append(found, document.File{Name: o.Kustomize, Content: content, Generated: true})
		unreadable = errors.Join(unreadable, err)
	}
	commands, err := parseCommands(o.Commands)
	if err != nil {
		return manifest.Objects{}, err
	}
	options := manifest.Options{Commands: commands}
	if o.Replicas >= 0 {
		options.Replicas = &o.Replicas
	}
	objects, err := manifest.Read(ctx, found, options)
	return objects, errors.Join(unreadable, err)
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
