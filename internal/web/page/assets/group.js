// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element, setAttribute, setText, swatch } from './dom.js';
import { comparePods, position } from './groups.js';
import { badge } from './sets.js';

/** More pods than these take the whole width. */
const wideDense = 40;
const wideNames = 4;

/** A group of pods on the page. One of its cells is in the Tab order. */
export class Group {
  /** The shown pods in order. @type {Object[]} */
  entries = [];
  /** The numbers of pods by look. */
  counts = new Map();
  /** The entry in the Tab order. */
  active = null;
  dirty = true;

  /** @param {import('./groups.js').GroupID} id */
  constructor(id) {
    this.id = id;
    this.kind = element('span', { class: 'kind' });
    this.name = element('span', { class: 'group-name' });
    this.rollout = element('a', { class: 'rollout', hidden: true });
    // The label of the list names the counts with their states.
    this.tally = element('span', { class: 'tally', 'aria-hidden': 'true' });
    this.list = element('div', { class: 'cells', role: 'listbox' });
    this.node = element('section', { class: 'group' }, element('h3', {}, this.name, this.kind, this.rollout, this.tally), this.list);
    this.list.group = this;
  }

  /** @param {Object} entry */
  add(entry) {
    const at = position(this.entries, entry, comparePods);
    this.list.insertBefore(entry.node, this.entries[at]?.node ?? null);
    this.entries.splice(at, 0, entry);
    this.#count(entry, 1);
  }

  /**
   * Removes an entry. If its cell has the focus, a cell next to it gets the focus.
   * @param {Object} entry
   */
  remove(entry) {
    const at = position(this.entries, entry, comparePods);
    this.entries.splice(at, 1);
    this.#count(entry, -1);
    const focused = document.activeElement === entry.node;
    entry.node.remove();
    const next = this.entries[at] ?? this.entries[at - 1];
    if (this.active === entry) this.activate(next ?? null);
    if (focused) (next?.node ?? document.getElementById('pods')).focus({ preventScroll: true });
  }

  /**
   * Changes the look of an entry of the group.
   * @param {Object} entry
   * @param {import('./colors.js').Look} look
   */
  setLook(entry, look) {
    this.#count(entry, -1);
    entry.look = look;
    this.#count(entry, 1);
  }

  /**
   * Puts the cell of an entry into the Tab order, instead of the one before.
   * @param {Object|null} entry
   */
  activate(entry) {
    if (this.active) this.active.node.tabIndex = -1;
    this.active = entry;
    if (entry) entry.node.tabIndex = 0;
  }

  #count(entry, by) {
    const count = (this.counts.get(entry.look) ?? 0) + by;
    if (count > 0) this.counts.set(entry.look, count);
    else this.counts.delete(entry.look);
    this.dirty = true;
  }

  /**
   * Draws the title and the counts, if they have changed.
   * @param {{translator: import('./i18n.js').Translator, by: string, namespaced: boolean, names: boolean,
   *   looks: import('./colors.js').Look[], sets: Map<string, Object>, link: (changes: Object) => string}} view
   */
  draw(view) {
    if (!this.dirty) return;
    this.dirty = false;
    if (!this.active) this.activate(this.entries[0] ?? null);
    const { translator } = view;
    const name = this.id.name || translator.text(view.by === 'node' ? 'noNode' : 'noWorkload');
    setText(this.name, name);
    setText(this.kind, [view.namespaced ? this.id.namespace : '', this.id.kind].filter(Boolean).join(' · '));
    this.#drawRollout(view);
    const present = view.looks.filter((look) => this.counts.has(look));
    this.tally.replaceChildren(...present.map((look) =>
      element('span', { class: 'count' }, swatch(look), translator.numbers.format(this.counts.get(look)))));
    const described = present.map((look) => translator.text('stateCount', { state: look.text, count: this.counts.get(look) }));
    setAttribute(this.list, 'aria-label', translator.text('groupLabel', {
      name, count: this.entries.length, states: described.join(translator.text('separator')),
    }));
    const kind = this.entries.length > (view.names ? wideNames : wideDense) ? 'group broad' : 'group';
    if (this.node.className !== kind) this.node.className = kind;
  }

  /** Draws a link to the set that controls the pods, with the phase of its rollout. */
  #drawRollout({ translator, sets, link }) {
    const set = sets.get(this.id.set);
    this.rollout.hidden = !set;
    if (!set) {
      this.rollout.replaceChildren();
      return;
    }
    setAttribute(this.rollout, 'data-set', this.id.set);
    setAttribute(this.rollout, 'href', link({ set: this.id.set, pod: '' }));
    this.rollout.replaceChildren(badge(set, translator), ' ', translator.text('updatedOf', { part: set.updated, whole: set.desired }));
  }
}
