// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

// patience is how long a test waits for the page. Only a hang reaches it.
var patience = await.Poll{Interval: 10 * time.Millisecond, Timeout: await.Timeout}

// chromium is the browser of all tests. Each page has its own profile in it.
var chromium context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests with a browser. The browser itself must not use the network either.
func run(m *testing.M) int {
	program, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, "no chromium: run `make test-ui`, which installs it")
		return 1
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("no-first-run", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("lang", "en"), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("enable-precise-memory-info", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	browser, closeBrowser := chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "start chromium:", err)
		return 1
	}
	chromium = browser
	return m.Run()
}

// tab is one page in the browser.
type tab struct {
	*testing.T
	ctx context.Context
	// host is that of the server of the test.
	host string

	mu sync.Mutex
	// faults are errors of scripts and violations of the policy.
	faults []string
	hosts  map[string]bool
}

// newTab returns an empty page of 1280x800 with the light theme. At the end of the test, it reports
// errors of scripts, violations of the policy, and requests to other hosts than the one given.
func newTab(t *testing.T, host string) *tab {
	t.Helper()
	return tabOf(chromium, t, host, chromedp.WithNewBrowserContext())
}

// another returns another tab with the profile of the tab.
func (p *tab) another() *tab {
	p.Helper()
	return tabOf(p.ctx, p.T, p.host)
}

func tabOf(parent context.Context, t *testing.T, host string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	p := &tab{T: t, host: host, hosts: map[string]bool{}}
	var closeTab context.CancelFunc
	p.ctx, closeTab = chromedp.NewContext(parent, append(options, chromedp.WithListener(p.observe))...)
	t.Cleanup(func() {
		closeTab()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, fault := range p.faults {
			t.Error(fault)
		}
		delete(p.hosts, host)
		for other := range p.hosts {
			t.Errorf("the page sent a request to %s", other)
		}
	})
	// The tab lives as long as the context of its first actions.
	expect.NoError(t, chromedp.Do(p.ctx))
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.size(1280, 800)
	p.prefer("light")
	return p
}

// observe handles an event of the page.
func (p *tab) observe(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		p.faults = append(p.faults, fmt.Sprintf("error in a script: %s", message(e.ExceptionDetails)))
	case *cdpruntime.EventConsoleAPICalled:
		p.faults = append(p.faults, fmt.Sprintf("message on the console: %s", e.Type))
	case *log.EventEntryAdded:
		// The browser logs each refused request; tests of failing servers expect these.
		if e.Entry.Source != log.EntrySourceNetwork {
			p.faults = append(p.faults, fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text))
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			p.hosts[u.Host] = true
		}
	}
}

// forgive returns the faults and forgets them. A test that causes faults calls it. It also forgets the hosts.
func (p *tab) forgive() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := p.faults
	p.faults, p.hosts = nil, map[string]bool{}
	return faults
}

func message(details *cdpruntime.ExceptionDetails) string {
	if details.Exception != nil {
		return details.Exception.Description
	}
	return details.Text
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience.Timeout)
	defer cancel()
	expect.NoError(p, chromedp.Do(ctx, actions...))
}

// get performs an action that has a result.
func get[T any](p *tab, action chromedp.Action[T]) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience.Timeout)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	expect.NoError(p, err)
	return result
}

// call calls a command of the debugging protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.Helper()
	return get(p, func(ctx context.Context, target *chromedp.Target) (R, error) {
		return cdp.Call(ctx, target, command, params)
	})
}

// size sets the size of the page.
func (p *tab) size(width, height int64) {
	p.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}

// prefer sets the theme of the system, and turns off animations.
func (p *tab) prefer(theme string) {
	p.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// open opens an address and waits until the page is connected and has drawn everything.
func (p *tab) open(address string) {
	p.Helper()
	p.do(chromedp.Navigate(address))
	p.awaitLive()
}

// awaitLive waits until the page is connected.
func (p *tab) awaitLive() {
	p.Helper()
	p.await(`document.getElementById('connection')?.dataset.state === 'live'`)
}

func value[T any](p *tab, expression string) T {
	p.Helper()
	return get(p, chromedp.Evaluate[T](expression))
}

// await waits until an expression is true.
func (p *tab) await(expression string) {
	p.Helper()
	patience.Success(p, expression, func(context.Context) error {
		met, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err != nil || met {
			return err
		}
		text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		return errors.Join(err, errors.New("the page shows:\n"+text))
	})
}

// equal waits until an expression has a value.
func equal[T any](p *tab, expression string, want T) {
	p.Helper()
	patience.Success(p, expression, func(context.Context) error {
		got, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			return errors.New("value (-want +got):\n" + diff)
		}
		return err
	})
}

// press presses a key. The text of the key belongs to the same event, so that the page can prevent that it is
// typed, as with a keyboard.
func (p *tab) press(key string, modifiers ...kb.Modifier) {
	p.Helper()
	for _, r := range key {
		k := kb.Keys[r]
		event := input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeKeyDown, Key: k.Key, Code: k.Code, Text: k.Text, UnmodifiedText: k.Unmodified,
			WindowsVirtualKeyCode: k.Windows, NativeVirtualKeyCode: k.Native,
		}
		for _, m := range modifiers {
			event.Modifiers |= int64(m)
		}
		if k.Shift {
			event.Modifiers |= int64(kb.ModifierShift)
		}
		call(p, input.DispatchKeyEvent, event)
		event.Type, event.Text, event.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
		call(p, input.DispatchKeyEvent, event)
	}
}

func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// choose selects an option as a user does.
func (p *tab) choose(selector, option string) {
	p.Helper()
	value[chromedp.Void](p, fmt.Sprintf(`(() => { const s = document.querySelector(%q); s.value = %q;
		s.dispatchEvent(new Event('change', { bubbles: true })); })()`, selector, option))
}

// focused describes the element that has the focus: its pod, or its ID, or its text.
const focused = `(document.activeElement.dataset.pod || document.activeElement.id || document.activeElement.innerText.replace(/\s+/g, ' ').trim())`

// Keys that tests press.
const (
	tabKey   = kb.Tab
	escape   = kb.Escape
	enter    = kb.Enter
	right    = kb.ArrowRight
	left     = kb.ArrowLeft
	down     = kb.ArrowDown
	up       = kb.ArrowUp
	home     = kb.Home
	end      = kb.End
	pageDown = kb.PageDown
	pageUp   = kb.PageUp
)
