// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { request } from './session.js';
import { reasonOf } from './stream.js';

/** Reads a path of the API when it is asked to, not more often than once in a few seconds. Only the last answer counts. */
export class Poll {
  #timer = 0;
  #requested = 0;
  #abort = null;

  /**
   * @param {number} pause the minimum time between two requests, in milliseconds
   * @param {() => string} path returns what to read
   * @param {(data: Object) => void} receive
   * @param {(error: Error) => void} fail is called with a TypeError if the server cannot be reached
   */
  constructor(pause, path, receive, fail) {
    this.pause = pause;
    this.path = path;
    this.receive = receive;
    this.fail = fail;
  }

  /** Reads again, after a pause if the last request is recent. */
  refresh() {
    if (this.#timer) return;
    const wait = Math.max(0, this.#requested + this.pause - Date.now());
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#read();
    }, wait);
  }

  /** Reads something else without a pause. */
  restart() {
    this.#requested = 0;
    this.refresh();
  }

  /** Stops reading. */
  close() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#abort?.abort();
  }

  async #read() {
    this.#requested = Date.now();
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    try {
      const response = await request(this.path(), { signal: abort.signal });
      if (!response.ok) throw new Error(await reasonOf(response));
      this.receive(await response.json());
    } catch (error) {
      if (!abort.signal.aborted) this.fail(error);
    }
  }
}
