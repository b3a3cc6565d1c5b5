// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	// images is the folder of the screenshots.
	images = "../../docs/images"
	// elements lists what the screenshots show.
	elements = "testdata/screenshot.txt"
	// maxBytes is the maximum size of a screenshot.
	maxBytes = 150_000
)

// TestScreenshots checks that the screenshots in the documents show the elements that the page has now. With
// UPDATE_SCREENSHOTS=1 it takes them.
func TestScreenshots(t *testing.T) {
	_, p := showSets(t, withSets(), "?pod=games/game-server-7")
	equal(p, shown, 41)
	p.await("document.querySelector('.timeline .line')")
	p.size(1280, 860)
	var lines []string
	for _, node := range p.tree() {
		// The times differ in each run.
		if node.role != "graphics-symbol" && !strings.HasPrefix(node.name, "game-server#idle from ") {
			lines = append(lines, strings.TrimSpace(node.role+" "+node.name))
		}
	}
	shows := strings.Join(lines, "\n") + "\n"
	update := os.Getenv("UPDATE_SCREENSHOTS") != ""
	for _, theme := range []string{"light", "dark"} {
		path := filepath.Join(images, "ui-"+theme+".png")
		if update {
			p.prefer(theme)
			if err := os.WriteFile(path, reduce(t, get(p, chromedp.CaptureScreenshot())), 0o644); err != nil { //nolint:gosec // documents are readable
				t.Fatal(err)
			}
		}
		checkImage(t, path)
	}
	if update {
		if err := os.WriteFile(elements, []byte(shows), 0o644); err != nil { //nolint:gosec // documents are readable
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(elements)
	expect.NoError(t, err)
	if diff := gocmp.Diff(string(want), shows); diff != "" {
		t.Errorf("the screenshots are not current: run UPDATE_SCREENSHOTS=1 make test-ui (-screenshot +page):\n%s", diff)
	}
}

func checkImage(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	expect.NoError(t, err)
	config, err := png.DecodeConfig(bytes.NewReader(data))
	expect.NoError(t, err)
	if len(data) > maxBytes || config.Width != 1280 || config.Height != 860 {
		t.Errorf("%s has %d bytes and %dx%d pixels, want at most %d bytes and 1280x860 pixels", path, len(data), config.Width, config.Height, maxBytes)
	}
}

// reduce returns the image with the 256 most frequent colors: the others are shades at the edges of letters.
func reduce(t *testing.T, data []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(data))
	expect.NoError(t, err)
	bounds := full.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		c, _ := color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)
		return c
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(key(a), key(b)))
	})
	palette := color.Palette{}
	for _, c := range frequent[:min(256, len(frequent))] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8, len(count))
	for c := range count {
		nearest[c] = uint8(palette.Index(c)) //nolint:gosec // at most 256 colors
	}
	reduced := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			reduced.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	expect.NoError(t, encoder.Encode(&out, reduced))
	return out.Bytes()
}

func key(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }

// States of probes. none is that of a probe that has not run.
const (
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
	unknown   = v1alpha1.ProbeUnknown
	none      = v1alpha1.ProbeState("")
)

func markerOf(namespace, name string) model.Marker {
	return model.Marker{Namespace: namespace, Name: name, Probes: 1}
}

// probe returns a row of the first probe of a marker, whose state began so long ago.
func probe(marker, name string, state v1alpha1.ProbeState, age time.Duration, message string) probestatus.Row {
	row := probestatus.Row{Marker: marker, Probe: name, Container: "main", State: state, Message: message}
	if state != none {
		row.Source, row.LastTransitionTime = probestatus.SourceReport, metav1.NewTime(time.Now().Add(-age).Truncate(time.Second))
	}
	return row
}

func marked(row probestatus.Row, kind mark.Kind, name, value string) probestatus.Row {
	row.Marks = append(row.Marks, probestatus.Mark{Kind: kind, Name: name, Value: value})
	return row
}

// troubled adds a problem to a row.
func troubled(row probestatus.Row, reason diagnosis.Reason, message string) probestatus.Row {
	row.Problem = &probestatus.Problem{Reason: reason, Message: message}
	return row
}

