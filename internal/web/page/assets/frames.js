// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/** The least and the most time that the page draws in one frame, in milliseconds. */
const least = 8;
const most = 24;

/** Calls a function in the next frames, as long as it has work. Requests in between are combined. */
export class Frames {
  #requested = false;
  #before = 0;

  /** @param {(deadline: number) => boolean} work draws until the deadline and reports whether work is left */
  constructor(work) {
    this.work = work;
  }

  /** Requests a frame. A page in the background gets none until it is shown. */
  request() {
    if (this.#requested) return;
    this.#requested = true;
    requestAnimationFrame((now) => {
      this.#requested = false;
      // Half of the time is left to the browser, which lays out and paints what was drawn.
      const budget = Math.min(most, Math.max(least, (now - this.#before) / 2));
      this.#before = now;
      if (this.work(performance.now() + budget)) this.request();
    });
  }
}
