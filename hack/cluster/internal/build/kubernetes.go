// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
)

const (
	kubernetesPath = "k8s.io/kubernetes"
	etcdPackage    = "go.etcd.io/etcd/server/v3"
)

// WriteKubernetes writes a module to the folder that pins the newest patch of a minor version of Kubernetes,
// such as 1.32, and the version of etcd that it selects. It returns the version. Replacements are versions or
// folders, by module path, for modules that the module proxy does not have in the required version.
func WriteKubernetes(ctx context.Context, folder, minor string, replacements map[string]string) (string, error) {
	if !regexp.MustCompile(`^1\.[0-9]+$`).MatchString(minor) {
		return "", fmt.Errorf("version: %q is invalid: must be a minor version such as 1.32", minor)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("create the module of Kubernetes: %w", err)
	}
	// A module query that is not a version selects the newest one with this prefix.
	text, err := goCommand(ctx, folder, "mod", "download", "-json", kubernetesPath+"@v"+minor)
	if err != nil {
		return "", err
	}
	var found struct{ Version, Dir, GoMod string }
	if err := json.Unmarshal(text, &found); err != nil {
		return "", fmt.Errorf("download Kubernetes %s: %w", minor, err)
	}
	original, err := os.ReadFile(found.GoMod)
	if err != nil {
		return "", fmt.Errorf("read go.mod of Kubernetes: %w", err)
	}
	module, err := kubernetesModule(original, found.Version, replacements)
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(found.Dir, "go.sum"))
	if err != nil {
		return "", fmt.Errorf("read go.sum of Kubernetes: %w", err)
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(folder, "go.mod"), module, 0o644),
		os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o644),
	); err != nil {
		return "", fmt.Errorf("write the module of Kubernetes: %w", err)
	}
	return found.Version, complete(ctx, folder)
}

// complete adds what the programs need to go.mod and go.sum, so that builds do not change them.
func complete(ctx context.Context, folder string) error {
	args := []string{"list", "-mod=mod", "-deps", "-f", "{{if .Error}}{{.Error}}{{end}}"}
	for _, program := range Programs(folder) {
		if program.Module == folder {
			args = append(args, program.Package)
		}
	}
	if _, err := goCommand(ctx, folder, args...); err != nil {
		return fmt.Errorf("%w\nIf a module is not available in this version, set another one with --replace", err)
	}
	return nil
}

// kubernetesModule returns go.mod of a module that requires Kubernetes and what Kubernetes requires. The modules
// that Kubernetes replaces by its own folders are replaced by their published versions: v1.32.4 publishes v0.32.4.
func kubernetesModule(original []byte, version string, replacements map[string]string) ([]byte, error) {
	parsed, err := modfile.Parse("go.mod", original, nil)
	if err != nil {
		return nil, fmt.Errorf("read go.mod of Kubernetes: %w", err)
	}
	edits := []error{parsed.AddModuleStmt("seamark.dev/kubernetes"), parsed.AddRequire(kubernetesPath, version)}
	for _, staged := range parsed.Replace {
		if !strings.HasPrefix(staged.New.Path, "./staging/") {
			continue
		}
		path := staged.Old.Path
		switch replacement := replacements[path]; {
		case strings.HasPrefix(path, "k8s.io/sample-"):
			// No program needs them.
			edits = append(edits, parsed.DropReplace(path, ""), parsed.DropRequire(path))
		case replacement == "":
			edits = append(edits, parsed.AddReplace(path, "", path, "v0"+strings.TrimPrefix(version, "v1")))
		case strings.HasPrefix(replacement, "v"):
			edits = append(edits, parsed.AddReplace(path, "", path, replacement))
		default:
			edits = append(edits, parsed.AddReplace(path, "", replacement, ""))
		}
	}
	if err := errors.Join(edits...); err != nil {
		return nil, fmt.Errorf("edit go.mod of Kubernetes: %w", err)
	}
	parsed.Cleanup()
	return modfile.Format(parsed.Syntax), nil
}

// goCommand runs a go command in a folder and returns its output.
func goCommand(ctx context.Context, folder string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args[:2], " "), err, tail(log.String()+out.String()))
	}
	return out.Bytes(), nil
}
