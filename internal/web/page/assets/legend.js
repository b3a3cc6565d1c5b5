// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element, reconcile, setText, swatch } from './dom.js';

/** The most probes and marks to choose from. */
const most = 100;

/** Draws what the cells can be colored by, and what the colors mean. */
export class Legend {
  #shown = '';

  constructor() {
    this.list = byId('legend');
  }

  /**
   * @param {import('./grid.js').Grid} grid
   * @param {import('./store.js').Store} store
   * @param {import('./i18n.js').Translator} translator
   * @param {import('./location.js').Selection} selection
   */
  draw(grid, store, translator, selection) {
    this.#drawChoice(store.summary.colors, translator, selection.color);
    this.list.hidden = !selection.color;
    const counts = selection.color ? countLooks(grid) : new Map();
    const shown = grid.colors.looks.filter((look) => counts.has(look));
    reconcile(this.list, shown, { key: (look) => `${look.css} ${look.symbol}`, create: createValue, update: (node, look) => {
      setText(node.children[1], look.text);
      setText(node.children[2], translator.numbers.format(counts.get(look)));
    } });
  }

  /** Draws the choice, if it has changed: an open list would be closed. */
  #drawChoice(colors, translator, selected) {
    const keys = [...colors.keys()].sort().slice(0, most);
    if (selected && !keys.includes(selected)) keys.push(selected);
    const signature = JSON.stringify([translator.language, keys]);
    const select = byId('color');
    if (signature !== this.#shown) {
      this.#shown = signature;
      const isProbe = (key) => key.startsWith('probe:');
      select.replaceChildren(element('option', { value: '' }, translator.text('color.state')),
        options(translator.text('probes'), keys.filter(isProbe), translator), options(translator.text('marks'), keys.filter((key) => !isProbe(key)), translator));
    }
    if (select.value !== selected) select.value = selected;
  }
}

function options(label, keys, translator) {
  const group = element('optgroup', { label }, ...keys.map((key) => element('option', { value: key }, textOf(key, translator))));
  group.hidden = keys.length === 0;
  return group;
}

function textOf(key, translator) {
  const at = key.indexOf(':');
  const [kind, name] = [key.slice(0, at), key.slice(at + 1)];
  return kind === 'probe' ? name : translator.text('color.mark', { name, kind: translator.text(`mark.${kind}`) });
}

/** Returns the numbers of the pods that are shown, by look. */
function countLooks(grid) {
  const counts = new Map();
  for (const group of grid.groups) for (const [look, count] of group.counts) counts.set(look, (counts.get(look) ?? 0) + count);
  return counts;
}

function createValue(look) {
  return element('li', {}, swatch(look), element('bdi'), element('span', { class: 'total' }));
}
