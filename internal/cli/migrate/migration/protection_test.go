// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/golden"
)

// protectedSet returns a set with the label and a hook.
func protectedSet(kind, name, labels, spec string) string {
	return "apiVersion: apps.kruise.io/v1alpha1\nkind: " + kind + "\nmetadata: {namespace: game, name: " + name + ", labels: {" + labels + "}}\n" +
		"spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}" + spec + "}\n"
}

// TestProtectionAndPreparingDelete compares the findings about the label that protects from deletion, and about the flag that
// excludes pods in PreparingDelete, with and without the gate and the flag.
func TestProtectionAndPreparingDelete(t *testing.T) {
	const (
		cascading = "policy.kruise.io/delete-protection: Cascading"
		hook      = ", lifecycle: {preDelete: {labelsHandler: {a: b}}}"
	)
	protected := func(kind, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for name, args := range map[string][]string{
		"protection":     nil,
		"no-protection":  {"--feature-gates=AllAlpha=false"},
		"excluding-pods": {"--cloneset-scaling-exclude-preparing-delete"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-controller-manager"}}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Args: args}}
			found, err := migration.Check(t.Context(), migration.Cluster{
				Manager: migration.ManagerOf(deployment),
				Objects: byKind(objects(t, strings.Join([]string{
					protectedSet("CloneSet", "protected", cascading, ""), protectedSet("CloneSet", "held", "", hook),
					protectedSet("CloneSet", "label", `apps.kruise.io/cloneset-scaling-exclude-preparing-delete: "true"`, hook),
					protectedSet("CloneSet", "field", "", ", scaleStrategy: {excludePreparingDelete: true}"+hook),
				}, "---\n")), objects(t, protectedSet("DaemonSet", "agent", "policy.kruise.io/delete-protection: Always", ""))),
				Protected: []*metav1.PartialObjectMetadata{protected("Namespace", "game"), protected("CustomResourceDefinition", "games.example.com")},
			})
			expect.NoError(t, err)
			golden.Compare(t, filepath.Join("testdata", name+".txt"), text(found))
		})
	}
}
