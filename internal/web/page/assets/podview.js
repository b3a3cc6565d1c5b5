// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element, icon, reconcile, setText } from './dom.js';
import { Events } from './events.js';
import { setOf } from './sets.js';
import { Timeline, drawAges, timeOf } from './timeline.js';

/** What the panel shows of a pod: its probes, messages, marks and problems, its timeline and its events. */
export class PodView {
  goneText = 'gone';
  #pod = null;
  /** The key of the set that controls the pod, if the page has it. */
  #set = '';

  /**
   * @param {string} key NAMESPACE/NAME
   * @param {{translator: import('./i18n.js').Translator, source: string, link: (changes: Object) => string}} view
   */
  constructor(key, view) {
    const { translator, source } = view;
    this.key = key;
    this.title = key.slice(key.indexOf('/') + 1);
    this.view = view;
    this.events = new Events(translator);
    this.timeline = new Timeline(translator, ({ events = [], complete, note }) => this.events.draw(events, complete ? '' : note));
    this.facts = element('dl', { class: 'facts' });
    this.probes = element('ul', { class: 'probes', 'aria-labelledby': 'probes-title' });
    this.command = element('code');
    // A local run has no other events than those of the timeline.
    const inCluster = source === 'cluster';
    this.nodes = [
      this.facts, element('h3', { id: 'probes-title' }, translator.text('probes')), this.probes, this.timeline.node, inCluster ? this.events.node : '',
      element('p', { class: 'hint', hidden: !inCluster }, `${translator.text('explain')} `, this.command),
    ];
  }

  /**
   * Draws the pod, if it has changed.
   * @param {import('./store.js').Store} store
   * @returns {boolean} whether it exists
   */
  draw(store) {
    const pod = store.pods.get(this.key);
    if (!pod) return false;
    const set = store.setsByKey.has(setOf(pod)) ? setOf(pod) : '';
    if (pod !== this.#pod || set !== this.#set) this.#drawFacts(pod, set);
    this.#set = set;
    if (pod === this.#pod) return true;
    const first = this.#pod === null;
    this.#pod = pod;
    const { translator } = this.view;
    reconcile(this.probes, pod.probes, {
      key: (probe) => `${probe.marker}#${probe.probe} ${probe.container}`, create: () => element('li'),
      update: (node, probe) => node.replaceChildren(...drawProbe(probe, translator)),
    });
    setText(this.command, `seamark explain ${pod.name} -n ${pod.namespace}`);
    drawAges(this.probes, translator, new Date());
    if (first) this.timeline.open(pod);
    else this.timeline.refresh();
    return true;
  }

  /** Reads the timeline again. */
  refresh() {
    if (this.#pod) this.timeline.refresh();
  }

  /** Stops reading. */
  close() {
    this.timeline.close();
  }

  #drawFacts(pod, set) {
    const { translator, link } = this.view;
    const workload = pod.workload ? `${pod.workload.kind} ${pod.workload.name}` : '';
    const facts = [
      ['namespace', pod.namespace], ['workload', set ? element('a', { 'data-set': set, href: link({ set, pod: '' }) }, workload) : workload],
      ['node', pod.node], ['phase', pod.phase], ['guard', pod.guard ? drawGuard(pod.guard, translator) : ''],
    ].filter(([, value]) => value);
    this.facts.replaceChildren(...facts.map(([key, value]) => element('div', {}, element('dt', {}, translator.text(key)), element('dd', {}, value))));
    drawAges(this.facts, translator, new Date());
  }
}

function drawGuard(guard, translator) {
  return element('span', {}, icon('lock'), ` ${guard.name} `, guard.since ? timeOf(guard.since, translator) : '');
}

function drawProbe(probe, translator) {
  const state = probe.state || 'None';
  const facts = [[translator.text('container'), probe.container]];
  if (probe.since) facts.push([translator.text('since'), timeOf(probe.since, translator)]);
  if (probe.source) facts.push([translator.text('stateSource'), translator.text(`from.${probe.source}`)]);
  facts.push([translator.text('marks'), drawMarks(probe.marks ?? [], translator)]);
  return [
    element('h4', {}, element('span', { class: `badge ${state.toLowerCase()}` }, icon(state), translator.text(`state.${state}`)), ` ${probe.marker}#${probe.probe}`),
    probe.problem ? element('p', { class: 'trouble' }, icon('problem'), element('strong', {}, translator.reason(probe.problem.reason)), ` ${probe.problem.message}`) : null,
    probe.message ? element('p', { class: 'output' }, probe.message) : null,
    ...(probe.refused ?? []).map((reason) => element('p', { class: 'trouble' }, icon('problem'), ` ${reason}`)),
    element('dl', { class: 'facts' }, ...facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value)))),
  ].filter(Boolean);
}

function drawMarks(marks, translator) {
  if (marks.length === 0) return translator.text('noMarks');
  return element('ul', { class: 'marks' }, ...marks.map((mark) => element('li', {},
    element('code', {}, `${mark.name}=${mark.value}`), element('span', {}, ` ${translator.text(`mark.${mark.kind}`)}`))));
}
