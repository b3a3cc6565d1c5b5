// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element, setAttribute, setText, svg } from './dom.js';
import { heights, latest, parts, phasesOf } from './phases.js';
import { Poll } from './poll.js';

const ranges = ['15m', '1h', '6h'];

/** The most rows of the table. */
const maxRows = 200;

/** The minimum time between two requests for the same pod, in milliseconds. */
const pause = 3000;

const lineHeight = 24;

/** Reads the timeline of a pod and draws it as an SVG, with a table of the same contents. */
export class Timeline {
  #range = '1h';
  #data = null;
  #poll;

  /**
   * @param {import('./i18n.js').Translator} translator
   * @param {(timeline: Object) => void} received is called after each answer
   */
  constructor(translator, received) {
    this.translator = translator;
    this.#poll = new Poll(pause, () => this.#path(), (data) => {
      this.#data = data;
      this.#draw();
      received(data);
    }, (error) => this.#fail(error));
    this.select = element('select', { id: 'range' }, ...ranges.map((range) => element('option', { value: range }, translator.text(`range.${range}`))));
    this.select.value = this.#range;
    this.select.addEventListener('change', () => {
      this.#range = this.select.value;
      this.#data = null;
      this.#poll.restart();
    });
    this.body = element('div', { class: 'timeline' });
    this.node = element('section', { 'aria-labelledby': 'timeline-title' },
      element('div', { class: 'title' }, element('h3', { id: 'timeline-title' }, translator.text('timeline')),
        element('label', {}, `${translator.text('range')} `, this.select)),
      this.body);
  }

  /**
   * Shows the timeline of a pod.
   * @param {Object} pod
   */
  open(pod) {
    this.pod = pod;
    this.refresh();
  }

  /** Reads the timeline again, not more often than once in a few seconds. */
  refresh() {
    this.#poll.refresh();
  }

  /** Stops reading. */
  close() {
    this.#poll.close();
  }

  #path() {
    return `api/v1/timeline?${new URLSearchParams({ namespace: this.pod.namespace, pod: this.pod.name, since: this.#range })}`;
  }

  #fail(error) {
    // Without a server, the timeline stays: the page says that it is not connected.
    if (error instanceof TypeError && this.#data) return;
    this.body.replaceChildren(element('p', { class: 'calm' }, this.translator.text('timelineFailed', { reason: error.message })));
  }

  #draw() {
    const { lines = [], note } = this.#data;
    const open = this.body.querySelector('details')?.open ?? false;
    const start = new Date(this.#data.start);
    const end = new Date(this.#data.end);
    const content = lines.map((line) => this.#line(line, start, end));
    if (lines.length === 0) content.push(element('p', { class: 'calm' }, this.translator.text('timelineEmpty')));
    else content.push(this.#scale(start, end), this.#legend(lines), this.#table(lines, open));
    if (note) content.push(element('p', { class: 'hint' }, note));
    this.body.replaceChildren(...content);
  }

  #line(line, start, end) {
    const { translator } = this;
    const probe = `${line.marker}#${line.probe}`;
    const last = line.spans.at(-1);
    const label = translator.text('timelineLine', {
      probe, start: this.#time(start), end: this.#time(end), phase: translator.text(`phase.${last?.phase ?? 'NotKnown'}`),
      count: Math.max(0, line.spans.length - 1),
    });
    const chart = svg('svg', { role: 'img', 'aria-label': label, viewBox: `0 0 1000 ${lineHeight}`, preserveAspectRatio: 'none', class: 'line' });
    for (const { x, width, span } of parts(line, start, end)) {
      const height = lineHeight * heights[span.phase];
      const title = translator.text('spanTitle', { phase: translator.text(`phase.${span.phase}`), start: this.#time(span.start), end: this.#time(span.end) });
      chart.append(svg('rect', {
        class: `phase ${span.phase}`, x: (1000 * x).toFixed(1), width: Math.max(1000 * width, 1.5).toFixed(1), y: lineHeight - height, height,
      }, svg('title', {}, span.message ? `${title}: ${span.message}` : title)));
    }
    return element('div', { class: 'row' }, element('span', { class: 'caption' }, `${probe} `, element('span', {}, line.container)), chart);
  }

  #scale(start, end) {
    const middle = new Date((start.getTime() + end.getTime()) / 2);
    return element('div', { class: 'scale', 'aria-hidden': 'true' }, ...[start, middle, end].map((time) => element('span', {}, this.#time(time))));
  }

  #legend(lines) {
    return element('ul', { class: 'legend' }, ...phasesOf(lines).map((phase) => element('li', {},
      svg('svg', { viewBox: '0 0 12 12', 'aria-hidden': 'true' }, svg('rect', { class: `phase ${phase}`, x: 0, width: 12, y: 12 * (1 - heights[phase]), height: 12 * heights[phase] })),
      this.translator.text(`phase.${phase}`))));
  }

  #table(lines, open) {
    const { translator } = this;
    const head = ['from', 'to', 'probe', 'state', 'message'].map((key) => element('th', { scope: 'col' }, translator.text(key)));
    const rows = latest(lines, maxRows).map(({ line, span }) => element('tr', {},
      element('td', {}, this.#time(span.start)), element('td', {}, this.#time(span.end)), element('td', {}, `${line.marker}#${line.probe}`),
      element('td', {}, translator.text(`phase.${span.phase}`)), element('td', {}, span.message ?? '')));
    return element('details', { open }, element('summary', {}, translator.text('timelineTable')),
      element('div', { class: 'scroll' }, element('table', { 'aria-labelledby': 'timeline-title' },
        element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows))));
  }

  #time(time) {
    return this.translator.clock.format(new Date(time));
  }
}

/**
 * Creates a time, whose text drawAges writes.
 * @param {string} text
 * @param {import('./i18n.js').Translator} translator
 * @returns {HTMLElement}
 */
export function timeOf(text, translator) {
  const node = element('time', { datetime: text });
  setAttribute(node, 'title', translator.moment.format(new Date(text)));
  return node;
}

/**
 * Writes how long ago the times of the time elements are.
 * @param {ParentNode} root
 * @param {import('./i18n.js').Translator} translator
 * @param {Date} now
 */
export function drawAges(root, translator, now) {
  for (const node of root.querySelectorAll('time')) setText(node, translator.ago(new Date(node.dateTime), now));
}
