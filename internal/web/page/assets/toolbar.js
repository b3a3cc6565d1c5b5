// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element, icon, reconcile, setAttribute, setText } from './dom.js';
import { states } from './location.js';

/** Draws the filter of the pods: text, states, grouping, and what other parts of the page have chosen. */
export class Toolbar {
  /** @param {(changes: Object) => void} select */
  constructor(select) {
    this.select = select;
    this.filter = byId('filter');
    this.filter.addEventListener('input', () => select({ text: this.filter.value }));
    byId('states').addEventListener('click', (event) => this.#toggle(event.target.closest('button')));
    byId('chosen').addEventListener('click', (event) => this.#remove(event.target.closest('button')));
    byId('choices').addEventListener('change', (event) => select({ [event.target.name]: event.target.value }));
  }

  #toggle(button) {
    if (!button) return;
    const { states: chosen } = this.selection;
    const { state } = button.dataset;
    this.select({ states: chosen.includes(state) ? chosen.filter((s) => s !== state) : states.filter((s) => s === state || chosen.includes(s)) });
  }

  #remove(button) {
    if (!button) return;
    const { field } = button.dataset;
    this.select(field === 'all' ? { marker: '', reason: '', states: [], text: '' } : { [field]: '' });
    this.filter.focus();
  }

  /**
   * Draws the texts that depend on the language only.
   * @param {import('./i18n.js').Translator} translator
   */
  translate(translator) {
    byId('choices').replaceChildren(
      choice('color', translator.text('colorBy'), []),
      choice('group', translator.text('groupBy'), ['workload', 'node'].map((value) => [value, translator.text(`group.${value}`)])),
      choice('cells', translator.text('cells'), ['auto', 'names', 'dense'].map((value) => [value, translator.text(`cells.${value}`)])));
  }

  /**
   * @param {import('./grid.js').Grid} grid
   * @param {import('./store.js').Store} store
   * @param {import('./i18n.js').Translator} translator
   * @param {import('./location.js').Selection} selection
   */
  draw(grid, store, translator, selection) {
    this.selection = selection;
    if (this.filter.value !== selection.text) this.filter.value = selection.text;
    reconcile(byId('states'), states, { key: (s) => s, create: createState, update: (node, state) => {
      setText(node.children[1], translator.text(`state.${state}`));
      setText(node.children[2], translator.numbers.format(grid.counts.get(state) ?? 0));
      setAttribute(node, 'aria-pressed', String(selection.states.includes(state)));
    } });
    for (const field of ['group', 'cells']) {
      const select = byId(field);
      if (select.value !== selection[field]) select.value = selection[field];
    }
    const { total } = store.summary;
    setText(byId('pods-total'), grid.shown === total ? translator.numbers.format(total) : translator.text('shown', { shown: grid.shown, count: total }));
    this.#drawChosen(translator, selection);
    this.#drawEmpty(grid, store, translator);
  }

  #drawChosen(translator, selection) {
    const chosen = [];
    if (selection.marker) chosen.push({ field: 'marker', text: translator.text('chosenMarker', { name: selection.marker }) });
    if (selection.reason) chosen.push({ field: 'reason', text: translator.text('chosenReason', { name: translator.reason(selection.reason) }) });
    if (chosen.length > 0 || selection.states.length > 0 || selection.text) chosen.push({ field: 'all', text: translator.text('clear') });
    byId('chosen').hidden = chosen.length === 0;
    reconcile(byId('chosen'), chosen, { key: (c) => c.field, create: createChosen, update: (node, c) => {
      setText(node.firstChild, c.text);
      setAttribute(node, 'aria-label', c.field === 'all' ? c.text : translator.text('remove', { name: c.text }));
    } });
  }

  #drawEmpty(grid, store, translator) {
    const text = !store.ready ? 'loading' : store.summary.total === 0 ? 'noPods' : 'noMatch';
    byId('no-pods').hidden = grid.shown > 0;
    setText(byId('no-pods'), translator.text(text));
  }
}

function choice(name, label, values) {
  return element('label', {}, `${label} `, element('select', { id: name, name },
    ...values.map(([value, text]) => element('option', { value }, text))));
}

function createState(state) {
  return element('button', { type: 'button', 'data-state': state }, icon(state), element('span'), element('span', { class: 'amount' }));
}

function createChosen({ field }) {
  return element('button', { type: 'button', 'data-field': field, class: field === 'all' ? 'plain' : 'chip' }, element('span'),
    field === 'all' ? null : element('span', { class: 'cross', 'aria-hidden': 'true' }, '×'));
}
