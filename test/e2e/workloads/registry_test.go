// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

const (
	registryUser     = "node"
	registryPassword = "secret"
)

// privateRegistry is a registry that answers only with the password.
type privateRegistry struct {
	testing.TB
	// address is a port of 127.0.0.1, on this machine and on each node: container runtimes use plain HTTP for it without
	// any configuration.
	address string

	mu sync.Mutex
	// reads counts the answers to GET with content, by path.
	reads map[string]int
}

// startRegistry starts a registry that stops when the test ends.
func (s *suite) startRegistry() *privateRegistry {
	s.Helper()
	here, err := net.Listen("tcp", "127.0.0.1:0")
	cluster.Must(s, err)
	listeners := []net.Listener{here}
	r := &privateRegistry{TB: s, address: here.Addr().String(), reads: map[string]int{}}
	records, err := filepath.Glob(filepath.Join(s.Dir, "run", "containerd-*.pid.json"))
	cluster.Must(s, err)
	if len(records) == 0 {
		s.Fatal("the cluster has no nodes")
	}
	for _, record := range records {
		there, err := listenAt(record, r.address)
		cluster.Must(s, err)
		listeners = append(listeners, there)
	}
	server := &http.Server{Handler: r.guard(registry.New(registry.Logger(log.New(io.Discard, "", 0))))}
	stopped := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { stopped <- server.Serve(listener) }()
	}
	s.Cleanup(func() {
		_ = server.Close()
		for range listeners {
			if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
				s.Error("serve the registry:", err)
			}
		}
	})
	return r
}

// guard refuses requests without the password.
func (r *privateRegistry) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if user, password, _ := request.BasicAuth(); user != registryUser || password != registryPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if request.Method == http.MethodGet {
			r.mu.Lock()
			r.reads[request.URL.Path]++
			r.mu.Unlock()
		}
		next.ServeHTTP(w, request)
	})
}

// listenAt listens in the network namespace of the process that a record of the cluster names.
func listenAt(record, address string) (net.Listener, error) {
	text, err := os.ReadFile(record)
	if err != nil {
		return nil, fmt.Errorf("find a node: %w", err)
	}
	var process struct{ PID int }
	if err := json.Unmarshal(text, &process); err != nil {
		return nil, fmt.Errorf("read %s: %w", record, err)
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", process.PID))
	if err != nil {
		return nil, fmt.Errorf("open the network namespace of %s: %w", record, err)
	}
	defer func() { _ = space.Close() }()
	var listener net.Listener
	done := make(chan error)
	go func() {
		// The thread is not unlocked, so that it ends with the goroutine and is not used by others.
		runtime.LockOSThread()
		err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			listener, err = net.Listen("tcp", address)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return nil, fmt.Errorf("listen in the network namespace of %s: %w", record, err)
	}
	return listener, nil
}

// secret returns the pull secret of the registry.
func (r *privateRegistry) secret(name string) *corev1.Secret {
	r.Helper()
	config, err := json.Marshal(map[string]any{"auths": map[string]any{r.address: map[string]string{"username": registryUser, "password": registryPassword}}})
	cluster.Must(r, err)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: config},
	}
}

// image is an image in the registry.
type image struct {
	// name is the name with the tag, and layer the path of its only layer in the registry.
	name, layer string
}

// push adds an image with busybox. Its content differs from that of all other images, so that a node has no part of it.
func (r *privateRegistry) push(repository, tag, unique string) image {
	r.Helper()
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	busybox, err := os.ReadFile("/bin/busybox")
	cluster.Must(r, err)
	for name, content := range map[string][]byte{"busybox": busybox, "unique": []byte(unique + tag)} {
		cluster.Must(r, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, err := archive.Write(content)
		cluster.Must(r, err)
	}
	cluster.Must(r, archive.Close())
	const prefix = "application/vnd.oci.image."
	type descriptor struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int    `json:"size"`
	}
	upload := func(mediaType string, content []byte) descriptor {
		d := descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(content)), Size: len(content)}
		r.send(http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+d.Digest, mediaType, content)
		return d
	}
	layer := upload(prefix+"layer.v1.tar", files.Bytes())
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/busybox"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	cluster.Must(r, err)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": prefix + "manifest.v1+json",
		"config": upload(prefix+"config.v1+json", config), "layers": []descriptor{layer},
	})
	cluster.Must(r, err)
	r.send(http.MethodPut, "/v2/"+repository+"/manifests/"+tag, prefix+"manifest.v1+json", manifest)
	return image{name: r.address + "/" + repository + ":" + tag, layer: "/v2/" + repository + "/blobs/" + layer.Digest}
}

func (r *privateRegistry) send(method, path, mediaType string, content []byte) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, "http://"+r.address+path, bytes.NewReader(content))
	cluster.Must(r, err)
	request.SetBasicAuth(registryUser, registryPassword)
	request.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(request)
	cluster.Must(r, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		r.Fatalf("%s %s: %s: %s", method, path, response.Status, strings.TrimSpace(string(text)))
	}
}

// pulled returns how often a path was read.
func (r *privateRegistry) pulled(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads[path]
}
