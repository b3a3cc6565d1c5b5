// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/test/expect"
)

// typed is a kind whose fields have a Go type, with which the programs of Seamark decode them.
type typed struct {
	kind       string
	version    string
	definition []byte
	object     any
	// open matches the paths of the parts that Kubernetes defines: the schema takes what the decoder takes.
	open *regexp.Regexp
	// stricter matches the fields of open parts that have more rules.
	stricter *regexp.Regexp
	// specs are valid specs, which have the open parts.
	specs []string
}

func allTyped() []typed {
	const (
		seamark, apps = "seamark.dev/v1alpha1", "apps.kruise.io/v1alpha1"
		selector      = "selector: {matchLabels: {app: game}}"
		pod           = "template: {metadata: {labels: {app: game}}, spec: {containers: [{name: a, image: a}], initContainers: [{name: b, image: b}]}}"
		claims        = "volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]"
	)
	strict := stricter()
	none, template := regexp.MustCompile("^$"), regexp.MustCompile(`^spec\.template\.(metadata|spec)\.`)
	sets := regexp.MustCompile(`^spec\.(template\.(metadata|spec)\.|volumeClaimTemplates\[0\]\.)`)
	jobs := regexp.MustCompile(`^spec\.template\.(jobTemplate|broadcastJobTemplate)\.(metadata|spec)\.`)
	sidecars := regexp.MustCompile(`^spec\.(volumes|(initC|c)ontainers)\[0\]\.`)
	return []typed{
		{"CloneSet", apps, config.Definition("clonesets.apps.kruise.io"), v1alpha1.CloneSet{}, sets, strict, []string{selector + ", " + pod + ", " + claims}},
		{
			"StatefulSet", "apps.kruise.io/v1beta1", config.Definition("statefulsets.apps.kruise.io"), v1beta1.StatefulSet{}, sets, strict,
			[]string{selector + ", " + pod + ", " + claims},
		},
		{"DaemonSet", apps, config.Definition("daemonsets.apps.kruise.io"), v1alpha1.DaemonSet{}, template, strict, []string{selector + ", " + pod}},
		{"BroadcastJob", apps, config.Definition("broadcastjobs.apps.kruise.io"), v1alpha1.BroadcastJob{}, template, strict, []string{pod}},
		{"AdvancedCronJob", apps, config.Definition("advancedcronjobs.apps.kruise.io"), cronTemplates{}, jobs, strict, []string{
			"schedule: '* * * * *', template: {jobTemplate: {metadata: {}, spec: {}}}",
			"schedule: '* * * * *', template: {broadcastJobTemplate: {metadata: {}, spec: {}}}",
		}},
		{"AdvancedCronJob", apps, config.Definition("advancedcronjobs.apps.kruise.io"), v1alpha1.AdvancedCronJob{}, none, strict, nil},
		{"SidecarSet", apps, config.Definition("sidecarsets.apps.kruise.io"), v1alpha1.SidecarSet{}, sidecars, strict, []string{
			selector + ", volumes: [{name: a}], containers: [{name: a, image: a, podInjectPolicy: BeforeAppContainer" + sidecarDefaults + "}], " +
				"initContainers: [{name: b, image: b, podInjectPolicy: AfterAppContainer" + sidecarDefaults + "}]",
		}},
		{"ImagePullJob", apps, config.Definition("imagepulljobs.apps.kruise.io"), v1alpha1.ImagePullJob{}, none, strict, nil},
		{"PodProbeMarker", apps, config.Definition("podprobemarkers.apps.kruise.io"), v1alpha1.PodProbeMarker{}, none, strict, nil},
		{"NodePodProbe", apps, config.Definition("nodepodprobes.apps.kruise.io"), v1alpha1.NodePodProbe{}, none, strict, nil},
		{"ProbePlan", seamark, config.Definition("probeplans.seamark.dev"), seamarkv1alpha1.ProbePlan{}, none, strict, nil},
		{"ProbeReport", seamark, config.Definition("probereports.seamark.dev"), seamarkv1alpha1.ProbeReport{}, none, strict, nil},
	}
}

// sidecarDefaults are fields of the containers of a SidecarSet that the API server would add.
const sidecarDefaults = ", upgradeStrategy: {upgradeType: ColdUpgrade}, shareVolumePolicy: {type: disabled}"

// cronTemplates are the templates of an AdvancedCronJob, which it has as raw JSON.
type cronTemplates struct {
	Spec struct {
		Template struct {
			JobTemplate          batchv1.JobTemplateSpec `json:"jobTemplate"`
			BroadcastJobTemplate struct {
				metav1.ObjectMeta `json:"metadata"`
				Spec              v1alpha1.BroadcastJobSpec `json:"spec"`
			} `json:"broadcastJobTemplate"`
		} `json:"template"`
	} `json:"spec"`
}

// stricter matches the fields of open parts of which the schema says more than the type, with the reason.
func stricter() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		// Names, images and labels have bounds, so that no pod is created for nothing; so has restartPolicy.
		`[cC]ontainers\[0\]\.(name|image)$`, `emplate\.metadata\.labels(\.a)?$`, `Templates\[0\]\.metadata\.name$`, `\.restartPolicy$`,
		// No template may have ephemeral containers, and no pod of a set a deadline.
		`\.ephemeralContainers$`, `^spec\.template\.spec\.activeDeadlineSeconds$`,
		// Parts with required fields. A null is dropped, as in a Deployment.
		`[cC]ontainers(\[0\])?$`, `Templates\[0\]\.(metadata|spec)$`,
		// The fields of SidecarSets in their containers.
		`^spec\.(initC|c)ontainers\[0\]\.(podInjectPolicy|upgradeStrategy|shareVolume|transferEnv)`,
	}, "|"))
}

