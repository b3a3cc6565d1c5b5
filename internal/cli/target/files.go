// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// AddFilesTo defines only -f and -R.
func (f *Flags) AddFilesTo(command *cobra.Command) { f.fileFlags().AddFlags(command.Flags()) }

func (f *Flags) fileFlags() *genericclioptions.FileNameFlags {
	return &genericclioptions.FileNameFlags{
		Usage: "files, folders or URLs of the objects", Filenames: &f.Files.Filenames, Recursive: &f.Files.Recursive,
	}
}

// infos returns the objects of the files, or of the kustomization, which must not refer to other machines.
func (f *Flags) infos() ([]*resource.Info, error) {
	builder := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten()
	if folder := f.Files.Kustomize; folder != "" {
		content, err := files.Build(folder, false)
		if err != nil {
			return nil, fmt.Errorf("--kustomize: %w", err)
		}
		infos, err := builder.Stream(bytes.NewReader(content), folder).Do().Infos()
		if err != nil {
			return nil, fmt.Errorf("--kustomize: %w", err)
		}
		return infos, nil
	}
	infos, err := builder.FilenameParam(false, &f.Files).Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	return infos, nil
}

// inFiles returns the objects of the files.
func (f *Flags) inFiles(_ context.Context, connection cluster.Connection) ([]*Target, error) {
	infos, err := f.infos()
	if err != nil {
		return nil, err
	}
	var targets []*Target
	var others []string
	for _, info := range infos {
		gvk := info.Object.GetObjectKind().GroupVersionKind()
		kind := kinds.ByGroupKind(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind})
		if kind == nil {
			others = append(others, strings.ToLower(gvk.Kind)+"/"+info.Name)
			continue
		}
		namespace := connection.Namespace
		if info.Namespace != "" {
			if explicit := ptr.Deref(f.Cluster.Namespace, ""); explicit != "" && explicit != info.Namespace {
				return nil, fmt.Errorf("--namespace: %q is invalid: the namespace of %s in the file is %q", explicit, info.Name, info.Namespace)
			}
			namespace = info.Namespace
		}
		targets = append(targets, New(connection, kind, namespace, info.Name))
	}
	if slices.Contains(f.Files.Filenames, "-") && len(targets) == 0 {
		return nil, errors.New("--filename: - is invalid: must be a file, a folder or a URL, because the objects are not of apps.kruise.io")
	}
	if len(targets) > 0 && len(others) > 0 {
		if _, err := fmt.Fprintf(f.ErrOut, "Ignored objects of other kinds: %s\n", strings.Join(others, ", ")); err != nil {
			return nil, exit.Failure(fmt.Errorf("print a warning: %w", err))
		}
		others = nil
	}
	return targets, mixed(targets, others)
}
