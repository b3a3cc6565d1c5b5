// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/web"
)

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
			w.record(changeOf(w.pods["shop/web-0"], failed, time.Second, text))
			w.withhold(errors.New(text))
			s := newSite(t, w)
			s.set(web.Access{User: text, Full: true})
			p := newTab(t, s.host)
			p.open(s.url(""))
			equal(p, shown, 1)
			before := value[int](p, "document.querySelectorAll('script, style, img, a[href^=javascript], iframe').length")
			p.click(".cell")
			equal(p, "document.querySelector('.timeline .caption').textContent", name+"#"+name+" "+text)
			equal(p, "document.querySelector('.timeline tbody td:last-child').textContent", text)
			equal(p, "document.querySelector('.group-name').textContent", text)
			p.choose("#group", "node")
			equal(p, "document.querySelector('.group-name').textContent", text)
			equal(p, "document.querySelector('.probes .output').textContent", text)
			equal(p, "document.querySelector('.panel .trouble').textContent", text+" "+text)
			equal(p, "[...document.querySelectorAll('.panel .trouble')].at(-1).textContent", " "+text)
			equal(p, "document.querySelector('.marks code').textContent", text+"="+text)
			equal(p, "document.querySelector('#problems .message').textContent", text)
			p.choose("#color", "label:"+text)
			short := text
			if len(text) > 60 {
				short = text[:60] + "…"
			}
			equal(p, "document.querySelector('#legend bdi').textContent", short)
			equal(p, "document.querySelector('#color').selectedOptions[0].textContent", text+" (label)")
			equal(p, "document.querySelector('.cell').ariaLabel", "web-0, "+text+": "+short+", problem "+text)
			equal(p, "document.getElementById('source').textContent", "Cluster · "+text+" · v0.1.0")
			equal(p, "document.title", "(2) Seamark")
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
