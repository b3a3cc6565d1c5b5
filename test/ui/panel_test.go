// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
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
	const lock = `getComputedStyle(document.querySelector('[data-pod="games/game-server-7"] .lock')).display`
	equal(p, lock, "none")
	w.guard("games/game-server-7", "busy-games")
	equal(p, `document.querySelector('.panel > .facts div:last-child').innerText.replace(/\s+/g, ' ')`, "Guarded by busy-games 3 minutes ago")
	equal(p, `document.querySelector('[data-pod="games/game-server-7"]').ariaLabel`, "game-server-7, Succeeded, guarded by busy-games")
	p.await(lock + ` !== 'none'`)
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

func TestLanguages(t *testing.T) {
	w := withSets()
	w.guard("shop/checkout-7d5c9f7d4b-xe2k3", "busy-games")
	s, p := showSets(t, w, "?pod=shop/checkout-7d5c9f7d4b-xe2k3")
	equal(p, shown, 41)
	p.choose("#language", "zh")
	equal(p, "document.documentElement.lang", "zh-CN")
	equal(p, "[...document.querySelectorAll('h2')].map((h) => h.textContent)", []string{"问题", "Marker", "Set", "Pod", "checkout-7d5c9f7d4b-xe2k3", "按键"})
	equal(p, "document.querySelector('[data-pod=\"shop/database-0\"]').ariaLabel", "database-0，成功")
	equal(p, "document.querySelector('.cell.guarded').ariaLabel", "checkout-7d5c9f7d4b-xe2k3，失败，问题 探测无法执行（CannotRun），由守卫 busy-games 保护")
	equal(p, `document.querySelector('.panel > .facts div:last-child').innerText.replace(/\s+/g, ' ')`, "守卫 busy-games 3分钟前")
	p.click("#help-button")
	p.await("document.querySelector('.timeline .line')")
	equal(p, "document.getElementById('live').innerText", "41 个 Pod：失败：7，未知：2，无状态：2，成功：30。4 个问题。")

	// What is left in English are names and messages of the cluster, and terms of Kubernetes.
	english := regexp.MustCompile(`[A-Za-z]{3,}`)
	cluster := regexp.MustCompile(`shop|busy-games|games|lobby|checkout|drained|node-\d|database|game-server|idle|role|main|jane|Seamark|seamark explain|StatefulSet|` +
		`Deployment|Running|CannotRun|NoPlan|NodePodProbe|InvalidMarker|PodNotBound|probe cannot be run.*|node node-9 has.*|spec\.probes.*|no open orders|` +
		`example.com/Drained(=True)?|condition|controller.kubernetes.io/pod-deletion-cost|\d players|timed out after 1s|primary|secondary|12 orders are open|English|[Mm]arker|(Clone)?Set|cache|ProgressDeadlineExceeded|no progress.*|\d+ of \d+ pods.*|BackOff|Pulled|Back-off.*|Container image.*|agent|Pod|Home|End|Page (Up|Down)|Enter|Esc|Tab|Shift`)
	texts := value[[]string](p, `(() => {
		const found = [document.title];
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) if (!walker.currentNode.parentElement.closest('noscript')) found.push(walker.currentNode.data);
		for (const e of document.querySelectorAll('*')) for (const a of ['aria-label', 'title', 'placeholder']) if (e.hasAttribute(a)) found.push(e.getAttribute(a));
		return found; })()`)
	for _, text := range slices.Compact(slices.Sorted(slices.Values(texts))) {
		if left := cluster.ReplaceAllString(text, ""); english.MatchString(left) {
			t.Errorf("English text on the Chinese page: %q", text)
		}
	}

	// The browser remembers the language, and an address may name another one.
	p.press(escape)
	p.open(s.url(""))
	equal(p, "document.documentElement.lang", "zh-CN")
	equal(p, "document.getElementById('language').value", "zh")
	p.open(s.url("?lang=en"))
	equal(p, "document.documentElement.lang", "en")
}

