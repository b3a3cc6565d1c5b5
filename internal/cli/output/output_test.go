// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/test/expect"
)

func noon() time.Time { return time.Date(2030, 1, 2, 12, 0, 0, 345_678_900, time.UTC) }

func at(change local.Change) local.Change {
	change.Time, change.Namespace, change.Pod = noon(), "default", "web-0"
	return change
}

func started(yes bool) *bool { return &yes }

// example is a change and its printed forms.
type example struct {
	change     local.Change
	json, text string
}

// examples returns every kind of change with its printed forms.
func examples() map[string]example {
	return map[string]example{
		"pod": {
			change: local.Change{Kind: local.KindPod, Phase: corev1.PodRunning},
			json:   `{"kind":"Pod","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","phase":"Running"}`,
			text:   `web-0  Pod         Running`,
		},
		"running container": {
			change: local.Change{Kind: local.KindContainer, Container: "web", Status: &corev1.ContainerStatus{
				Name: "web", Ready: true, Started: started(true),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon())}},
			}},
			json: `{"kind":"Container","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"containerStatus":{"ready":true,"started":true,"restartCount":0,"state":{"running":{"startedAt":"2030-01-02T12:00:00Z"}}}}`,
			text: `web-0  Container   web running, ready`,
		},
		"restarted container": {
			change: local.Change{Kind: local.KindContainer, Container: "web", Status: &corev1.ContainerStatus{
				Name: "web", RestartCount: 2,
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: 1, Reason: "Error", StartedAt: metav1.NewTime(noon()), FinishedAt: metav1.NewTime(noon()), ContainerID: "local://7",
				}},
			}},
			json: `{"kind":"Container","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"containerStatus":{"ready":false,"started":false,"restartCount":2,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}},` +
				`"lastState":{"terminated":{"exitCode":1,"reason":"Error","startedAt":"2030-01-02T12:00:00Z","finishedAt":"2030-01-02T12:00:00Z","containerID":"local://7"}}}}`,
			text: `web-0  Container   web waiting (CrashLoopBackOff): back-off 10s, restarts 2`,
		},
		"probe of a marker": {
			change: local.Change{Kind: local.KindProbe, Container: "web", Probe: &local.ProbeChange{
				Type: local.ProbeMarker, Marker: "web", Name: "idle", Container: "web", Handler: "exec", Active: true,
				State: "Succeeded", Message: "idle", LastTransition: noon(), Transition: true,
				Ran: true, Success: true, Output: "idle", LastProbe: noon(), Streak: 1, Threshold: 1, Runs: 1,
			}},
			json: `{"kind":"Probe","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"probe":{"type":"Marker","marker":"web","name":"idle","handler":"exec","active":true,"state":"Succeeded","message":"idle",` +
				`"lastTransitionTime":"2030-01-02T12:00:00.345678Z","transition":true,"ran":true,"result":"Success","output":"idle",` +
				`"lastProbeTime":"2030-01-02T12:00:00.345678Z","streak":1,"threshold":1,"runs":1}}`,
			text: `web-0  Probe       web web#idle succeeded 1/1, now Succeeded: idle`,
		},
		"first failure of a liveness probe": {
			change: local.Change{Kind: local.KindProbe, Container: "web", Probe: &local.ProbeChange{
				Type: local.ProbeLiveness, Container: "web", Handler: "httpGet", Active: true,
				State: "Succeeded", Message: "", LastTransition: noon(),
				Ran: true, Output: "HTTP probe failed with statuscode: 500", LastProbe: noon(), Streak: 1, Threshold: 3, Runs: 4,
			}},
			json: `{"kind":"Probe","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"probe":{"type":"Liveness","handler":"httpGet","active":true,"state":"Succeeded","message":"",` +
				`"lastTransitionTime":"2030-01-02T12:00:00.345678Z","transition":false,"ran":true,"result":"Failure","output":"HTTP probe failed with statuscode: 500",` +
				`"lastProbeTime":"2030-01-02T12:00:00.345678Z","streak":1,"threshold":3,"runs":4}}`,
			text: `web-0  Probe       web liveness failed 1/3: HTTP probe failed with statuscode: 500`,
		},
		"probe with error": {
			change: local.Change{Kind: local.KindProbe, Container: "web", Probe: &local.ProbeChange{
				Type: local.ProbeReadiness, Container: "web", Handler: "grpc", Active: true, Ran: true, Error: "no such service", LastProbe: noon(), Runs: 1,
			}},
			json: `{"kind":"Probe","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"probe":{"type":"Readiness","handler":"grpc","active":true,"message":"","transition":false,"ran":true,"error":"no such service",` +
				`"lastProbeTime":"2030-01-02T12:00:00.345678Z","streak":0,"threshold":0,"runs":1}}`,
			text: `web-0  Probe       web readiness could not be run: no such service`,
		},
		"probe of a container that ended": {
			change: local.Change{Kind: local.KindProbe, Container: "web", Probe: &local.ProbeChange{
				Type: local.ProbeMarker, Marker: "web", Name: "idle", Container: "web", Handler: "exec",
				State: "Failed", Message: "container is not running", LastTransition: noon(), Transition: true,
			}},
			json: `{"kind":"Probe","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"probe":{"type":"Marker","marker":"web","name":"idle","handler":"exec","active":false,"state":"Failed","message":"container is not running",` +
				`"lastTransitionTime":"2030-01-02T12:00:00.345678Z","transition":true,"ran":false,"streak":0,"threshold":0,"runs":0}}`,
			text: `web-0  Probe       web web#idle Failed: container is not running`,
		},
		"condition": {
			change: local.Change{Kind: local.KindCondition, Condition: &corev1.PodCondition{
				Type: "Ready", Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
				Message: "containers with unready status: [web]", LastTransitionTime: metav1.NewTime(noon()),
			}},
			json: `{"kind":"Condition","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0",` +
				`"condition":{"type":"Ready","status":"False","reason":"ContainersNotReady","message":"containers with unready status: [web]","lastTransitionTime":"2030-01-02T12:00:00.345678Z"}}`,
			text: `web-0  Condition   Ready=False (ContainersNotReady): containers with unready status: [web]`,
		},
		"removed condition": {
			change: local.Change{Kind: local.KindCondition, Removed: true, Condition: &corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue}},
			json: `{"kind":"Condition","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0",` +
				`"condition":{"type":"game.io/idle","status":"True"},"removed":true}`,
			text: `web-0  Condition   game.io/idle=True removed`,
		},
		"label": {
			change: local.Change{Kind: local.KindLabel, Key: "role", Value: "primary"},
			json:   `{"kind":"Label","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","label":{"key":"role","value":"primary"}}`,
			text:   `web-0  Label       role=primary`,
		},
		"removed label": {
			change: local.Change{Kind: local.KindLabel, Key: "role", Value: "", Removed: true},
			json:   `{"kind":"Label","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","label":{"key":"role","value":""},"removed":true}`,
			text:   `web-0  Label       role= removed`,
		},
		"annotation": {
			change: local.Change{Kind: local.KindAnnotation, Key: "example.com/note", Value: "a<b\nc"},
			json:   `{"kind":"Annotation","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","annotation":{"key":"example.com/note","value":"a<b\nc"}}`,
			text:   `web-0  Annotation  example.com/note=a<b c`,
		},
		"event": {
			change: local.Change{Kind: local.KindEvent, Container: "web", Event: &local.PodEvent{
				Type: "Warning", Reason: "Unhealthy", Message: "Liveness probe failed: cat: no such file\n",
			}},
			json: `{"kind":"Event","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"event":{"type":"Warning","reason":"Unhealthy","message":"Liveness probe failed: cat: no such file\n"}}`,
			text: `web-0  Event       Warning Unhealthy: Liveness probe failed: cat: no such file`,
		},
		"log": {
			change: local.Change{Kind: local.KindLog, Container: "web", Log: &local.LogLine{Stream: "stderr", Text: "listening"}},
			json: `{"kind":"Log","time":"2030-01-02T12:00:00.345678Z","namespace":"default","pod":"web-0","container":"web",` +
				`"log":{"stream":"stderr","text":"listening"}}`,
			text: `web-0  Log         web stderr: listening`,
		},
	}
}