// isFree reports whether the schema takes for the field what the decoder takes.
func (k typed) isFree(path string) bool {
	return k.open.MatchString(path) && !k.stricter.MatchString(path)
}

// TestTypesAreThoseOfTheDecoder puts a value of each JSON type into every field of every kind. The schema refuses what the
// decoder refuses: one object that is stored, but can't be decoded, would stop all objects of its kind. In the parts that
// Kubernetes defines, it takes and keeps what the decoder takes, as a Deployment does.
func TestTypesAreThoseOfTheDecoder(t *testing.T) {
	t.Parallel()
	for _, kind := range allTyped() {
		t.Run(kind.kind, func(t *testing.T) {
			t.Parallel()
			rules := kind.rules(t)
			fields, refused := 0, 0
			for _, value := range wrongValues() {
				for depth := 1; ; depth++ {
					object, nodes := kind.build(depth, func(node) (any, bool) { return value, true })
					if len(nodes) == 0 {
						break
					}
					refusals := refusedPaths(rules.Check(t.Context(), object))
					for _, n := range nodes {
						fields++
						if refusals[n.path] {
							refused++
						}
						kind.compare(t, n, value, refusals[n.path], object)
					}
				}
			}
			t.Logf("%d of %d values are refused", refused, fields)
		})
	}
}

func (k typed) compare(t *testing.T, n node, value any, refused bool, object map[string]any) {
	t.Helper()
	err := decode(n.goType, value)
	free := k.isFree(n.path)
	switch {
	case err != nil && !refused:
		t.Errorf("%s: %v is stored, and cannot be decoded: %v", n.path, value, err)
	case err == nil && refused && free:
		t.Errorf("%s: %v is refused, and can be decoded", n.path, value)
	case value == nil && free:
		if got, found := n.in(object); !found || got != nil {
			t.Errorf("%s: null is stored as %v", n.path, got)
		}
	}
}

// rules returns the rules of the CRD, which are those of the API server.
func (k typed) rules(t *testing.T) *schema.Schema {
	t.Helper()
	_, version, _ := strings.Cut(k.version, "/")
	rules, err := schema.New(k.definition, version)
	expect.NoError(t, err)
	return rules
}

// refusedPaths returns the fields of the errors about types, and the fields above them.
func refusedPaths(errs field.ErrorList) map[string]bool {
	var paths []string
	types := []field.ErrorType{field.ErrorTypeInvalid, field.ErrorTypeTypeInvalid, field.ErrorTypeTooMany}
	for _, err := range errs {
		if slices.Contains(types, err.Type) && err.Detail != schema.UnknownField {
			paths = append(paths, pathOf(err.Field, err.Detail))
		}
	}
	return withParents(paths)
}

// pathOf returns the path of an error. Those of "not", with which quantities refuse true and false, have it in the detail.
func pathOf(name, detail string) string {
	if name == "<nil>" {
		_, detail, _ = strings.Cut(detail, `"spec.`)
		path, _, _ := strings.Cut(detail, `"`)
		return "spec." + path
	}
	return name
}

func withParents(paths []string) map[string]bool {
	all := map[string]bool{}
	for _, path := range paths {
		for end := len(path); end > 0 && !all[path[:end]]; end = strings.LastIndexAny(path[:end], ".[") {
			all[path[:end]] = true
		}
	}
	return all
}

// TestWrongTypesAreRefused sends objects to the API server in which all fields of a depth have wrong types. It refuses each
// with its path, and with the same errors as the rules of TestTypesAreThoseOfTheDecoder.
func TestWrongTypesAreRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range allTyped() {
		if kind.open.String() == "^$" {
			continue
		}
		t.Run(kind.kind, func(t *testing.T) {
			t.Parallel()
			rules, turn := kind.rules(t), 0
			for depth := 2; ; depth++ {
				object, nodes := kind.build(depth, func(n node) (any, bool) {
					turn++
					return wrongValueOf(n.goType, turn)
				})
				if len(nodes) == 0 {
					return
				}
				delete(object, "status")
				err := server.Client.Create(t.Context(), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}, client.DryRunAll)
				var status apierrors.APIStatus
				if !errors.As(err, &status) || status.Status().Details == nil {
					t.Fatalf("depth %d: %v", depth, err)
				}
				var causes []string
				for _, cause := range status.Status().Details.Causes {
					causes = append(causes, pathOf(cause.Field, cause.Message))
				}
				got := withParents(causes)
				for _, n := range nodes {
					if strings.HasPrefix(n.path, "spec.") && !got[n.path] {
						t.Errorf("%s is not refused", n.path)
					}
				}
				for path := range refusedPaths(rules.Check(t.Context(), object)) {
					if !got[path] {
						t.Errorf("%s is refused by the rules of the CRD, but not by the API server", path)
					}
				}
			}
		})
	}
}

// TestFullTemplatesAreKept stores objects in which the parts that Kubernetes defines have every field.
func TestFullTemplatesAreKept(t *testing.T) {
	t.Parallel()
	for _, kind := range allTyped() {
		for i, spec := range kind.specs {
			t.Run(fmt.Sprint(kind.kind, i), func(t *testing.T) {
				t.Parallel()
				object := parsed(
					t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: full%d}, spec: {%s}}", kind.version, kind.kind, i, spec), server.Namespace(t),
				)
				all, _ := kind.build(1000, nil)
				kind.fill(object.Object["spec"], all["spec"], "spec")
				sent, _, _ := unstructured.NestedMap(object.Object, "spec")
				expect.NoError(t, server.Client.Create(t.Context(), object))
				stored, _, _ := unstructured.NestedMap(object.Object, "spec")
				for name, value := range sent {
					expect.Equal(t, fmt.Sprintf("spec.%s", name), value, stored[name])
				}
			})
		}
	}
}
