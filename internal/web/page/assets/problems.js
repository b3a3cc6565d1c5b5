// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element, icon, reconcile, setAttribute, setText } from './dom.js';
import { keyOf } from './sets.js';

/** How many problems are shown before "Show all" is chosen. */
const few = 5;

/** Draws the problems. Those of probes, grouped by marker and reason, are links that filter the pods. */
export class Problems {
  /** The number of problems. */
  count = 0;
  #all = false;

  /** @param {(changes: Object) => void} select */
  constructor(select) {
    this.select = select;
    this.list = byId('problems');
    this.more = byId('problems-more');
    this.list.addEventListener('click', (event) => {
      const link = event.target.closest('a[data-marker][href]');
      if (!link) return;
      event.preventDefault();
      this.select({ marker: link.dataset.marker, reason: link.dataset.reason, states: [], text: '' });
      byId('pods').focus();
    });
  }

  /**
   * @param {import('./store.js').Store} store
   * @param {import('./objects.js').Objects['list']} objects
   * @param {import('./i18n.js').Translator} translator
   * @param {(changes: Object) => string} link returns the URL of the selection with the changes
   */
  draw(store, objects, translator, link) {
    const problems = problemsOf(store, objects, translator);
    this.count = problems.length;
    const shown = this.#all ? problems : problems.slice(0, few);
    setText(byId('problems-total'), problems.length > 0 ? translator.numbers.format(problems.length) : '');
    byId('problems-card').classList.toggle('some', problems.length > 0);
    byId('no-problems').hidden = !store.ready || problems.length > 0;
    reconcile(this.list, shown, { key: (p) => p.key, create, update: (node, p) => update(node, p, translator, link) });
    drawMore(this.more, problems.length > few, this.#all, problems.length, translator, () => {
      this.#all = !this.#all;
      this.draw(store, objects, translator, link);
    });
  }
}

/**
 * Draws the button that shows all items of a list, or fewer.
 * @param {HTMLButtonElement} button
 * @param {boolean} needed
 * @param {boolean} all whether all are shown
 * @param {number} count
 * @param {import('./i18n.js').Translator} translator
 * @param {() => void} toggle
 */
export function drawMore(button, needed, all, count, translator, toggle) {
  button.hidden = !needed;
  setAttribute(button, 'aria-expanded', String(all));
  setText(button, all ? translator.text('showLess') : translator.text('showAll', { count }));
  button.onclick = toggle;
}

/**
 * Returns the invalid markers, the problems of objects, of rollouts and of probes, the largest first, and the markers
 * that select no pod. Those of objects have no marker.
 * @param {import('./store.js').Store} store
 * @param {import('./objects.js').Objects['list']} objects
 * @param {import('./i18n.js').Translator} translator
 * @returns {{key: string, marker: string, set?: string, of?: string, title: string, reason: string, message: string, count: number}[]}
 */
function problemsOf(store, objects, translator) {
  const ofMarkers = (kind, title, message) => store.markers.filter((marker) => conditionOf(marker) === kind).map((marker) => ({
    key: `${kind} ${marker.namespace}/${marker.name}`, marker: `${marker.namespace}/${marker.name}`, title, reason: '', message: message(marker), count: 0,
  }));
  const groups = store.summary.groups().map(({ key, marker, reason, messages }) => ({
    key, marker, title: translator.reason(reason), reason, message: messages.values().next().value ?? '', count: messages.size,
  }));
  const ofObjects = objects.map(({ kind, name, reason, message }) => ({
    key: `${kind} ${name} ${reason}`, marker: '', of: `${kind} ${name}`, title: translator.reason(reason), reason, message, count: 0,
  }));
  const ofSets = store.sets.sets.filter((set) => set.problem).map((set) => ({
    key: `set ${keyOf(set)}`, marker: '', set: keyOf(set), of: `${set.kind} ${set.namespace}/${set.name}`,
    title: translator.reason(set.reason), reason: set.reason, message: set.message, count: 0,
  }));
  return [
    ...ofMarkers('invalid', translator.reason('InvalidMarker'), (marker) => marker.invalid), ...ofObjects, ...ofSets, ...groups,
    ...(store.ready ? ofMarkers('empty', translator.reason('NoPods'), () => translator.text('emptyMarkerText')) : []),
  ];
}

/**
 * Returns what is wrong with a marker itself.
 * @param {Object} marker
 * @returns {string} invalid, empty (it selects no pod), or an empty text
 */
export function conditionOf(marker) {
  if (marker.invalid) return 'invalid';
  return marker.pods === 0 ? 'empty' : '';
}

function create() {
  return element('li', {}, element('a', {}, icon('problem'), element('span', { class: 'reason' }), element('span', { class: 'of' }),
    element('span', { class: 'pods' }), element('span', { class: 'message' })));
}

function update(node, problem, translator, link) {
  const anchor = node.firstChild;
  const [, reason, of, pods, message] = anchor.children;
  const count = problem.count > 0 ? translator.text('problemPods', { count: problem.count }) : '';
  setText(reason, problem.title);
  setText(of, problem.of ?? problem.marker);
  setText(pods, count);
  setText(message, problem.message);
  setAttribute(anchor, 'data-marker', problem.marker || false);
  setAttribute(anchor, 'data-reason', problem.reason);
  setAttribute(anchor, 'data-set', problem.set);
  if (problem.set) setAttribute(anchor, 'href', link({ set: problem.set, pod: '' }));
  else if (problem.marker) setAttribute(anchor, 'href', link({ marker: problem.marker, reason: problem.reason, states: [], text: '' }));
}