// TestLanguageOfTheBrowser checks that the page starts in the language of the browser.
func TestLanguageOfTheBrowser(t *testing.T) {
	s := newSite(t, sample())
	for accepted, want := range map[string]string{"zh-TW,en": "zh-CN", "de,zh": "zh-CN", "de": "en"} {
		p := newTab(t, s.host)
		agent := value[string](p, "navigator.userAgent")
		call(p, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: accepted})
		p.open(s.url(""))
		equal(p, "document.documentElement.lang", want)
	}
}

func TestThemes(t *testing.T) {
	_, p := show(t, sample(), "")
	const background = "getComputedStyle(document.body).backgroundColor"
	light, dark := value[string](p, background), "rgb(18, 22, 27)"
	if light == dark {
		t.Fatalf("the light theme has the background %s", light)
	}
	p.prefer("dark")
	equal(p, background, dark)
	p.choose("#theme", "light")
	equal(p, background, light)
	p.do(chromedp.Reload())
	p.awaitLive()
	equal(p, background, light)
	equal(p, "document.getElementById('theme').value", "light")
	p.choose("#theme", "system")
	equal(p, background, dark)
}

// background makes the page believe that it is in the background, or not: a browser without windows has no background.
func (p *tab) background(hidden bool) {
	p.Helper()
	value[chromedp.Void](p, fmt.Sprintf(`(() => {
		Object.defineProperty(document, 'hidden', { value: %t, configurable: true });
		document.dispatchEvent(new Event('visibilitychange')); })()`, hidden))
}

// TestManyTabs opens more tabs than a browser has connections for a server. The tabs in the foreground are connected.
func TestManyTabs(t *testing.T) {
	const connected, count = 4, 8
	w := sample()
	s, p := show(t, w, "")
	tabs := []*tab{p}
	for range count - 1 {
		another := p.another()
		another.do(chromedp.Navigate(s.url("")))
		equal(another, "document.getElementById('source').innerText", "Cluster · jane · v0.1.0")
		tabs = append(tabs, another)
	}
	const full = "Too many tabs and windows show pages of this server. Close one, or move one to the background, and this page continues."
	for i, each := range tabs {
		if i < connected {
			equal(each, connection, "live")
			continue
		}
		equal(each, connection, "queued")
		equal(each, notice, full)
		equal(each, "document.getElementById('namespace').selectedOptions[0]?.text", "All namespaces")
	}
	for _, each := range tabs[:count-1] {
		each.background(true)
	}
	last := tabs[count-1]
	equal(last, connection, "live")
	equal(last, notice, "")
	equal(last, shown, 41)

	// A tab in the background gives up its connection only if another one needs it.
	for _, each := range tabs[:count-1] {
		each.background(false)
		each.awaitLive()
		each.background(true)
	}
	w.remove("shop/database-0")
	for _, i := range []int{count - 2, count - 1} {
		equal(tabs[i], connection, "live")
		equal(tabs[i], shown, 40)
	}
	equal(p, connection, "paused")
	p.background(false)
	p.awaitLive()
	equal(p, shown, 40)
}

// hostile are texts that a page must show as they are.
var hostile = []string{
	`<img src="x" onerror="document.title='hacked'">`,
	`"><script>document.title='hacked'</script>`,
	`'; document.title='hacked'; //`,
	`<a href="javascript:document.title='hacked'">link</a>`,
	`{count} ${document.title='hacked'} {{constructor.constructor('x')()}}`,
	`</style><style>*{display:none}</style>`,
	`__proto__`,
	"two\nlines\tand a tab",
}

