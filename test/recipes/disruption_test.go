// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/seamark-dev/seamark/test/bench/page"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/recipes/disruption"
)

// TestUpgrades upgrades the programs of the recipes that SEAMARK_DISRUPTION names in each variant, SEAMARK_RUNS times, and writes
// docs/disruption.md.
func TestUpgrades(t *testing.T) {
	measured, count := measured(t)
	for _, p := range measured {
		for _, variant := range disruption.Variants() {
			t.Run(p.recipe+"/"+variant, func(t *testing.T) {
				s := &upgrades{suite: newSuite(t, p.recipe), program: p, variant: variant}
				s.create()
				var runs []disruption.Run
				for run := range count {
					runs = append(runs, s.run(run))
					s.Logf("%+v", runs[run])
				}
				s.publish(func(all *disruption.Results) { all.Add(p.title, variant, runs) })
			})
		}
	}
}

// measured returns the programs to measure, and how often.
func measured(t *testing.T) (selected []program, count int) {
	t.Helper()
	names := strings.Fields(os.Getenv("SEAMARK_DISRUPTION"))
	for _, p := range programs() {
		if slices.Contains(names, p.recipe) {
			selected = append(selected, p)
		}
	}
	if len(selected) == 0 {
		t.Fatal("SEAMARK_DISRUPTION names no recipes that are measured: run `make bench-disruption`")
	}
	count, err := strconv.Atoi(os.Getenv("SEAMARK_RUNS"))
	expect.NoErrorf(t, err, "read SEAMARK_RUNS")
	return selected, count
}

// upgrades are those of one program in one variant.
type upgrades struct {
	*suite
	program
	variant string
}

// builtIn is whether the set is that of Kubernetes.
func (u *upgrades) builtIn() bool {
	return u.variant == disruption.Plain || u.variant == disruption.Marked
}

// resource is the set as kubectl names it.
func (u *upgrades) resource() string {
	if u.builtIn() {
		return "statefulsets.apps/" + u.name
	}
	return "statefulsets.apps.kruise.io/" + u.name
}

// run upgrades the set while a client writes.
func (u *upgrades) run(number int) disruption.Run {
	u.Helper()
	tags := []string{"v1", "v2"}
	before := u.complete(tags[number%2])
	// Each run has numbers of its own.
	writer := u.write(u.program, number*1_000_000, u.clientAddresses())
	start := time.Now()
	u.setImage(u.resource(), u.image+":"+tags[(number+1)%2])
	after := u.complete(tags[(number+1)%2])
	total := time.Since(start)
	writer.stop()
	found, err := u.read(u.Context(), u.addressOf(*u.Pod(after.primary)))
	expect.NoErrorf(u, err, "read what was written")
	return disruption.Run{
		Program: u.title, Variant: u.variant, Elections: after.elections - before.elections,
		Outage: disruption.Outage(writer.times, pace).Seconds(), Total: total.Seconds(),
		Failed: writer.failed, Acked: len(writer.acked), Lost: len(writer.missing(found)), Date: start.UTC().Format(time.DateOnly),
	}
}

// complete waits until the set says that all pods are updated and available, and the program agrees about the primary.
func (u *upgrades) complete(tag string) standing {
	u.Helper()
	var found standing
	u.settled("app="+u.name, u.image+":"+tag, 3, func(ctx context.Context, pods []corev1.Pod) error {
		status, err := u.TryKubectl(ctx, "get", u.resource(), "-o",
			"jsonpath={.status.observedGeneration} {.metadata.generation} {.status.updatedReplicas} {.status.availableReplicas}")
		if err != nil {
			return err
		}
		if fields := strings.Fields(status); len(fields) != 4 || fields[0] != fields[1] || fields[2] != "3" || fields[3] != "3" {
			return fmt.Errorf("the set is not complete: %s", status)
		}
		if found, err = u.standing(ctx, pods); err != nil || u.variant == disruption.Plain {
			return err
		}
		return u.labels(pods, found.primary)
	})
	return found
}

// clientAddresses returns where the client connects to: the Service of the primary or, without marks, one pod after the other.
func (u *upgrades) clientAddresses() func(context.Context) ([]string, error) {
	u.Helper()
	if u.variant != disruption.Plain {
		address := u.nodePort("client")
		return func(context.Context) ([]string, error) { return []string{address}, nil }
	}
	return u.addresses(u.program, "app="+u.name)
}

