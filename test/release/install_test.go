// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// installation is a release that a test installs, and the cluster.
type installation struct {
	*testing.T
	// dist is the folder of the artifacts.
	dist string
	// cluster is the folder of the cluster, and bin that of helm.
	cluster, bin string
}

// TestInstall installs the release in SEAMARK_DIST in the local cluster, in the ways that docs/install.md describes.
func TestInstall(t *testing.T) {
	i := installation{T: t, dist: os.Getenv("SEAMARK_DIST"), cluster: os.Getenv("SEAMARK_CLUSTER_DIR"), bin: os.Getenv("SEAMARK_BIN")}
	if i.dist == "" || i.cluster == "" || i.bin == "" {
		t.Fatal("SEAMARK_DIST, SEAMARK_CLUSTER_DIR or SEAMARK_BIN is not set: run `make test-release-install`")
	}
	// Installs into a cluster without Seamark, except its CRDs.
	i.helm("uninstall", "seamark", "--namespace", "seamark-system", "--ignore-not-found", "--wait", "--timeout", "5m")
	// The files are first: after a pull of the same image from a registry, the kubelet would verify that the pod may use
	// it under its other name, with a pull.
	t.Run("from files", func(t *testing.T) {
		i := i
		i.T = t
		archives, err := filepath.Glob(filepath.Join(i.dist, "*_image.tar"))
		if err != nil || len(archives) != 3 {
			t.Fatalf("archives %v, error %v", archives, err)
		}
		run(t, filepath.Join(repository, "hack", "cluster"), "go", append([]string{"run", ".", "load", "--dir", i.cluster}, archives...)...)
		i.install(filepath.Join(i.dist, "seamark-"+strings.TrimPrefix(releaseVersion, "v")+".tgz"), "docker.io/seamark")
		i.helm("uninstall", "seamark", "--namespace", "seamark-system", "--wait", "--timeout", "5m")
		i.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", filepath.Join(i.dist, "install.yaml"))
	})
	t.Run("from a registry", func(t *testing.T) {
		i := i
		i.T = t
		registry := startRegistry(t, i.cluster) + "/seamark"
		pushed := run(t, filepath.Join(repository, "hack", "release"), "go", "run", ".", "push",
			"--layouts", filepath.Join(i.dist, "oci"), "--registry", registry)
		t.Log(pushed)
		i.install("oci://"+registry+"/seamark", registry, "--version", strings.TrimPrefix(releaseVersion, "v"), "--plain-http")
		i.helm("test", "seamark", "--namespace", "seamark-system", "--timeout", "3m")
		i.helm("uninstall", "seamark", "--namespace", "seamark-system", "--wait", "--timeout", "5m")
	})
}

// install installs a chart, and checks that the pods run the images in the layouts.
func (i installation) install(chart, registry string, args ...string) {
	i.Helper()
	i.helm(append([]string{"upgrade", "--install", "seamark", chart, "--namespace", "seamark-system", "--create-namespace",
		"--set", "image.registry=" + registry, "--set", "workloads.enabled=true",
		// All nodes share one file system, so each agent finds its own runtime by the name of its node.
		"--set", "agent.runtimeFolder=" + filepath.Join(i.cluster, "nodes"),
		"--set-string", "agent.criEndpoint=unix:///run/$(NODE_NAME)/containerd.sock", "--wait", "--timeout", "4m"}, args...)...)
	var pods struct {
		Items []struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Containers []struct{ Image string } }
		}
	}
	listed := i.kubectl("get", "pods", "--namespace", "seamark-system", "--field-selector=status.phase=Running",
		"--selector=app.kubernetes.io/name=seamark", "--output=json")
	if err := json.Unmarshal([]byte(listed), &pods); err != nil {
		i.Fatal(err)
	}
	seen := map[string]bool{}
	for _, pod := range pods.Items {
		component := pod.Metadata.Labels["app.kubernetes.io/component"]
		seen[component] = true
		name := "seamark-" + component
		if got, want := pod.Spec.Containers[0].Image, registry+"/"+name+"@"+i.digest(name).String(); got != want {
			i.Errorf("a pod of %s runs %s, want %s", component, got, want)
		}
	}
	for _, component := range []string{"manager", "agent", "workloads"} {
		if !seen[component] {
			i.Errorf("no pod of %s is running", component)
		}
	}
}

// digest returns the digest of the image in a layout.
func (i installation) digest(name string) v1.Hash {
	i.Helper()
	root, err := layout.ImageIndexFromPath(filepath.Join(i.dist, "oci", name))
	if err != nil {
		i.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		i.Fatal(err)
	}
	return manifest.Manifests[0].Digest
}

func (i installation) kubeconfig() string {
	return "--kubeconfig=" + filepath.Join(i.cluster, "kubeconfig")
}

func (i installation) helm(args ...string) string {
	i.Helper()
	return run(i.T, repository, filepath.Join(i.bin, "helm"), append(args, i.kubeconfig())...)
}

func (i installation) kubectl(args ...string) string {
	i.Helper()
	return run(i.T, repository, filepath.Join(i.cluster, "bin", "kubectl"), append(args, i.kubeconfig())...)
}
