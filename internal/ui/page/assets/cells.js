// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element, setAttribute, setText } from './dom.js';
import { representative } from './filter.js';

/**
 * Creates the cell of a pod. Its shape and color come from the class of the state.
 * @param {string} key the key of the pod
 * @returns {HTMLElement}
 */
export function createCell(key) {
  return element('div', { role: 'option', tabindex: -1, 'data-pod': key, 'aria-selected': 'false' },
    element('span', { class: 'name' }, element('span', { class: 'start' }), element('span', { class: 'end' })), element('span', { class: 'note' }));
}

/**
 * Updates a cell. Only what differs is written. If the name is too long, the end stays visible: it
 * distinguishes the pods of a workload.
 * @param {HTMLElement} cell
 * @param {Object} pod
 * @param {string} state
 * @param {{translator: import('./i18n.js').Translator, marker: string, names: boolean}} view
 */
export function updateCell(cell, pod, state, view) {
  const shown = representative(pod, view.marker);
  const className = `cell ${state.toLowerCase()}${shown?.notable ? ' troubled' : ''}`;
  if (cell.className !== className) cell.className = className;
  setAttribute(cell, 'aria-label', labelOf(pod, state, shown, view.translator));
  const end = pod.name.lastIndexOf('-');
  setText(cell.firstChild.firstChild, end > 0 ? pod.name.slice(0, end) : '');
  setText(cell.firstChild.lastChild, end > 0 ? pod.name.slice(end) : pod.name);
  setText(cell.lastChild, view.names ? noteOf(shown) : '');
}

/**
 * Returns the note next to the name of a pod: its problem, otherwise its message.
 * @param {Object|undefined} probe
 * @returns {string}
 */
function noteOf(probe) {
  return probe?.problem ? probe.problem.reason : probe?.message ?? '';
}

function labelOf(pod, state, probe, translator) {
  const parts = [pod.name, translator.text(`state.${state}`)];
  if (probe?.problem) parts.push(translator.text('cellProblem', { reason: probe.problem.reason }));
  return parts.join(translator.text('separator'));
}