// create creates the objects of the recipe that belong to the variant, with data that outlives pods, and a Service of the primary for
// clients outside of the cluster.
func (u *upgrades) create() {
	u.Helper()
	data, err := os.MkdirTemp("", "seamark-disruption-")
	cluster.Must(u, err)
	cluster.Must(u, os.Chmod(data, 0o755)) //nolint:gosec // The user of the containers reads it.
	for ordinal := range 3 {
		folder := filepath.Join(data, fmt.Sprintf("%s-%d", u.name, ordinal))
		cluster.Must(u, os.Mkdir(folder, 0o700))
		cluster.Must(u, os.Chown(folder, 65532, 65532))
	}
	u.Cleanup(func() { expect.NoErrorf(u, os.RemoveAll(data), "delete the data") })
	u.deleteAtEnd()
	for _, object := range u.objects() {
		switch object.GetKind() {
		case "PodProbeMarker":
			if u.variant == disruption.Plain {
				continue
			}
		case "PodDisruptionBudget":
			if u.variant != disruption.Recipe {
				continue
			}
		case "StatefulSet":
			if object.GetName() == u.name {
				u.change(object, data)
			}
		}
		u.Create(object)
	}
	port := corev1.ServicePort{Port: int32(u.port)} //nolint:gosec // A port.
	key, value, _ := strings.Cut(u.primary, "=")
	client := &corev1.Service{Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{port}, Selector: map[string]string{"app": u.name, key: value},
	}}
	client.Name = "client"
	u.Create(client)
}

// deleteAtEnd deletes the objects that keep pods, and the pods, when the test ends.
func (s *suite) deleteAtEnd() {
	s.Helper()
	s.Cleanup(func() {
		ctx := context.WithoutCancel(s.Context())
		for _, what := range []string{"poddisruptionbudgets", "statefulsets.apps", "statefulsets.apps.kruise.io", "pods"} {
			out, err := s.TryKubectl(ctx, "delete", what, "--all", "--grace-period=5")
			expect.NoErrorf(s, err, "delete %s: %s", what, out)
		}
	})
}

// objects reads the objects of the recipe.
func (s *suite) objects() []*unstructured.Unstructured {
	s.Helper()
	files, err := filepath.Glob(filepath.Join(s.Root, "examples", "recipes", s.recipe, "*.yaml"))
	cluster.Must(s, err)
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		cluster.Must(s, err)
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			expect.NoErrorf(s, err, "read %s", file)
			objects = append(objects, object)
		}
	}
	return objects
}

// change makes the set that of the variant.
func (u *upgrades) change(set *unstructured.Unstructured, data string) {
	spec := set.Object["spec"].(map[string]any)
	template, _, err := unstructured.NestedMap(spec, "template", "spec")
	cluster.Must(u, err)
	for _, volume := range list(template, "volumes") {
		if volume["name"] == "data" {
			delete(volume, "emptyDir")
			volume["hostPath"] = map[string]any{"path": data}
		}
	}
	for _, container := range list(template, "containers") {
		for _, mount := range list(container, "volumeMounts") {
			if mount["name"] == "data" {
				mount["subPathExpr"] = "$(NAME_OF_POD)"
			}
		}
		name := map[string]any{"name": "NAME_OF_POD", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}
		env, _ := container["env"].([]any)
		container["env"] = append([]any{name}, env...)
		if u.variant != disruption.Recipe {
			delete(container, "lifecycle")
		}
	}
	cluster.Must(u, unstructured.SetNestedMap(spec, template, "template", "spec"))
	if u.builtIn() {
		set.SetAPIVersion("apps/v1")
		seconds, _, err := unstructured.NestedFieldCopy(spec, "updateStrategy", "rollingUpdate", "minReadySeconds")
		cluster.Must(u, err)
		delete(spec, "updateStrategy")
		spec["minReadySeconds"] = seconds
	}
}

// list returns the objects in a list of an object.
func list(object map[string]any, field string) []map[string]any {
	items, _ := object[field].([]any)
	var objects []map[string]any
	for _, item := range items {
		if object, is := item.(map[string]any); is {
			objects = append(objects, object)
		}
	}
	return objects
}

// publish adds results, and writes the page and the chart that are made of all of them.
func (s *suite) publish(add func(*disruption.Results)) {
	s.Helper()
	path := func(parts ...string) string { return filepath.Join(append([]string{s.Root}, parts...)...) }
	file := path("test", "recipes", "disruption", "results.json")
	results, err := disruption.Load(file)
	cluster.Must(s, err)
	add(&results)
	cluster.Must(s, results.Save(file))
	document := path("docs", "disruption.md")
	text, err := os.ReadFile(document)
	cluster.Must(s, err)
	text, _ = page.Replace(text, map[string]string{
		"upgrades": disruption.Table(results.Runs), "losses": disruption.LossTable(results.Losses), "matches": disruption.GameTable(results.Games),
	})
	for name, content := range map[string][]byte{document: text, path("docs", "images", "disruption.svg"): []byte(disruption.Chart(results.Runs))} {
		cluster.Must(s, os.WriteFile(name, content, 0o644)) //nolint:gosec // Documents are not secret.
	}
}
