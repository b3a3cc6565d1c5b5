// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/**
 * How many tabs of a browser are connected at the same time. Browsers have six connections for a server, and the others
 * are for files and requests: without one, no further tab could even be loaded.
 */
const most = 4;

/** The name of the locks and of the channel. */
const name = 'seamark-stream';

/** How long a tab in the foreground may wait until it says so, in milliseconds. */
const patience = 1000;

/**
 * The right to be connected, of which all tabs of a browser share a few. A tab in the foreground takes it from those in
 * the background. The browser returns the right of a tab that is closed.
 */
export class Slot {
  #release = null;
  #channel = null;

  /**
   * @param {() => void} give is called when another tab needs the slot and this one is in the background. It must call
   *   release
   */
  constructor(give) {
    // Over HTTP from another host than this computer, browsers have no locks.
    if (!navigator.locks) return;
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = () => document.hidden && this.#release && give();
  }

  /**
   * Waits for a slot. In the background, it does not wait.
   * @param {AbortSignal} signal ends the wait
   * @param {() => void} waiting is called if it takes long
   * @returns {Promise<boolean>} whether the tab has a slot
   */
  async take(signal, waiting) {
    if (!this.#channel) return true;
    for (let i = 0; i < most; i++) if (await this.#request(i, { ifAvailable: true }, signal)) return !signal.aborted;
    if (signal.aborted || document.hidden) return false;
    const ask = () => this.#channel.postMessage('');
    const timer = setInterval(() => {
      waiting();
      ask();
    }, patience);
    const taken = new AbortController();
    const ends = AbortSignal.any([signal, taken.signal]);
    const requests = [...Array(most).keys()].map((i) => this.#request(i, { signal: ends }, ends));
    ask();
    const found = await Promise.race([...requests, new Promise((resolve) => signal.addEventListener('abort', () => resolve(false)))]);
    clearInterval(timer);
    taken.abort();
    return found && !signal.aborted;
  }

  /** Returns the slot. */
  release() {
    this.#release?.();
    this.#release = null;
  }

  /** Requests one of the locks, and reports whether the tab has it. */
  #request(index, options, signal) {
    return new Promise((resolve) => {
      navigator.locks.request(`${name}-${index}`, options, (lock) => {
        const wanted = lock !== null && !signal.aborted && this.#release === null;
        const held = wanted ? new Promise((release) => { this.#release = release; }) : undefined;
        resolve(wanted);
        return held;
      }).catch(() => resolve(false));
    });
  }
}
