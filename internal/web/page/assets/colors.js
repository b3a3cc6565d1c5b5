// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { states } from './location.js';

/** The symbols of the values that have an own color. The classes v0, v1, ... have the colors. */
const symbols = ['A', 'B', 'C', 'D', 'E', 'F'];

/** How long the text of a value may be on the page. */
const longest = 60;

/**
 * How a cell looks.
 * @typedef {Object} Look
 * @property {string} css the classes
 * @property {string} symbol a letter, or empty if the class has a shape
 * @property {string} text what the look means
 */

/**
 * Returns what the cell of a pod can be colored by, with the values: the states of its probes, and its marks. A key is
 * probe:MARKER#PROBE, or the kind and the name of a mark, such as label:role.
 * @param {Object|undefined} pod
 * @returns {Map<string, string>}
 */
export function valuesOf(pod) {
  const values = new Map();
  for (const probe of pod?.probes ?? []) {
    values.set(`probe:${probe.marker}#${probe.probe}`, probe.state || 'None');
    for (const mark of probe.marks ?? []) values.set(`${mark.kind}:${mark.name}`, mark.value);
  }
  return values;
}

/** Colors cells by the state of the pod, by that of one probe, or by the value of a mark. */
export class Colors {
  /** The looks in the order of the legend. @type {Look[]} */
  looks = [];
  #key = '';
  #looks = new Map();
  #absent = null;
  #other = null;

  /** @param {import('./i18n.js').Translator} translator */
  constructor(translator, key) {
    this.translator = translator;
    this.#key = key;
    const look = (css, symbol, text) => ({ css, symbol, text: translator.text(text) });
    this.#absent = look('absent', '–', 'noValue');
    this.#other = look('value other', '…', 'otherValues');
    if (!this.#isMark) for (const state of states) this.#looks.set(state, look(state.toLowerCase(), '', `state.${state}`));
    this.#order();
  }

  /** Whether cells are colored by the value of a mark. */
  get #isMark() {
    return this.#key !== '' && !this.#key.startsWith('probe:');
  }

  /** What the cells are colored by, as text: a probe, or the name of a mark. Empty for the state of the pod. */
  get name() {
    return this.#key.slice(this.#key.indexOf(':') + 1);
  }

  /**
   * Gives colors to the most frequent values of the mark. A value keeps its color as long as a pod has it.
   * @param {Map<string, number>|undefined} counts the numbers of pods by value
   * @param {boolean} fresh whether colors may change, because not all pods are known
   * @returns {boolean} whether a color has changed
   */
  assign(counts = new Map(), fresh) {
    if (!this.#isMark) return false;
    const before = [...this.#looks.keys()];
    const kept = fresh ? [] : before.filter((value) => counts.has(value));
    const room = symbols.length - kept.length;
    const added = room > 0 ? frequent(counts, new Set(kept), room) : [];
    if (fresh && added.join('\n') === before.join('\n')) return false;
    if (!fresh && added.length === 0 && kept.length === before.length) return false;
    const free = symbols.filter((symbol) => !kept.some((value) => this.#looks.get(value).symbol === symbol));
    const looks = new Map(kept.map((value) => [value, this.#looks.get(value)]));
    for (const value of added) {
      const symbol = free.shift();
      looks.set(value, { css: `value v${symbols.indexOf(symbol)}`, symbol, text: shorten(value) || this.translator.text('emptyValue') });
    }
    this.#looks = looks;
    this.#order();
    return true;
  }

  #order() {
    this.looks = [...this.#looks.values()];
    if (this.#isMark) this.looks.sort((a, b) => (a.symbol < b.symbol ? -1 : 1)).push(this.#other);
    if (this.#key) this.looks.push(this.#absent);
  }

  /**
   * Returns the value of a pod.
   * @param {Object} pod
   * @param {string} state the state of the pod
   * @returns {string|undefined} undefined if it has none
   */
  valueOf(pod, state) {
    return this.#key ? valuesOf(pod).get(this.#key) : state;
  }

  /**
   * Returns the look of a value.
   * @param {string|undefined} value
   * @returns {Look}
   */
  lookOf(value) {
    return value === undefined ? this.#absent : this.#looks.get(value) ?? this.#other;
  }

  /**
   * Returns the probe of a pod whose message its cell shows, if one was chosen.
   * @param {Object} pod
   * @returns {Object|undefined}
   */
  probeOf(pod) {
    return pod.probes.find((probe) => `probe:${probe.marker}#${probe.probe}` === this.#key);
  }

  /**
   * Returns what the cell shows next to the name instead of a message.
   * @param {string|undefined} value
   * @returns {string|undefined}
   */
  noteOf(value) {
    return this.#isMark && value !== undefined ? shorten(value) : undefined;
  }
}

/** Returns the most frequent values that are not among the known ones, in their order. */
function frequent(counts, known, room) {
  const found = [...counts].filter(([value]) => !known.has(value));
  if (found.length > room) found.sort((a, b) => b[1] - a[1] || compare(a[0], b[0]));
  return found.slice(0, room).map(([value]) => value).sort(compare);
}

function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}

function shorten(value) {
  return value.length > longest ? `${value.slice(0, longest)}…` : value;
}
