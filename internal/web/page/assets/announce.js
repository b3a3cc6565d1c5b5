// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { setText } from './dom.js';

/**
 * Describes the pods in one sentence, for screen readers.
 * @param {import('./store.js').Store} store
 * @param {import('./i18n.js').Translator} translator
 * @param {readonly string[]} states
 * @param {number} problems
 * @returns {string}
 */
export function describe(store, translator, states, problems) {
  const present = states.filter((state) => store.summary.states.has(state));
  return translator.text('summary', {
    count: store.summary.total,
    states: present.map((state) => translator.text('stateCount', { state: translator.text(`state.${state}`), count: store.summary.states.get(state) }))
      .join(translator.text('separator')),
    problems: translator.text('summaryProblems', { count: problems }),
  });
}

/** Writes a text for screen readers, at most once in an interval. */
export class Announcer {
  #timer = 0;
  #next = '';

  /**
   * @param {HTMLElement} node
   * @param {number} interval in milliseconds
   */
  constructor(node, interval) {
    this.node = node;
    this.interval = interval;
  }

  /** Forgets what was said, for another language. */
  clear() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    setText(this.node, '');
  }

  /** @param {string} text */
  say(text) {
    this.#next = text;
    if (this.#timer) return;
    setText(this.node, text);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      if (this.#next !== this.node.textContent) this.say(this.#next);
    }, this.interval);
  }
}
