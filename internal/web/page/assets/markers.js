// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element, reconcile, setAttribute, setText, svg } from './dom.js';
import { states } from './location.js';
import { conditionOf, drawMore } from './problems.js';

/** How many markers are shown before "Show all" is chosen. */
const few = 8;

/** The counts of a marker by state. */
const fields = { Failed: 'failed', Unknown: 'unknown', None: 'none', Succeeded: 'succeeded' };

/** Draws the markers as a table. The name of a marker is a link that filters the pods. */
export class Markers {
  #all = false;

  /** @param {(changes: Object) => void} select */
  constructor(select) {
    this.body = byId('markers');
    this.body.addEventListener('click', (event) => {
      const link = event.target.closest('a');
      if (!link) return;
      event.preventDefault();
      const pressed = link.getAttribute('aria-current') === 'true';
      select({ marker: pressed ? '' : link.dataset.marker, reason: '' });
    });
  }

  /**
   * @param {import('./store.js').Store} store
   * @param {import('./i18n.js').Translator} translator
   * @param {import('./location.js').Selection} selection
   * @param {(changes: Object) => string} link returns the URL of the selection with the changes
   */
  draw(store, translator, selection, link) {
    const markers = ordered(store.markers);
    const shown = this.#all ? markers : markers.slice(0, few);
    const view = { translator, selection, link };
    setText(byId('markers-total'), markers.length > 0 ? translator.numbers.format(markers.length) : '');
    byId('no-markers').hidden = !store.ready || markers.length > 0;
    byId('markers-scroll').hidden = markers.length === 0;
    reconcile(this.body, shown, { key: keyOf, create, update: (row, marker) => update(row, marker, view) });
    drawMore(byId('markers-more'), markers.length > few, this.#all, markers.length, translator, () => {
      this.#all = !this.#all;
      this.draw(store, translator, selection, link);
    });
  }
}

function keyOf(marker) {
  return `${marker.namespace}/${marker.name}`;
}

/** Returns the markers with problems first, each part by name. */
function ordered(markers) {
  const troubled = (marker) => Number(marker.problems > 0 || conditionOf(marker) !== '');
  return [...markers].sort((a, b) => troubled(b) - troubled(a) || (keyOf(a) < keyOf(b) ? -1 : 1));
}

function create() {
  const number = () => element('td', { class: 'number' });
  const bar = svg('svg', { class: 'share', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img' },
    ...states.map((state) => svg('rect', { class: state.toLowerCase(), y: 0, height: 8 })));
  return element('tr', {},
    element('th', { scope: 'row' }, element('a', {}, element('span', { class: 'namespace' }), element('span', { class: 'marker-name' }))),
    element('td', { class: 'wide' }, bar), number(), number(), number(), number(), number(), number());
}

function update(row, marker, { translator, selection, link }) {
  const key = keyOf(marker);
  const current = selection.marker === key;
  const anchor = row.firstChild.firstChild;
  setText(anchor.firstChild, selection.namespace ? '' : `${marker.namespace}/`);
  setText(anchor.lastChild, marker.name);
  setAttribute(anchor, 'data-marker', key);
  setAttribute(anchor, 'href', link({ marker: current ? '' : key, reason: '' }));
  setAttribute(anchor, 'aria-current', current && 'true');
  setAttribute(anchor, 'title', marker.invalid ? translator.text('markerInvalid', { reason: marker.invalid }) : translator.text('showMarker', { marker: key }));
  row.classList.toggle('invalid', Boolean(marker.invalid));
  const counts = [marker.pods, ...states.map((state) => marker[fields[state]]), marker.problems + (conditionOf(marker) ? 1 : 0)];
  counts.forEach((count, index) => {
    const cell = row.children[index + 2];
    setText(cell, translator.numbers.format(count));
    cell.classList.toggle('zero', count === 0);
    cell.classList.toggle('alarm', index === counts.length - 1 && count > 0);
  });
  drawShare(row.children[1].firstChild, marker, translator);
}

/** Draws the share of each state as a bar, with a gap between them. */
function drawShare(bar, marker, translator) {
  const total = states.reduce((sum, state) => sum + marker[fields[state]], 0);
  let x = 0;
  const described = [];
  states.forEach((state, index) => {
    const count = marker[fields[state]];
    const width = total > 0 ? (100 * count) / total : 0;
    setAttribute(bar.children[index], 'x', x.toFixed(2));
    setAttribute(bar.children[index], 'width', Math.max(0, width - (x + width < 99.9 ? 0.6 : 0)).toFixed(2));
    if (count > 0) described.push(translator.text('stateCount', { state: translator.text(`state.${state}`), count }));
    x += width;
  });
  setAttribute(bar, 'aria-label', described.join(translator.text('separator')) || translator.text('state.None'));
}