// TestHostileTexts checks that nothing in an object is read as code or HTML: names, messages, marks, and whatever
// else comes from the cluster.
func TestHostileTexts(t *testing.T) {
	for _, text := range hostile {
		t.Run(text, func(t *testing.T) {
			name := strings.ReplaceAll(text, "/", "")
			w := newWorld(nil)
			w.markers = append(w.markers, markerOf("shop", name), markerOf("shop", "invalid"))
			w.markers[1].Invalid = text
			row := marked(probe(name, name, failed, 0, text), mark.KindLabel, text, text)
			row.Container, row.Refused = text, []string{text}
			w.set(podOf("shop", "StatefulSet", text, "web-0", text, troubled(row, diagnosis.Reason(text), text)))
			w.guard("shop/web-0", text)
			w.record(changeOf(w.pods["shop/web-0"], failed, time.Second, text))
			w.withhold(errors.New(text))
			w.others = []model.Event{{Type: text, Reason: text, Message: text}}
			// The API server checks the names of sets.
			set := setOf("shop", "StatefulSet", "web", "Stalled", text, text)
			set.Revision = text
			w.sets = &model.Sets{Sets: []model.Set{set}, Note: text}
			s := newSite(t, w)
			s.set(web.Access{User: text, Full: true, Set: func(context.Context, model.SetID) (model.SetDetails, error) {
				return model.SetDetails{Waits: []model.PodWait{{Name: text, Why: text}}, PodsNote: text, Events: w.others}, nil
			}})
			p := newTab(t, s.host)
			p.open(s.url(""))
			equal(p, shown, 1)
			before := value[int](p, "document.querySelectorAll('script, style, img, a[href^=javascript], iframe').length")
			p.click(".cell")
			equal(p, "document.querySelector('.timeline .caption').textContent", name+"#"+name+" "+text)
			equal(p, "document.querySelector('.timeline tbody td:last-child').textContent", text)
			equal(p, "document.querySelector('.group-name').textContent", text)
			equal(p, "document.querySelector('.events strong').textContent", text)
			equal(p, "document.querySelector('.events .output').textContent", text)
			p.choose("#group", "node")
			equal(p, "document.querySelector('.group-name').textContent", text)
			equal(p, "document.querySelector('.probes .output').textContent", text)
			equal(p, "document.querySelector('.panel .trouble').textContent", text+" "+text)
			equal(p, "[...document.querySelectorAll('.panel .trouble')].at(-1).textContent", " "+text)
			equal(p, "document.querySelector('.marks code').textContent", text+"="+text)
			equal(p, "[...document.querySelectorAll('#problems .message')].map((m) => m.textContent)", []string{text, text, text})
			p.choose("#color", "label:"+text)
			short := text
			if len(text) > 60 {
				short = text[:60] + "…"
			}
			equal(p, "document.querySelector('#legend bdi').textContent", short)
			equal(p, "document.querySelector('#color').selectedOptions[0].textContent", text+" (label)")
			equal(p, "document.querySelector('.cell').ariaLabel", "web-0, "+text+": "+short+", problem "+text+", guarded by "+text)
			equal(p, "document.getElementById('source').textContent", "Cluster · "+text+" · v0.1.0")
			equal(p, "document.title", "(3) Seamark")
			p.click("#sets a")
			equal(p, "document.querySelector('#sets .message').textContent", "Stalled "+text)
			equal(p, "document.querySelector('.panel .facts div:nth-child(4) dd').textContent", text)
			equal(p, "[...document.querySelectorAll('.panel .events > li')].map((l) => l.querySelector('.output').textContent)", []string{text, text})
			equal(p, "document.querySelectorAll('script, style, img, a[href^=javascript], iframe').length", before)
			equal(p, "Object.prototype.polluted === undefined && Object.keys(Object.prototype).length", 0)
		})
	}
}

// TestPolicy checks that the browser applies the policy: it runs no script that is not one of the page's files. The
// other tests check that the page itself does not violate it.
func TestPolicy(t *testing.T) {
	_, p := show(t, sample(), "")
	value[chromedp.Void](p, `(() => {
		window.violations = [];
		document.addEventListener('securitypolicyviolation', (e) => violations.push(e.effectiveDirective));
		const add = (tag, set) => { const e = document.createElement(tag); set(e); document.body.append(e); };
		add('script', (e) => { e.textContent = "window.ran = true"; });
		add('img', (e) => { e.src = 'http://192.0.2.1/x.png'; });
		add('iframe', (e) => { e.src = '/'; });
		add('div', (e) => { e.setAttribute('style', 'color: red'); e.setAttribute('onclick', 'window.ran = true'); e.click(); });
		fetch('http://192.0.2.1/').catch(() => {});
	})()`)
	equal(p, "[...new Set(violations)].sort()", []string{"connect-src", "frame-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr"})
	equal(p, "window.ran === undefined", true)
	if len(p.forgive()) == 0 {
		t.Error("violations are not observed, so the other tests would not find any")
	}
}
