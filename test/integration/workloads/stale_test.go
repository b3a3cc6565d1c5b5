// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/await"
)

// lateWatch is a connection whose watches of CloneSets deliver nothing while it is held. It counts the
// reads of single CloneSets and the deletions of pods.
type lateWatch struct {
	base           http.RoundTripper
	held           sync.RWMutex
	reads, deletes atomic.Int32
}

func (l *lateWatch) RoundTrip(request *http.Request) (*http.Response, error) {
	path, watch := request.URL.Path, request.URL.Query().Get("watch") != ""
	switch {
	case request.Method == http.MethodDelete && strings.Contains(path, "/pods/"):
		l.deletes.Add(1)
	case request.Method == http.MethodGet && strings.Contains(path, "/clonesets/"):
		l.reads.Add(1)
	}
	response, err := l.base.RoundTrip(request)
	if err == nil && watch && strings.HasSuffix(path, "/clonesets") {
		response.Body = &lateBody{ReadCloser: response.Body, held: &l.held}
	}
	return response, err
}

type lateBody struct {
	io.ReadCloser
	held *sync.RWMutex
}

func (b *lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.held.RLock()
	defer b.held.RUnlock()
	return n, err
}

// TestOldCacheDeletesNoPods scales out and adds a pod, as another leader does, while the cache of the
// program has the earlier number of replicas.
func TestOldCacheDeletesNoPods(t *testing.T) {
	w := newWorldWithoutProgram(t)
	late := &lateWatch{}
	w.startWith(func(o *workloads.Options) {
		o.Config.Wrap(func(base http.RoundTripper) http.RoundTripper {
			late.base = base
			return late
		})
	})
	set := w.cloneSet("web", 2)
	w.settled(set, 2, "image:1")
	late.held.Lock()
	release := sync.OnceFunc(late.held.Unlock)
	defer release()
	w.must(w.client.Patch(t.Context(), set, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))))
	pods, err := w.pods(t.Context(), "web")
	w.must(err)
	for _, pod := range pods {
		extra := pod.DeepCopy()
		extra.ObjectMeta = metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: "web-extra", Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences,
		}
		extra.Labels[v1alpha1.CloneSetInstanceID], extra.Annotations[v1alpha1.PodSerialAnnotationKey] = "extra", "3"
		extra.Spec.NodeName = ""
		w.must(w.client.Create(t.Context(), extra))
		break
	}
	await.Until(t, "the program decides to delete a pod", func(context.Context) (string, error) {
		if late.reads.Load() == 0 && late.deletes.Load() == 0 {
			return "no request", nil
		}
		return "", nil
	})
	release()
	w.settled(set, 3, "image:1")
	if pods, err = w.pods(t.Context(), "web"); err != nil || pods["web-extra"] == nil || late.deletes.Load() > 0 {
		t.Errorf("%d deletions, %v, want that the pod of the scale-out stays", late.deletes.Load(), err)
	}
}
