// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// seamark runs a command in the namespace, and checks its exit code and that the output has the texts in order.
func (w *world) seamark(kubeconfig, command string, code int, want ...string) {
	w.Helper()
	var out bytes.Buffer
	root := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, "seamark", "test")
	root.SetArgs(append(strings.Fields(command), "--kubeconfig="+kubeconfig, "--namespace="+w.Namespace))
	err := root.ExecuteContext(w.Context())
	text := out.String()
	expect.Equal(w, "exit code of "+command+": "+text, code, exit.Code(err))
	for _, part := range want {
		_, after, found := strings.Cut(text, part)
		if !found {
			w.Fatalf("%s: %q is missing in:\n%s", command, part, out.String())
		}
		text = after
	}
}

// TestRollouts runs the commands of rollouts on a set of each kind, as a user would: an update is watched and undone, the set
// is restarted, paused and resumed.
func TestRollouts(t *testing.T) {
	w := newWorld(t)
	config := env.Kubeconfig(t, w.Config)
	const replicas = 3
	for name, set := range map[string]client.Object{
		"cloneset/arena": w.cloneSet("arena", replicas, func(set *v1alpha1.CloneSet) {
			set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
		}),
		"statefulset/db": w.statefulSet("db", replicas, parallel, func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdateStrategyType}
		}),
	} {
		kind, short, _ := strings.Cut(name, "/")
		full := kind + ".apps.kruise.io/" + short
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK, fmt.Sprintf("%s %q successfully rolled out", kind, short))
		w.seamark(config, "rollout undo "+name, exit.Failed, "no rollout history found")
		const image = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`
		w.Patch(set, image)
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK, "Waiting for ", fmt.Sprintf("%s %q successfully rolled out", kind, short))
		w.settled(set, replicas, "image:2")
		w.seamark(config, "rollout history "+name, exit.OK, full, "REVISION", "1 ", "2 ", "spec.containers[main].image: image:1 → image:2")
		w.seamark(config, "rollout history "+name+" --revision=1", exit.OK, full+" with revision #1", "image: image:1")
		w.seamark(config, "rollout history "+name+" --revision=7", exit.Failed, "revision 7 not found: its revisions are 1, 2")

		w.seamark(config, "rollout undo "+name+" --dry-run=server", exit.OK, "revision 1: 3 pods to update in place", "rolled back (server dry run)")
		w.Get(set)
		w.settled(set, replicas, "image:2")
		w.seamark(config, "rollout undo "+name, exit.OK, full+": revision 1: 3 pods to update in place", full+" rolled back")
		w.settled(set, replicas, "image:1")

		before := w.stored(short)
		w.seamark(config, "rollout restart "+name, exit.OK, full+" restarted")
		w.seamark(config, "rollout status "+name+" --timeout=1m", exit.OK, "successfully rolled out")
		for pod, after := range w.stored(short) {
			if old := before[pod]; old != nil && old.UID == after.UID {
				t.Errorf("%s: pod %s is not recreated by a restart", name, pod)
			}
		}

		w.seamark(config, "rollout pause "+name, exit.OK, full+" paused")
		w.seamark(config, "rollout pause "+name, exit.Failed, full+" is already paused")
		w.Patch(set, image)
		w.seamark(config, "rollout status "+name+" --timeout=2s", exit.Failed, "timed out after 2s: the update is paused: 0 of 3 pods are updated")
		w.seamark(config, "rollout restart "+name, exit.Failed, "cannot be restarted while it is paused")
		w.seamark(config, "rollout resume "+name, exit.OK, full+" resumed")
		w.seamark(config, "rollout status -l kind=none "+kind, exit.Failed, "no "+kind+"s with the labels kind=none")
		w.seamark(config, "rollout status "+kind+" "+short+" --timeout=1m", exit.OK, "successfully rolled out")
		w.settled(set, replicas, "image:2")
		w.Delete(set)
		w.seamark(config, "rollout status "+name, exit.Failed, full+" not found in namespace "+w.Namespace)
	}
}
