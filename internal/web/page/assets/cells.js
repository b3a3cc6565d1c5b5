// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element, icon, setAttribute, setText } from './dom.js';
import { representative } from './filter.js';

/**
 * Creates the cell of a pod. Its shape and color come from the classes of its look.
 * @param {string} key the key of the pod
 * @returns {HTMLElement}
 */
export function createCell(key) {
  return element('div', { role: 'option', tabindex: -1, 'data-pod': key, 'aria-selected': 'false' },
    element('span', { class: 'name' }, element('span', { class: 'start' }), element('span', { class: 'end' })), icon('lock'), element('span', { class: 'note' }));
}

/**
 * Updates a cell. Only what differs is written. If the name is too long, the end stays visible: it
 * distinguishes the pods of a workload.
 * @param {HTMLElement} cell
 * @param {Object} pod
 * @param {string|undefined} value what the pod is colored by
 * @param {{translator: import('./i18n.js').Translator, colors: import('./colors.js').Colors, marker: string, names: boolean}} view
 */
export function updateCell(cell, pod, value, view) {
  const { colors } = view;
  const look = colors.lookOf(value);
  const worst = representative(pod, view.marker);
  const shown = worst?.notable ? worst : colors.probeOf(pod) ?? worst;
  const className = `cell ${look.css}${worst?.notable ? ' troubled' : ''}${pod.guard ? ' guarded' : ''}`;
  if (cell.className !== className) cell.className = className;
  setAttribute(cell, 'data-symbol', look.symbol || false);
  const meaning = colors.name ? view.translator.text('colored', { name: colors.name, value: colors.noteOf(value) ?? look.text }) : look.text;
  setAttribute(cell, 'aria-label', labelOf(pod, meaning, shown, view.translator));
  const end = pod.name.lastIndexOf('-');
  setText(cell.firstChild.firstChild, end > 0 ? pod.name.slice(0, end) : '');
  setText(cell.firstChild.lastChild, end > 0 ? pod.name.slice(end) : pod.name);
  setText(cell.lastChild, view.names ? noteOf(shown, colors.noteOf(value), view.translator) : '');
}

/**
 * Returns the note next to the name of a pod: its problem, otherwise its value or the message of its probe.
 * @param {Object|undefined} probe
 * @param {string|undefined} value
 * @param {import('./i18n.js').Translator} translator
 * @returns {string}
 */
function noteOf(probe, value, translator) {
  return probe?.problem ? translator.reason(probe.problem.reason) : value ?? probe?.message ?? '';
}

function labelOf(pod, meaning, probe, translator) {
  const parts = [pod.name, meaning];
  if (probe?.problem) parts.push(translator.text('cellProblem', { reason: translator.reason(probe.problem.reason) }));
  if (pod.guard) parts.push(translator.text('guarded', { name: pod.guard.name }));
  return parts.join(translator.text('separator'));
}
