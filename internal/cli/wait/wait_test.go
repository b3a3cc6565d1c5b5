// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// database returns a primary, a secondary, and a pod of another application in another namespace.
func database() []client.Object {
	return []client.Object{
		builders.Pod("shop", "db-0").Label("app", "db").Label("role", "primary").
			Condition(corev1.PodCondition{Type: "db.io/caught-up", Status: corev1.ConditionTrue}).Build(),
		builders.Pod("shop", "db-1").Label("app", "db").Label("role", "secondary").Build(),
		builders.Pod("games", "game-0").Label("app", "game").Build(),
		set("arena", 1, "False"), set("lobby", 1, "True"),
	}
}

// set returns a CloneSet of generation 2 whose status has the observed generation and the condition Ready.
func set(name string, observed int64, ready corev1.ConditionStatus) *v1alpha1.CloneSet {
	return &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 2},
		Status: v1alpha1.CloneSetStatus{ObservedGeneration: observed, Conditions: []v1alpha1.CloneSetCondition{
			{Type: "Ready", Status: ready, Reason: "Updating", Message: "1 of 3 pods are updated"},
		}},
	}
}

// status changes the status of a set to that of another one.
func status(of *v1alpha1.CloneSet) change {
	return func(ctx context.Context, c client.Client) error {
		var current v1alpha1.CloneSet
		if err := c.Get(ctx, client.ObjectKeyFromObject(of), &current); err != nil {
			return err
		}
		current.Status = of.Status
		return c.Update(ctx, &current)
	}
}

// stalled returns a set that is Stalled.
func stalled(set *v1alpha1.CloneSet) *v1alpha1.CloneSet {
	set.Status.Conditions = append(set.Status.Conditions, v1alpha1.CloneSetCondition{Type: "Stalled", Status: "True", Message: "it has timed out"})
	return set
}

// change is a change of the cluster during a wait.
type change func(ctx context.Context, c client.Client) error

func setRole(pod, role string) change {
	return func(ctx context.Context, c client.Client) error {
		var current corev1.Pod
		if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: pod}, &current); err != nil {
			return err
		}
		current.Labels["role"] = role
		return c.Update(ctx, &current)
	}
}

func create(object client.Object) change {
	object.SetResourceVersion("")
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, object) }
}

func remove(object client.Object) change {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, object) }
}

func eventOf(pod, reason string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: pod + "." + strings.ToLower(reason)},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: pod, UID: builders.Pod("shop", pod).Build().UID},
		Reason:         reason, LastTimestamp: metav1.Now(),
	}
}

// wait runs the command in namespace shop, applies the changes one second after another, and returns
// the output, the exit code and the time that has passed. Requests for which refuse returns true are
// forbidden, and a list of objects with the label app=hangs is never answered. Sets must be listed once at most.
func wait(t *testing.T, changes []change, refuse func(any) bool, args ...string) (output string, code int, after time.Duration) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	var lists sync.Map // Collections are listed at the same time.
	name := func(o client.Object) []string { return []string{o.GetName()} }
	c := fakeapi.Client(t, database()...).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string {
			event, _ := o.(*corev1.Event)
			return []string{event.InvolvedObject.Kind}
		}).
		WithIndex(&corev1.Pod{}, metav1.ObjectNameField, name).
		WithIndex(&v1beta1.StatefulSet{}, metav1.ObjectNameField, name).
		WithIndex(&v1alpha1.CloneSet{}, metav1.ObjectNameField, name).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
				if refuse != nil && refuse(l) {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no role"))
				}
				if (&client.ListOptions{}).ApplyOptions(options).AsListOptions().LabelSelector == "app=hangs" {
					<-ctx.Done()
					return ctx.Err()
				}
				if _, is := l.(*unstructured.UnstructuredList); is {
					kind := l.GetObjectKind().GroupVersionKind().Kind
					if _, again := lists.LoadOrStore(kind, true); again {
						t.Errorf("%s is listed again", kind)
					}
				}
				return c.List(ctx, l, options...)
			},
			Watch: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
				events, err := c.Watch(ctx, l, options...)
				if _, is := l.(*unstructured.UnstructuredList); err != nil || !is {
					return events, err
				}
				// The fake client, unlike the API server, returns objects with types.
				return drained{watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
					content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event.Object)
					expect.Success(t, err)
					event.Object = &unstructured.Unstructured{Object: content}
					return event, true
				})}, nil
			},
		}).Build()
	flags := target.NewFlags(streams, "test", "wait")
	flags.Connect = func() (cluster.Connection, error) {
		namespace := "shop"
		if flags.Cluster.AllNamespaces {
			namespace = ""
		}
		return cluster.Connection{Client: c, Namespace: namespace}, nil
	}
	flags.Kubectl = func(_ context.Context, args []string) error {
		_, err := out.WriteString("kubectl " + strings.Join(args, " "))
		return err
	}
	command := newCommand(flags, "seamark")
	command.SilenceUsage = true
	command.SetArgs(args)
	command.SetOut(out)
	command.SetErr(errOut)
	start := time.Now()
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		for _, apply := range changes {
			<-time.After(time.Second)
			expect.Success(t, apply(t.Context(), c))
		}
	}()
	err := command.ExecuteContext(t.Context())
	after = time.Since(start)
	<-applied
	return out.String() + errOut.String(), exit.Code(err), after
}

