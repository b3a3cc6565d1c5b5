// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { request } from './session.js';

/** How often the problems are read, in milliseconds. */
const interval = 30000;

/** Reads the problems of objects that the stream does not have, while the page is in the foreground. */
export class Objects {
  /** @type {{kind: string, name: string, reason: string, message: string}[]} */
  list = [];
  #changed;
  #url = '';
  #timer = 0;

  /** @param {() => void} changed is called after each answer */
  constructor(changed) {
    this.#changed = changed;
    document.addEventListener('visibilitychange', () => this.#url && this.#read());
  }

  /**
   * Reads from now on.
   * @param {string} url
   */
  open(url) {
    this.#url = url;
    this.#read();
  }

  /** Keeps the last answer. */
  close() {
    this.#url = '';
    clearTimeout(this.#timer);
  }

  async #read() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const url = this.#url;
    this.#timer = setTimeout(() => this.#read(), interval);
    try {
      const response = await request(url);
      const list = response.ok ? await response.json() : this.list;
      if (url !== this.#url) return;
      this.list = list;
      this.#changed();
    } catch {
      // The stream reports that the server cannot be read.
    }
  }
}
