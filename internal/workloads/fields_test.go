// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// keptFields are the fields of a pod, its containers and their statuses that trimPod keeps.
func keptFields() []string {
	return strings.Fields(`NodeName ReadinessGates Containers InitContainers Volumes Resources
		ObservedGeneration Phase QOSClass Conditions ContainerStatuses InitContainerStatuses
		Name Image Resources ResizePolicy RestartPolicy Env Hostname Subdomain Started StartTime AllocatedResources
		ImageID ContainerID Ready RestartCount State LastTerminationState
		Running StartedAt Terminated PersistentVolumeClaim`)
}

// otherFields are fields with names of dropped fields that planners read or write in other objects:
// in the template, in pods that they create, or in objects of their own.
func otherFields() []string {
	// Lifecycle and Priority are fields of sets, Message and Reason of conditions,
	// TopologySpreadConstraints and ImagePullPolicy of the template. VolumeSource is written.
	return strings.Fields(`ImagePullPolicy Lifecycle Priority Message Reason TopologySpreadConstraints VolumeSource`)
}

// TestPlannersReadOnlyKeptFields looks for names of dropped fields in the code of the planners: the
// simulated cluster of the other test does not set every field.
func TestPlannersReadOnlyKeptFields(t *testing.T) {
	dropped := map[string]bool{}
	for _, object := range []any{
		corev1.PodSpec{}, corev1.PodStatus{}, corev1.Container{}, corev1.ContainerStatus{},
		corev1.ContainerStateRunning{}, corev1.ContainerStateTerminated{}, corev1.Volume{},
	} {
		for field := range reflect.TypeOf(object).Fields() {
			dropped[field.Name] = true
		}
	}
	for _, name := range append(keptFields(), otherFields()...) {
		delete(dropped, name)
	}
	files := token.NewFileSet()
	inspect := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || filepath.Base(filepath.Dir(path)) == "model" {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok && dropped[selector.Sel.Name] {
				t.Errorf("%s: a planner uses the field %s, which the cache drops: keep it in trimPod, or list it in otherFields",
					files.Position(selector.Pos()), selector.Sel.Name)
			}
			return true
		})
		return nil
	}
	for _, folder := range []string{"planning", "cloneset", "inplace", "lifecycle", "order", "revision", "statefulset"} {
		if err := filepath.WalkDir(folder, inspect); err != nil {
			t.Fatal(err)
		}
	}
}
