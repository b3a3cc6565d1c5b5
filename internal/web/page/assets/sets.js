// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element, icon, reconcile, setAttribute, setText } from './dom.js';
import { drawMore } from './problems.js';

/** How many sets are shown before "Show all" is chosen. */
const few = 8;

/**
 * Returns the key of a set in the URL.
 * @param {{kind: string, namespace: string, name: string}} set
 * @returns {string}
 */
export function keyOf({ kind, namespace, name }) {
  return `${kind}/${namespace}/${name}`;
}

/**
 * Returns the key of the set that controls a pod.
 * @param {Object} pod
 * @returns {string} empty if no set does
 */
export function setOf({ namespace, workload }) {
  return workload?.group === 'apps.kruise.io' ? keyOf({ ...workload, namespace }) : '';
}

/**
 * Creates the badge of the phase of a rollout.
 * @param {Object} set
 * @param {import('./i18n.js').Translator} translator
 * @returns {HTMLElement}
 */
export function badge(set, translator) {
  const state = set.problem ? 'problem' : set.complete ? 'succeeded' : 'none';
  return element('span', { class: `badge ${state}` }, icon(state), translator.text(`rollout.${set.phase}`));
}

/**
 * Describes what a rollout waits for.
 * @param {Object} set
 * @param {import('./i18n.js').Translator} translator
 * @returns {string}
 */
export function messageOf(set, translator) {
  const meaning = translator.meaning(set.reason);
  return meaning ? translator.text('reasonAndDetail', { reason: meaning, detail: set.message }) : set.message;
}

/** Draws the sets as a table. The name of a set is a link that opens it. */
export class Sets {
  #all = false;

  /**
   * @param {import('./store.js').Store} store
   * @param {import('./i18n.js').Translator} translator
   * @param {import('./location.js').Selection} selection
   * @param {(changes: Object) => string} link returns the URL of the selection with the changes
   */
  draw(store, translator, selection, link) {
    const { sets, total, note = '' } = store.sets;
    const shown = this.#all ? sets : sets.slice(0, few);
    byId('sets-card').hidden = sets.length === 0 && !note;
    byId('sets-scroll').hidden = sets.length === 0;
    const count = total > sets.length ? translator.text('some', { shown: sets.length, count: total }) : translator.numbers.format(total);
    setText(byId('sets-total'), total > 0 ? count : '');
    byId('sets-note').hidden = !note;
    setText(byId('sets-note'), note && translator.text('setsUnread', { reason: note }));
    const view = { translator, selection, link };
    reconcile(byId('sets'), shown, { key: keyOf, create, update: (row, set) => update(row, set, view) });
    drawMore(byId('sets-more'), sets.length > few, this.#all, sets.length, translator, () => {
      this.#all = !this.#all;
      this.draw(store, translator, selection, link);
    });
  }
}

function create() {
  const number = () => element('td', { class: 'number' });
  return element('tr', {},
    element('th', { scope: 'row' }, element('a', {}, element('span', { class: 'namespace' }), element('span', { class: 'marker-name' })),
      element('span', { class: 'kind' })),
    element('td', { class: 'message' }), element('td', { class: 'revision' }), number(), number());
}

function update(row, set, { translator, selection, link }) {
  const key = keyOf(set);
  const [head, rollout, revision, updated, available] = row.children;
  const anchor = head.firstChild;
  setText(anchor.firstChild, selection.namespace ? '' : `${set.namespace}/`);
  setText(anchor.lastChild, set.name);
  setText(head.lastChild, ` ${set.kind}`);
  setAttribute(anchor, 'data-set', key);
  setAttribute(anchor, 'href', link({ set: key, pod: '' }));
  setAttribute(anchor, 'aria-current', selection.set === key && 'true');
  rollout.replaceChildren(badge(set, translator), ` ${messageOf(set, translator)}`);
  setText(revision, set.revision);
  setText(updated, translator.text('ofNumber', { part: set.updated, whole: set.desired }));
  setText(available, translator.text('ofNumber', { part: set.available, whole: set.desired }));
}
