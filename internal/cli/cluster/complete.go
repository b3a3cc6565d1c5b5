// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// namespaces are completed only.
const namespaces permission.Resource = "namespaces"

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
		found, directive := f.completeNames(cmd, typed, permission.Pods)
		return slices.DeleteFunc(found, func(name string) bool { return slices.Contains(args, name) }), directive
	}
}

// CompleteNames completes the value of a flag with the names of objects of the resource.
func (f *Flags) CompleteNames(command *cobra.Command, flag string, resource permission.Resource) {
	complete(command, flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f.completeNames(cmd, typed, resource)
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

func (f *Flags) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := f.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return withPrefix(slices.Sorted(maps.Keys(config.Contexts)), typed), cobra.ShellCompDirectiveNoFileComp
}

// completeNames lists names. A shell shows no errors, so nothing is completed if the cluster does
// not answer in time, or the user may not list the names.
func (f *Flags) completeNames(cmd *cobra.Command, typed string, resource permission.Resource) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeKind(cmd, "", typed, kindOf(resource))
}

// completeKind lists the names of a kind, each after the prefix.
func (f *Flags) completeKind(cmd *cobra.Command, prefix, typed string, kind schema.GroupVersionKind) ([]cobra.Completion, cobra.ShellCompDirective) {
	connection, err := f.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found := Names(cmd.Context(), connection.Client, kind, connection.Namespace)
	for i := range found {
		found[i] = prefix + found[i]
	}
	return withPrefix(found, typed), cobra.ShellCompDirectiveNoFileComp
}

// CompleteObjects completes the arguments of the command with KIND/NAME of the kinds of apps.kruise.io, or with names after a
// kind. The arguments may also be names of pods, and pod/NAME, if pods is true. Their number is limited by limit; 0 is no limit.
func (f *Flags) CompleteObjects(command *cobra.Command, pods bool, limit int) {
	command.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word, _, hasName := strings.Cut(typed, "/")
		if pods && hasName && (word == "pod" || word == "pods") {
			return f.completeKind(cmd, word+"/", typed, kindOf(permission.Pods))
		}
		if kind := kinds.ByName(word); hasName && kind != nil {
			return f.completeKind(cmd, word+"/", typed, kind.GroupVersionKind)
		}
		if len(args) > 0 && !hasName {
			if kind := kinds.ByName(args[0]); kind != nil {
				return f.completeKind(cmd, "", typed, kind.GroupVersionKind)
			}
		}
		var found []cobra.Completion
		if pods {
			found, _ = f.completeNames(cmd, typed, permission.Pods)
		}
		for _, kind := range kinds.Table() {
			found = append(found, withPrefix([]string{strings.ToLower(kind.Kind) + "/"}, typed)...)
		}
		return slices.DeleteFunc(found, func(name string) bool { return slices.Contains(args, name) }),
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func withPrefix(names []string, prefix string) []cobra.Completion {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
