// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auditor watches all versions of the pods, and finds two of a group with the marks.
type auditor struct {
	w    watch.Interface
	done chan struct{}
	mu   sync.Mutex
	// marked has the groups of the pods with the marks.
	marked  map[string]string
	takes   int
	problem string
}

func audit(w *world) *auditor {
	w.Helper()
	c, err := client.NewWithWatch(w.Config, client.Options{Scheme: w.Client.Scheme()})
	w.Must(err)
	events, err := c.Watch(context.Background(), &corev1.PodList{}, client.InNamespace(w.Namespace))
	w.Must(err)
	a := &auditor{w: events, done: make(chan struct{}), marked: map[string]string{}}
	go a.run()
	return a
}

func (a *auditor) run() {
	defer close(a.done)
	for event := range a.w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		a.mu.Lock()
		_, annotated := pod.Annotations["db.io/since"]
		now := event.Type != watch.Deleted && (pod.Labels["role"] == "primary" || annotated)
		if _, before := a.marked[pod.Name]; now && !before {
			a.takes++
		}
		delete(a.marked, pod.Name)
		var all []string
		if now {
			group := pod.Labels["shard"]
			a.marked[pod.Name] = group
			for name, of := range a.marked {
				if of == group {
					all = append(all, name)
				}
			}
		}
		if len(all) > 1 && a.problem == "" {
			a.problem = fmt.Sprintf("at resource version %s, pods %v have the marks", pod.ResourceVersion, all)
		}
		a.mu.Unlock()
	}
}

func (a *auditor) stop() (takes int, problem string) {
	a.w.Stop()
	<-a.done
	return a.takes, a.problem
}