func TestJSON(t *testing.T) {
	for name, test := range examples() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			expect.NoError(t, output.NewJSON(&out).Print(at(test.change)))
			var want, got any
			expect.NoError(t, errors.Join(json.Unmarshal([]byte(test.json), &want), json.Unmarshal(out.Bytes(), &got)))
			if diff := cmp.Diff(want, got); diff != "" || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("%s (-want +got):\n%s", &out, diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	for name, test := range examples() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			expect.NoError(t, output.NewText(&out, nil, false).Print(at(test.change)))
			want := noon().Local().Format("15:04:05.000") + "  " + test.text + "\n"
			expect.Equal(t, "", want, out.String())
		})
	}
}

func TestTextAlignsPods(t *testing.T) {
	var out bytes.Buffer
	text := output.NewText(&out, []string{"web-0", "database-0"}, false)
	expect.NoError(t, text.Print(at(local.Change{Kind: local.KindPod, Phase: corev1.PodPending})))
	if want := "  web-0       Pod         Pending\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q does not end with %q", out.String(), want)
	}
}

// Text prints a run of a probe only if it differs from the previous one.
func TestTextOmitsRepeatedResults(t *testing.T) {
	run := func(success bool, streak int, transition bool) local.Change {
		return at(local.Change{Kind: local.KindProbe, Container: "web", Probe: &local.ProbeChange{
			Type: local.ProbeLiveness, Container: "web", Ran: true, Runs: 1,
			Success: success, Streak: streak, Threshold: 3, Transition: transition, State: "Failed",
		}})
	}
	waiting := at(local.Change{Kind: local.KindProbe, Container: "web", Probe: &local.ProbeChange{Type: local.ProbeLiveness, Container: "web"}})
	var out bytes.Buffer
	text := output.NewText(&out, nil, false)
	for _, change := range []local.Change{
		waiting, run(true, 1, false), run(true, 2, false), run(false, 1, false), run(false, 2, false), run(false, 3, true), run(false, 4, false), run(true, 1, false),
	} {
		expect.NoError(t, text.Print(change))
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		_, line, _ = strings.Cut(line, "liveness ")
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{"succeeded 1/3", "failed 1/3", "failed 3/3, now Failed", "succeeded 1/3"}
	expect.Equal(t, "lines", want, got)
}
