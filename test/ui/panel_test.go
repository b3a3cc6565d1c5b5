// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/internal/marking/mark"
)

// spans are the phases in the chart of the first probe.
const spans = `[...document.querySelectorAll('.timeline .row:first-child rect')].map((r) => r.getAttribute('class').replace('phase ', ''))`

// gone is the notice of the panel, if it is shown.
const gone = `[document.querySelector('.panel .notice')].map((n) => n.checkVisibility() ? n.innerText : '')[0]`

func TestPanel(t *testing.T) {
	w := sample()
	s, p := show(t, w, "")
	equal(p, shown, 41)
	p.click(`[data-pod="games/game-server-7"]`)
	equal(p, focused, "panel-title")
	equal(p, "location.search", "?pod=games/game-server-7")
	equal(p, `[...document.querySelectorAll('.panel > .facts div')].map((d) => d.innerText.replace(/\s+/g, ' '))`,
		[]string{"Namespace games", "Workload StatefulSet game-server", "Node node-4", "Phase Running"})
	equal(p, `[...document.querySelectorAll('.probes li .facts > div')].map((d) => d.innerText.replace(/\s+/g, ' ').trim())`,
		[]string{"Container main", "Since 8 minutes ago", "State from report of the agent", "Marks controller.kubernetes.io/pod-deletion-cost=200 annotation"})
	equal(p, "document.querySelector('.probes h4').innerText", "Failed game-server#idle")
	equal(p, "document.querySelector('.probes .output').innerText", "8 players")
	equal(p, "document.querySelector('.panel .hint').innerText", "Explain each step: seamark explain game-server-7 -n games")

	equal(p, spans, []string{"NotKnown", "Succeeded", "Failed", "Succeeded", "Failed"})
	equal(p, `document.querySelectorAll('.timeline tbody tr').length`, 5)
	p.await(`document.querySelector('.timeline svg').getAttribute('aria-label').endsWith('Now: Failed. Changes: 4.')`)
	p.choose("#range", "15m")
	equal(p, spans, []string{"Succeeded", "Failed"})

	// The panel follows its pod.
	w.record(changeOf(w.pods["games/game-server-7"], succeeded, 0, "0 players"))
	row := marked(probe("game-server", "idle", succeeded, 0, "0 players"), mark.KindLabel, "idle", "true")
	row.Refused = []string{"label map is not set: Missing: no map"}
	w.set(podOf("games", "StatefulSet", "game-server", "game-server-7", "node-4", row))
	equal(p, "document.querySelector('.probes h4').innerText", "Succeeded game-server#idle")
	p.await(`document.querySelector('.probes .marks').innerText === 'idle=true label'`)
	equal(p, "document.querySelector('.probes .trouble').innerText.trim()", "label map is not set: Missing: no map")
	equal(p, spans, []string{"Succeeded", "Failed", "Succeeded"})
	w.remove("games/game-server-7")
	equal(p, gone, "The pod no longer exists.")
	p.click(".panel .close")
	equal(p, "document.getElementById('panel').hidden", true)
	equal(p, "location.search", "")
	equal(p, focused, "pods")

	p.open(s.url("?pod=shop/checkout-7d5c9f7d4b-xe2k3"))
	equal(p, "document.querySelector('.panel .trouble').innerText", `CannotRun probe cannot be run: exec: "/opt/drained": no such file or directory`)
	p.open(s.url("?pod=shop/gone"))
	equal(p, gone, "The pod no longer exists.")
}

func TestTimelineCannotBeRead(t *testing.T) {
	w := sample()
	_, p := show(t, w, "")
	equal(p, shown, 41)
	w.refuse(&refused)
	p.click(`[data-pod="shop/database-0"]`)
	equal(p, "document.querySelector('.timeline').innerText", "The timeline could not be read: jane may not list pods in all namespaces.")
	w.withhold(errNoEvents)
	w.refuse(nil)
	p.choose("#range", "6h")
	equal(p, "document.querySelector('.timeline > .hint').innerText", errNoEvents.Error())
}

// TestLocalSession checks what differs for local pods.
func TestLocalSession(t *testing.T) {
	w := newWorld(sample().markers[:1], podOf("default", "", "", "web", "local", probe("m", "p", succeeded, time.Second, "")))
	s := newSite(t, w)
	s.stop()
	s.session.Source, s.session.Namespace = "local", ""
	s.start()
	p := newTab(t, s.host)
	p.open(s.url("?pod=default/web"))
	equal(p, "document.getElementById('source').innerText", "Local pods · jane · v0.1.0")
	equal(p, groups, []string{"Without a workload default 1"})
	equal(p, "document.querySelector('.panel .hint').checkVisibility()", false)
	equal(p, "[...document.getElementById('namespace').options].map((o) => o.text)", []string{"All namespaces", "default"})

	// The page says that the run has ended, and keeps what it shows.
	p.await("document.querySelector('.timeline .line')")
	s.stop()
	equal(p, connection, "ended")
	equal(p, "document.getElementById('connection-text').innerText", "Ended")
	p.await(notice + `.startsWith('The local run has ended. The page shows its state of ')`)
	value[chromedp.Void](p, connect)
	p.choose("#range", "1h")
	p.choose("#group", "node")
	equal(p, groups, []string{"local 1"})
	equal(p, connection, "ended")
	equal(p, "document.getElementById('namespace').disabled", true)
}
