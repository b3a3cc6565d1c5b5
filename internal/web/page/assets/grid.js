// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { createCell, updateCell } from './cells.js';
import { Colors } from './colors.js';
import { Filter, stateOf } from './filter.js';
import { Group } from './group.js';
import { compareGroups, groupOf, position } from './groups.js';

/** With at most this many pods, cells have names. */
const fewPods = 150;

/** How many pods are drawn before the time is checked. */
const step = 20;

/**
 * Draws the pods as cells in groups. Changed pods wait in a set until draw is called, and draw stops
 * at its deadline, so that the page stays responsive with thousands of changes.
 */
export class Grid {
  /** The number of pods that match the filter by state, whether or not the state is selected. */
  counts = new Map();
  /** The number of pods that are shown. */
  shown = 0;

  #entries = new Map();
  /** @type {Map<string, Group>} */
  #groups = new Map();
  /** @type {Group[]} */
  #ordered = [];
  #pending = new Set();
  #filter;
  #colors;
  #names = true;

  /**
   * @param {{root: HTMLElement, store: import('./store.js').Store, translator: import('./i18n.js').Translator,
   *   selection: import('./location.js').Selection, link: (changes: Object) => string}} options
   */
  constructor({ root, store, translator, selection, link }) {
    this.root = root;
    this.store = store;
    this.translator = translator;
    this.selection = selection;
    this.link = link;
    this.#filter = new Filter(selection);
    this.#colors = new Colors(translator, selection.color);
    root.addEventListener('animationend', (event) => event.target.classList?.remove('changed'));
  }

  /** The groups in order. */
  get groups() {
    return this.#ordered;
  }

  /** How the cells are colored. */
  get colors() {
    return this.#colors;
  }

  /** Whether cells have names. */
  get names() {
    return this.#names;
  }

  /**
   * Marks a pod as changed.
   * @param {string} key
   */
  change(key) {
    this.#pending.add(key);
  }

  /**
   * Draws all pods again, with another selection or language.
   * @param {import('./location.js').Selection} selection
   * @param {import('./i18n.js').Translator} translator
   */
  redraw(selection, translator) {
    if (selection.color !== this.selection.color || translator !== this.translator) this.#colors = new Colors(translator, selection.color);
    this.selection = selection;
    this.translator = translator;
    this.#filter.set(selection);
    this.#touch();
  }

  /** Marks all groups as changed. */
  touchGroups() {
    for (const group of this.#ordered) group.dirty = true;
  }

  /** Marks all pods and groups as changed. */
  #touch() {
    this.touchGroups();
    for (const key of this.#entries.keys()) this.#pending.add(key);
  }

  /**
   * Returns the entry of a pod that is shown.
   * @param {string} key
   * @returns {Object|undefined}
   */
  entry(key) {
    const entry = this.#entries.get(key);
    return entry?.group ? entry : undefined;
  }

  /**
   * Draws changed pods until the deadline.
   * @param {number} deadline in the time of performance.now
   * @returns {boolean} whether pods are left
   */
  draw(deadline) {
    const { store } = this;
    if (this.#colors.assign(store.summary.colors.get(this.selection.color), !store.ready)) this.#touch();
    let drawn = 0;
    for (const key of this.#pending) {
      this.#pending.delete(key);
      this.#drawPod(key);
      if (++drawn % step === 0 && performance.now() > deadline) break;
    }
    this.#chooseCells();
    const view = {
      translator: this.translator, by: this.selection.group, names: this.#names, namespaced: !this.selection.namespace,
      looks: this.#colors.looks, sets: store.setsByKey, link: this.link,
    };
    for (const group of this.#ordered) group.draw(view);
    return this.#pending.size > 0;
  }

  #drawPod(key) {
    const pod = this.store.pods.get(key);
    const entry = this.#entries.get(key) ?? { key, name: pod?.name, node: null, state: '', value: undefined, colors: null, look: null, matches: false, group: null };
    const matches = pod !== undefined && this.#filter.matches(pod);
    const state = matches ? stateOf(pod, this.#filter.marker) : '';
    this.#countMatch(entry, matches, state);
    const shown = matches && (this.selection.states.length === 0 || this.selection.states.includes(state));
    const value = shown ? this.#colors.valueOf(pod, state) : undefined;
    const changed = entry.group !== null && entry.colors === this.#colors && entry.value !== value;
    entry.value = value;
    entry.colors = this.#colors;
    const id = shown ? groupOf(pod, this.selection.group) : null;
    if (entry.group && entry.group.id.key !== id?.key) this.#hide(entry);
    if (shown) this.#show(entry, pod, id, changed);
    entry.state = state;
    entry.matches = matches;
    if (pod) this.#entries.set(key, entry);
    else this.#entries.delete(key);
  }

  #countMatch(entry, matches, state) {
    if (entry.matches) this.counts.set(entry.state, this.counts.get(entry.state) - 1);
    if (matches) this.counts.set(state, (this.counts.get(state) ?? 0) + 1);
  }

  #show(entry, pod, id, changed) {
    const look = this.#colors.lookOf(entry.value);
    entry.node ??= createCell(entry.key);
    updateCell(entry.node, pod, entry.value, { translator: this.translator, colors: this.#colors, marker: this.#filter.marker, names: this.#names });
    entry.node.setAttribute('aria-selected', String(this.selection.pod === entry.key));
    if (entry.group) {
      if (entry.look !== look) entry.group.setLook(entry, look);
    } else {
      entry.look = look;
      entry.group = this.#group(id);
      entry.group.add(entry);
      this.shown++;
    }
    if (changed) entry.node.classList.add('changed');
  }

  #hide(entry) {
    const { group } = entry;
    group.remove(entry);
    entry.group = null;
    this.shown--;
    if (group.entries.length > 0) return;
    this.#ordered.splice(this.#ordered.indexOf(group), 1);
    this.#groups.delete(group.id.key);
    group.node.remove();
  }

  #group(id) {
    let group = this.#groups.get(id.key);
    if (group) return group;
    group = new Group(id);
    this.#groups.set(id.key, group);
    const at = position(this.#ordered, group, (a, b) => compareGroups(a.id, b.id));
    this.root.insertBefore(group.node, this.#ordered[at]?.node ?? null);
    this.#ordered.splice(at, 0, group);
    return group;
  }

  /** Chooses between cells with names and compact ones. */
  #chooseCells() {
    const { cells } = this.selection;
    const names = cells === 'names' || (cells === 'auto' && this.shown <= fewPods);
    this.root.classList.toggle('dense', !names);
    if (names === this.#names) return;
    this.#names = names;
    this.touchGroups();
    for (const [key, entry] of this.#entries) if (entry.group) this.#pending.add(key);
  }

  /**
   * Marks the cell of the pod in the panel.
   * @param {string} before
   * @param {string} after
   */
  select(before, after) {
    this.#entries.get(before)?.node?.setAttribute('aria-selected', 'false');
    this.#entries.get(after)?.node?.setAttribute('aria-selected', 'true');
  }
}
