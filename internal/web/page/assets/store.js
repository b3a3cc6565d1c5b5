// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { keyOf } from './sets.js';
import { Summary } from './summary.js';

/** Holds the pods, markers and sets that the server has sent. */
export class Store {
  /** @type {Map<string, Object>} */
  pods = new Map();
  /** @type {Object[]} */
  markers = [];
  /** @type {{sets: Object[], total: number, note?: string}} */
  sets = { sets: [], total: 0 };
  /** @type {Map<string, Object>} */
  setsByKey = new Map();
  summary = new Summary();
  /** Whether the initial state is complete. */
  ready = false;
  /** The time of the last event. @type {Date|null} */
  updated = null;

  #changed;
  #stale = new Set();

  /** @param {(key: string|null) => void} changed is called with the key of each changed pod, and with null for all other changes */
  constructor(changed) {
    this.#changed = changed;
  }

  /** Forgets everything. */
  clear() {
    for (const key of [...this.pods.keys()]) this.#set(key, undefined);
    this.#stale.clear();
    this.markers = [];
    this.#setSets({ sets: [], total: 0 });
    this.ready = false;
    this.#changed(null);
  }

  /**
   * Applies an event of the stream. After a reset, pods that the server does not send again are removed
   * when the initial state is complete, so that a new connection changes nothing on the page.
   * @param {string} name
   * @param {Object} data
   */
  apply(name, data) {
    this.updated = new Date();
    if (name === 'pods') {
      if (data.reset) this.#stale = new Set(this.pods.keys());
      for (const pod of data.pods ?? []) {
        this.#stale.delete(pod.key);
        this.#set(pod.key, pod);
      }
      for (const key of data.removed ?? []) this.#set(key, undefined);
    } else if (name === 'markers') {
      this.markers = data.markers ?? [];
    } else if (name === 'sets') {
      this.#setSets(data);
    } else if (name === 'ready') {
      for (const key of this.#stale) this.#set(key, undefined);
      this.#stale.clear();
      this.ready = true;
    }
    this.#changed(null);
  }

  #setSets(data) {
    this.sets = data;
    this.setsByKey = new Map(data.sets.map((set) => [keyOf(set), set]));
  }

  #set(key, pod) {
    const before = this.pods.get(key);
    this.summary.replace(before, pod);
    if (pod) this.pods.set(key, pod);
    else this.pods.delete(key);
    this.#changed(key);
  }
}
