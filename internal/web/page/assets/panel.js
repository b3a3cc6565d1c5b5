// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element, icon, reconcile, setAttribute, setText } from './dom.js';
import { Timeline, drawAges } from './timeline.js';

/** How often the ages and the timeline are refreshed, in milliseconds. */
const ageInterval = 10000;
const timelineInterval = 30000;

/** Shows the selected pod: its probes, messages, marks and problems, and its timeline. */
export class Panel {
  /** The key of the pod, or empty. */
  key = '';
  #pod = null;
  #timers = [];

  /** @param {() => void} close is called when the user closes the panel */
  constructor(close) {
    this.node = byId('panel');
    this.node.addEventListener('click', (event) => event.target.closest('.close') && close());
  }

  /**
   * Opens the panel.
   * @param {string} key
   * @param {{translator: import('./i18n.js').Translator, source: string}} view
   */
  open(key, view) {
    this.close();
    this.key = key;
    this.#pod = null;
    this.view = view;
    this.timeline = new Timeline(view.translator);
    this.#build();
    this.node.hidden = false;
    document.body.classList.add('with-panel');
    this.#timers = [
      setInterval(() => drawAges(this.node, view.translator, new Date()), ageInterval),
      setInterval(() => document.hidden || this.#pod && this.timeline.refresh(), timelineInterval),
    ];
  }

  /** Moves the focus to the title. */
  focus() {
    this.title.focus({ preventScroll: true });
  }

  /** Closes the panel. */
  close() {
    if (!this.key) return;
    this.#timers.forEach(clearInterval);
    this.timeline.close();
    this.key = '';
    this.node.hidden = true;
    document.body.classList.remove('with-panel');
    this.node.replaceChildren();
  }

  #build() {
    const { translator } = this.view;
    this.title = element('h2', { id: 'panel-title', tabindex: -1 }, this.key.slice(this.key.indexOf('/') + 1));
    this.gone = element('p', { class: 'notice', hidden: true }, translator.text('gone'));
    this.facts = element('dl', { class: 'facts' });
    this.probes = element('ul', { class: 'probes', 'aria-labelledby': 'probes-title' });
    this.command = element('code');
    this.explain = element('p', { class: 'hint', hidden: this.view.source !== 'cluster' }, `${translator.text('explain')} `, this.command);
    this.node.replaceChildren(
      element('header', {}, this.title, element('button', { type: 'button', class: 'close round', 'aria-label': translator.text('closePanel') }, '×')),
      this.gone, this.facts, element('h3', { id: 'probes-title' }, translator.text('probes')), this.probes, this.timeline.node, this.explain);
  }

  /**
   * Draws the pod, if it has changed.
   * @param {Object|undefined} pod undefined if it does not exist
   * @param {boolean} ready whether all pods are known
   */
  draw(pod, ready) {
    this.gone.hidden = Boolean(pod) || !ready;
    if (!pod || pod === this.#pod) return;
    const first = this.#pod === null;
    this.#pod = pod;
    this.#drawFacts(pod);
    const { translator } = this.view;
    reconcile(this.probes, pod.probes, {
      key: (probe) => `${probe.marker}#${probe.probe} ${probe.container}`, create: () => element('li'),
      update: (node, probe) => node.replaceChildren(...drawProbe(probe, translator)),
    });
    setText(this.command, `seamark explain ${pod.name} -n ${pod.namespace}`);
    drawAges(this.node, translator, new Date());
    if (first) this.timeline.open(pod);
    else this.timeline.refresh();
  }

  #drawFacts(pod) {
    const facts = [
      ['namespace', pod.namespace], ['workload', pod.workload ? `${pod.workload.kind} ${pod.workload.name}` : ''],
      ['node', pod.node], ['phase', pod.phase],
    ].filter(([, value]) => value);
    this.facts.replaceChildren(...facts.map(([key, value]) => element('div', {},
      element('dt', {}, this.view.translator.text(key)), element('dd', {}, value))));
  }
}

function drawProbe(probe, translator) {
  const state = probe.state || 'None';
  const facts = [[translator.text('container'), probe.container]];
  if (probe.since) facts.push([translator.text('since'), timeOf(probe.since, translator)]);
  if (probe.source) facts.push([translator.text('stateSource'), translator.text(`from.${probe.source}`)]);
  facts.push([translator.text('marks'), drawMarks(probe.marks ?? [], translator)]);
  return [
    element('h4', {}, element('span', { class: `badge ${state.toLowerCase()}` }, icon(state), translator.text(`state.${state}`)), ` ${probe.marker}#${probe.probe}`),
    probe.problem ? element('p', { class: 'trouble' }, icon('problem'), element('strong', {}, probe.problem.reason), ` ${probe.problem.message}`) : null,
    probe.message ? element('p', { class: 'output' }, probe.message) : null,
    ...(probe.refused ?? []).map((reason) => element('p', { class: 'trouble' }, icon('problem'), ` ${reason}`)),
    element('dl', { class: 'facts' }, ...facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value)))),
  ].filter(Boolean);
}

function timeOf(text, translator) {
  const node = element('time', { datetime: text });
  setAttribute(node, 'title', translator.moment.format(new Date(text)));
  return node;
}

function drawMarks(marks, translator) {
  if (marks.length === 0) return translator.text('noMarks');
  return element('ul', { class: 'marks' }, ...marks.map((mark) => element('li', {},
    element('code', {}, `${mark.name}=${mark.value}`), element('span', {}, ` ${translator.text(`mark.${mark.kind}`)}`))));
}