func podOf(namespace, kind, workload, name, node string, rows ...probestatus.Row) model.Pod {
	builder := builders.Pod(namespace, name).Node(node).UID("uid-" + namespace + "-" + name)
	if kind == "Deployment" {
		kind, workload = "ReplicaSet", workload+"-"+hash
		builder = builder.Label(appsv1.DefaultDeploymentUniqueLabelKey, hash)
	}
	if kind != "" {
		builder = builder.Owner(metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: kind, Name: workload, Controller: new(true)})
	}
	if node == "" {
		builder = builder.Phase(corev1.PodPending)
	}
	object := builder.Build()
	object.CreationTimestamp = metav1.NewTime(time.Now().Add(-3 * time.Hour).Truncate(time.Second))
	for i := range rows {
		rows[i].Namespace, rows[i].Pod, rows[i].UID, rows[i].Node = namespace, name, object.UID, node
	}
	pod, found := model.PodOf(object, rows)
	if !found {
		panic("a pod without rows")
	}
	return pod
}

func changeOf(pod model.Pod, state v1alpha1.ProbeState, age time.Duration, message string) history.Event {
	at := time.Now().Add(-age).Truncate(time.Second)
	return history.Event{
		Probe: history.Probe{UID: pod.UID, ID: identity.ID{Marker: pod.Probes[0].Marker, Probe: pod.Probes[0].Probe}},
		State: state, Message: message, Count: 1, First: at, Last: at,
	}
}

// hash is that of the pod templates of Deployments.
const hash = "7d5c9f7d4b"

// nodeOf spreads pods over four nodes.
func nodeOf(index int) string { return fmt.Sprintf("node-%d", index%4+1) }

// sample returns a source with some workloads in each state. It has 4 markers and 41 pods: 7 have
// failed, 2 are unknown, 2 have no state.
func sample() *world {
	w := newWorld([]model.Marker{
		{Namespace: "games", Name: "game-server", Probes: 1},
		{Namespace: "games", Name: "lobby", Probes: 1, Invalid: "spec.probes[0].markerPolicy[0].labels: an empty key is not allowed"},
		{Namespace: "shop", Name: "checkout", Probes: 1},
		{Namespace: "shop", Name: "database-role", Probes: 1},
	})
	for i := range 24 {
		row := marked(probe("game-server", "idle", succeeded, time.Duration(2+i)*time.Minute, "0 players"),
			mark.KindAnnotation, corev1.PodDeletionCost, "-10")
		switch i {
		case 7, 11, 16, 21:
			row = marked(probe("game-server", "idle", failed, time.Duration(1+i)*time.Minute, fmt.Sprintf("%d players", i%9+1)),
				mark.KindAnnotation, corev1.PodDeletionCost, "200")
		case 4, 19:
			row = probe("game-server", "idle", unknown, 40*time.Second, "timed out after 1s")
		}
		w.set(podOf("games", "StatefulSet", "game-server", fmt.Sprintf("game-server-%d", i), nodeOf(i), row))
	}
	for i := range 14 {
		row := marked(probe("checkout", "drained", succeeded, time.Hour, "no open orders"), mark.KindCondition, "example.com/Drained", "True")
		name := fmt.Sprintf("checkout-%s-x%c2k%d", hash, 'b'+rune(i), i%9)
		node := nodeOf(i)
		switch i {
		case 3, 9:
			row = troubled(probe("checkout", "drained", failed, 9*time.Minute, ""), diagnosis.Reason(v1alpha1.ProbeCannotRun),
				`probe cannot be run: exec: "/opt/drained": no such file or directory`)
		case 6:
			row = probe("checkout", "drained", failed, 3*time.Minute, "12 orders are open")
		case 12:
			row = troubled(probe("checkout", "drained", none, 0, ""), diagnosis.NoPlan, "node node-9 has no NodePodProbe")
			node = "node-9"
		case 13:
			row = troubled(probe("checkout", "drained", none, 0, ""), diagnosis.PodNotBound, "pod is not bound to a node")
			node = ""
		}
		w.set(podOf("shop", "Deployment", "checkout", name, node, row))
	}
	for i := range 3 {
		role := map[bool]string{true: "primary", false: "secondary"}[i == 0]
		w.set(podOf("shop", "StatefulSet", "database", fmt.Sprintf("database-%d", i), nodeOf(i),
			marked(probe("database-role", "role", succeeded, 25*time.Minute, role), mark.KindLabel, "role", role)))
	}
	w.addHistory()
	return w
}

// addHistory adds the last hour of two pods.
func (w *world) addHistory() {
	pod := w.pods["games/game-server-7"]
	w.record(changeOf(pod, succeeded, 55*time.Minute, "0 players"), changeOf(pod, failed, 47*time.Minute, "3 players"),
		changeOf(pod, succeeded, 33*time.Minute, "0 players"), changeOf(pod, failed, 8*time.Minute, "8 players"))
	primary := w.pods["shop/database-0"]
	w.record(changeOf(primary, failed, 50*time.Minute, "secondary"), changeOf(primary, succeeded, 25*time.Minute, "primary"))
}
