// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTimeout limits the time that a shell waits for names.
const completionTimeout = 3 * time.Second

// complete registers the completion of a flag's value.
func complete(command *cobra.Command, flag string, names cobra.CompletionFunc) {
	// It fails only if the flag does not exist or has a completion already.
	if err := command.RegisterFlagCompletionFunc(flag, names); err != nil {
		panic(err)
	}
}

// CompletePods completes the arguments of the command with the names of pods that are not among
// the arguments yet. The number of arguments is limited by limit; 0 is no limit.
func (f *Flags) CompletePods(command *cobra.Command, limit int) {
	command.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, directive := f.completeNames(cmd, typed, podNames)
		return slices.DeleteFunc(found, func(name string) bool { return slices.Contains(args, name) }), directive
	}
}

// CompleteMarkers completes the value of a flag with the names of markers.
func (f *Flags) CompleteMarkers(command *cobra.Command, flag string) {
	complete(command, flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f.completeNames(cmd, typed, markerNames)
	})
}

// CompleteNodes completes the value of a flag with the names of nodes.
func (f *Flags) CompleteNodes(command *cobra.Command, flag string) {
	complete(command, flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f.completeNames(cmd, typed, clusterWide(nodeNames))
	})
}

// CompleteValues completes the last part of a comma-separated value of a flag.
func CompleteValues(command *cobra.Command, flag string, values []string) {
	complete(command, flag, func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var found []cobra.Completion
		for _, value := range values {
			if strings.HasPrefix(before+value, typed) {
				found = append(found, before+value)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *Flags) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeNames(cmd, typed, clusterWide(namespaceNames))
}

func (f *Flags) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := f.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return withPrefix(slices.Sorted(maps.Keys(config.Contexts)), typed), cobra.ShellCompDirectiveNoFileComp
}

func clusterWide(list func(context.Context, client.Reader) ([]string, error)) func(context.Context, client.Reader, string) ([]string, error) {
	return func(ctx context.Context, reader client.Reader, _ string) ([]string, error) { return list(ctx, reader) }
}

// completeNames lists names. A shell shows no errors, so nothing is completed if the cluster does
// not answer in time, or the user may not list the names.
func (f *Flags) completeNames(cmd *cobra.Command, typed string, list func(context.Context, client.Reader, string) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	connection, err := f.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	found, err := list(ctx, connection.Client, connection.Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return withPrefix(found, typed), cobra.ShellCompDirectiveNoFileComp
}

func withPrefix(names []string, prefix string) []cobra.Completion {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