// drained is a filter that can be stopped while it has an event that nobody receives.
type drained struct{ watch.Interface }

func (d drained) Stop() {
	d.Interface.Stop()
	for range d.ResultChan() {
		continue // The filter ends with the events.
	}
}

func TestWait(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		changes []change
		refuse  func(any) bool
		code    int
		after   time.Duration
		want    string
	}{
		"one pod is enough": {
			args: []string{"-l", "app=db", "--for", "label=role=primary", "--any"},
			want: "pods -l app=db label=role=primary: met\n",
		},
		"all pods must comply": {
			args: []string{"-l", "app=db", "--for", "label=role=primary"}, code: exit.Failed, after: defaultTimeout,
			want: "pods -l app=db label=role=primary: not met: db-1 has \"secondary\"\n" +
				"Error: 1 of 1 expressions not met after 30s; use --any if one pod is enough\n",
		},
		"a label changes": {
			args: []string{"db-1", "--for", "label=role=primary"}, changes: []change{setRole("db-0", "secondary"), setRole("db-1", "primary")},
			after: 2 * time.Second, want: "label=role=primary: met\n",
		},
		"a pod is created": {
			args:    []string{"-l", "app=cache", "--for", "condition=Ready"},
			changes: []change{create(builders.Pod("shop", "cache-0").Label("app", "cache").Condition(corev1.PodCondition{Type: "Ready", Status: "True"}).Build())},
			after:   time.Second, want: "condition=Ready: met\n",
		},
		"the pod that lacks the label is deleted": {
			args:    []string{"-l", "app=db", "--for", "label=role=primary"},
			changes: []change{remove(builders.Pod("shop", "db-1").Build())},
			after:   time.Second, want: "label=role=primary: met\n",
		},
		"all at the same time": {
			args: []string{"-l", "app=db", "--any", "--for", "label=role=primary", "--for", "pod/db-1 label=role=primary"},
			// db-0 is the primary at first, then none, then db-1.
			changes: []change{setRole("db-0", "secondary"), setRole("db-1", "primary")}, after: 2 * time.Second,
			want: "label=role=primary: met\npod/db-1 label=role=primary: met\n",
		},
		"an event occurs": {
			args: []string{"db-0", "--for", "event=KruiseProbeFailed"}, changes: []change{
				create(eventOf("db-1", "KruiseProbeFailed")), create(eventOf("db-0", "KruiseProbeFailed")),
			},
			after: 2 * time.Second, want: "event=KruiseProbeFailed: met\n",
		},
		"all namespaces": {
			args: []string{"-A", "--for", "pod/games/game-* label=app=game"}, want: "pod/games/game-* label=app=game: met\n",
		},
		"check once": {
			args: []string{"db-1", "--for", "label=role=primary", "--timeout", "0"}, code: exit.Failed,
			want: "pod/db-1 label=role=primary: not met: db-1 has \"secondary\"\nError: 1 of 1 expressions not met after 0s\n",
		},
		"no pod": {
			args: []string{"-l", "app=none", "--for", "label=!role", "--timeout", "1s"}, code: exit.Failed, after: time.Second,
			want: "pods -l app=none label=!role: not met: no pod matches\nError: 1 of 1 expressions not met after 1s\n",
		},
		"events are forbidden": {
			args: []string{"db-0", "--for", "event=Started"}, code: exit.Failed,
			refuse: func(o any) bool { _, is := o.(*corev1.EventList); return is }, want: "list events in namespace shop",
		},
		"no pods selected": {
			args: []string{"--for", "label=a"}, code: exit.Failed, want: "select pods: by their names, by --selector or --all, or by pod/NAME in each --for",
		},
		"no expression": {args: []string{"db-0"}, code: exit.Failed, want: "--for: required"},
		"bad expression": {
			args: []string{"db-0", "--for", "role=primary"}, code: exit.Failed,
			want: `--for: "role=primary" is invalid: requirement "role" must be one of condition=`,
		},
		"bad selector": {args: []string{"-l", "a b", "--for", "label=a"}, code: exit.Failed, want: `--selector: "a b" is invalid`},
		"bad timeout": {
			args: []string{"db-0", "--for", "label=a", "--timeout", "-1s"}, code: exit.Failed, want: "--timeout: -1s is invalid: must be 0 or more",
		},
		"kubectl waits for the deletion of a pod": {
			args: []string{"pod/db-0", "db-1", "--for", "delete"}, want: "kubectl wait --for=delete -- pod/db-0 pod/db-1",
		},
		"kubectl waits for a field of pods": {
			args: []string{"-l", "app=db", "--for", "jsonpath={.status.phase}=Running"},
			want: "kubectl wait --for=jsonpath={.status.phase}=Running --selector=app=db -- pods",
		},
		"deletion and a label": {
			args: []string{"db-0", "--for", "delete", "--for", "label=a"}, code: exit.Failed, want: "--for: create, delete and jsonpath must be",
		},
		"deletion of no pods":  {args: []string{"--for", "delete"}, code: exit.Failed, want: "select pods: by their names, or by --selector"},
		"deletion of all pods": {args: []string{"pod", "--all", "--for", "delete"}, want: "kubectl wait --all=true --for=delete -- pods"},
		"a kind as in kubectl": {
			args: []string{"pod", "db-0", "--for", "label=a"}, code: exit.Failed, want: `"pod" is invalid: must be NAME or pod/NAME, without a kind`,
		},
		"kinds of kubectl":  {args: []string{"deploy,sts.apps", "a", "--for", "create"}, want: "kubectl wait --for=create -- deploy,sts.apps a"},
		"kinds, no name":    {args: []string{"cloneset,asts", "--for", "create"}, code: exit.Failed, want: "a name is required: cloneset,asts NAME"},
		"name and selector": {args: []string{"pod/db-0", "-l", "app=db", "--for", "label=a"}, code: exit.Failed, want: "must not be used with the name"},
		"all and selector":  {args: []string{"pod", "--all", "-l", "app=db", "--for", "label=a"}, code: exit.Failed, want: "--all: must not be used with"},
		"pods with labels, as in kubectl": {
			args: []string{"pod", "-l", "app=db", "--for", "label=role=primary", "--any"}, want: "pods -l app=db label=role=primary: met\n",
		},
		"all pods": {args: []string{"pods", "--all", "--for", "label=role=primary", "--any"}, want: "pods --all label=role=primary: met\n"},
		"all pods, and a name": {
			args: []string{"--all", "db-0", "--for", "label=a"}, code: exit.Failed,
			want: `--for: "label=a" is invalid: must be one of condition=TYPE[=STATUS], jsonpath={PATH}[=VALUE], create, delete, because "db-0" names no pods`,
		},
		"kubectl ignores the case of a form": {args: []string{"deployment/web", "--for", "Delete"}, want: "kubectl wait --for=Delete -- deployment/web"},
		"all sets of two kinds": {
			args: []string{"cloneset,statefulset", "--all", "--for", "jsonpath={.status.observedGeneration}=2"},
			// A set that is created later does not count.
			changes: []change{create(set("new", 1, "True")), status(set("arena", 2, "True")), status(set("lobby", 2, "True"))}, after: 3 * time.Second,
			want: "cloneset.apps.kruise.io/arena jsonpath={.status.observedGeneration}=2: met\ncloneset.apps.kruise.io/lobby",
		},
		"no set with the labels": {args: []string{"clone", "-l", "app=none", "--for", "create"}, code: exit.Failed, want: "no matching resources found"},
		"the first list hangs": {
			args: []string{"cloneset", "-l", "app=hangs", "--for", "delete", "--timeout", "2s"}, code: exit.Failed, after: 2 * time.Second,
			want: "Error: the cluster has not answered within --timeout=2s",
		},
		"no set to be deleted": {args: []string{"cloneset", "-l", "app=none", "--for", "delete"}},
		"another group with labels": {
			args: []string{"deployment", "-l", "app=web", "-A", "--for", "delete"}, want: "kubectl wait --all-namespaces=true --for=delete --selector=app=web -- deployment",
		},
		"all of another group": {args: []string{"deployment", "--all", "--for", "delete"}, want: "kubectl wait --all=true --for=delete -- deployment"},
		"a set is ready": {
			args: []string{"cloneset/arena", "--for", "condition=Ready"}, changes: []change{status(set("arena", 1, "True")), status(set("arena", 2, "True"))},
			after: 2 * time.Second, want: "cloneset.apps.kruise.io/arena condition=Ready: met\n",
		},
		"the status of a set is of an earlier generation": {
			args: []string{"clone", "lobby", "--for", "condition=Ready", "--timeout", "5s"}, code: exit.Failed, after: 5 * time.Second,
			want: "cloneset.apps.kruise.io/lobby condition=Ready: not met: generation 2 is not processed yet (observed 1)\n" +
				"Error: 1 of 1 expressions not met after 5s\n",
		},
		"a set is not ready": {
			args: []string{"cloneset/arena", "--for", "condition=Ready"}, changes: []change{status(set("arena", 2, "False"))}, code: exit.Failed,
			after: defaultTimeout, want: "condition=Ready: not met: False: Updating: 1 of 3 pods are updated\n",
		},
		"a set is stalled": {
			args: []string{"cloneset/arena", "--for", "condition=Ready"}, changes: []change{status(stalled(set("arena", 2, "False")))}, code: exit.Failed,
			after: time.Second, want: "cloneset.apps.kruise.io/arena is stalled: it has timed out",
		},
		"a set is stalled, which is waited for": {
			args: []string{"cloneset/arena", "--for", "condition=Stalled"}, changes: []change{status(stalled(set("arena", 2, "False")))},
			after: time.Second, want: "condition=Stalled: met\n",
		},
		"sets of two kinds are deleted": {
			args: []string{"cloneset,asts", "arena", "--for", "delete"}, changes: []change{remove(set("arena", 0, ""))},
			after: time.Second, want: "cloneset.apps.kruise.io/arena delete: met\nstatefulset.apps.kruise.io/arena delete: met\n",
		},
		"a set is deleted and created": {
			args: []string{"cloneset/arena", "--for", "delete", "--timeout", "5s"}, after: time.Second, want: "delete: met\n",
			changes: []change{func(ctx context.Context, c client.Client) error {
				other := set("arena", 2, "True")
				other.UID = "other"
				return errors.Join(remove(set("arena", 0, ""))(ctx, c), create(other)(ctx, c))
			}},
		},
		"a set that is waited for is deleted": {
			args: []string{"cloneset/arena", "--for", "condition=Ready"}, changes: []change{remove(set("arena", 0, ""))}, code: exit.Failed,
			after: time.Second, want: "cloneset.apps.kruise.io/arena has been deleted",
		},
		"a set does not exist": {args: []string{"clone", "area", "--for", "condition=Ready"}, code: exit.Failed, want: "/area not found in namespace shop"},
		"a set is created, and ready": {
			args:    []string{"cloneset/new", "--for", "create", "--for", "condition=Ready=True"},
			changes: []change{create(set("new", 1, "True")), status(set("new", 2, "True"))}, after: 2 * time.Second,
			want: "cloneset.apps.kruise.io/new create: met\ncloneset.apps.kruise.io/new condition=Ready=True: met\n",
		},
		"two sets": {
			args:    []string{"cloneset", "arena", "lobby", "--for", "jsonpath={.status.observedGeneration}=2"},
			changes: []change{status(set("arena", 2, "True")), status(set("lobby", 2, "True"))}, after: 2 * time.Second,
			want: "cloneset.apps.kruise.io/arena jsonpath={.status.observedGeneration}=2: met\ncloneset.apps.kruise.io/lobby",
		},
		"sets are forbidden": {
			args: []string{"cloneset/arena", "--for", "condition=Ready"}, code: exit.Failed,
			refuse: func(o any) bool { _, is := o.(*unstructured.UnstructuredList); return is }, want: "list clonesets.apps.kruise.io in namespace shop",
		},
		"a requirement of pods for a set": {
			args: []string{"cloneset/arena", "--for", "label=a"}, code: exit.Failed, want: `--for: "label=a" is invalid: must be one of condition=TYPE[=STATUS]`,
		},
		"a set and a pod":         {args: []string{"pod/db-0", "cloneset/arena", "--for", "condition=Ready"}, code: exit.Failed, want: `"pod/db-0" is invalid`},
		"any set":                 {args: []string{"cloneset/arena", "--any", "--for", "delete"}, code: exit.Failed, want: "--any and --all-namespaces"},
		"no expression for a set": {args: []string{"cloneset/arena"}, code: exit.Failed, want: "--for: required"},
		"another group": {
			args: []string{"deployment/web", "--for", "condition=Available=True", "--timeout", "1m"},
			want: "kubectl wait --for=condition=Available=True --timeout=1m0s -- deployment/web",
		},
		"two expressions for another group": {
			args: []string{"deployment/web", "--for", "create", "--for", "delete"}, code: exit.Failed, want: `--for: "delete" is invalid: must be one`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				output, code, after := wait(t, test.changes, test.refuse, test.args...)
				if !strings.Contains(output, test.want) {
					t.Errorf("output:\n%s\nwant:\n%s", output, test.want)
				}
				if code != test.code || after != test.after {
					t.Errorf("exit code %d after %s, want %d after %s", code, after, test.code, test.after)
				}
			})
		})
	}
}
