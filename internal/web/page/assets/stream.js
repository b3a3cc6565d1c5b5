// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { request } from './session.js';
import { Slot } from './slot.js';

/** The first and the longest wait before the page connects again, in milliseconds. */
const firstWait = 1000;
const longestWait = 30000;

/** The server writes at least every 15 seconds. A connection that is silent for longer is closed. */
const longestSilence = 45000;

/**
 * Splits a stream of server-sent events.
 * @param {(name: string, data: string) => void} receive is called for each event
 * @returns {(chunk: string) => void} takes the next part of the stream
 */
export function parser(receive) {
  let rest = '';
  let name = '';
  let data = [];
  const line = (text) => {
    if (text === '') {
      if (data.length > 0) receive(name || 'message', data.join('\n'));
      name = '';
      data = [];
    } else if (text.startsWith('event:')) name = text.slice(6).trim();
    else if (text.startsWith('data:')) data.push(text.slice(5).replace(/^ /, ''));
  };
  return (chunk) => {
    const lines = (rest + chunk).split(/\r?\n/);
    rest = lines.pop();
    lines.forEach(line);
  };
}

/**
 * Reads an error of the API.
 * @param {Response} response
 * @returns {Promise<string>}
 */
export async function reasonOf(response) {
  try {
    const { error } = await response.json();
    if (typeof error === 'string' && error) return error;
  } catch {
    // Something other than the server answered.
  }
  return `HTTP ${response.status} ${response.statusText}`.trim();
}

/**
 * Receives what the server sends, and connects again when the connection ends. EventSource is not used
 * because it hides why the server refuses a connection.
 */
export class Stream {
  #receive;
  #status;
  #slot;
  /** Whether the connection is left to other tabs until this one is in the foreground. */
  #paused = false;
  #abort = null;
  #timer = 0;
  #failures = 0;
  /** Where to connect. It is empty after the server has ended. */
  #url = '';

  /**
   * @param {(name: string, data: Object) => void} receive is called for each event
   * @param {(status: {state: string, seconds?: number, reason?: string}) => void} status is called when the
   *   state changes: connecting, live, waiting (with the seconds until the next try), refused, queued behind other
   *   tabs, paused in the background, or ended if the server does not come back
   */
  constructor(receive, status) {
    this.#receive = receive;
    this.#status = status;
    this.#slot = new Slot(() => this.#pause());
    document.addEventListener('visibilitychange', () => this.#paused && !document.hidden && this.#connect());
    addEventListener('online', () => this.#timer && this.#connect());
    // A browser keeps pages for its back button, and with them their connections, of which it has few.
    addEventListener('pagehide', () => this.#close());
    addEventListener('pageshow', (event) => event.persisted && this.#url && this.#connect());
  }

  /**
   * Connects, and ends the connection before.
   * @param {string} url
   */
  open(url) {
    this.#url = url;
    this.#failures = 0;
    this.#connect();
  }

  #close() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#abort?.abort();
    this.#abort = null;
    this.#paused = false;
    this.#slot.release();
  }

  #pause() {
    this.#close();
    this.#paused = true;
    this.#status({ state: 'paused' });
  }

  async #connect() {
    this.#close();
    const abort = new AbortController();
    this.#abort = abort;
    this.#status({ state: 'connecting' });
    const allowed = await this.#slot.take(abort.signal, () => this.#status({ state: 'queued' }));
    if (this.#abort !== abort) return;
    if (!allowed) {
      this.#pause();
      return;
    }
    let refused = '';
    let reason = '';
    try {
      const response = await request(this.#url, { signal: abort.signal });
      if (response.ok) reason = await this.#read(response, abort);
      else if (response.status === 401 || response.status === 403) refused = await reasonOf(response);
      else reason = await reasonOf(response);
    } catch {
      // The server is not reachable, or the connection broke.
    }
    if (this.#abort !== abort) return;
    this.#slot.release();
    if (this.#url) this.#retry(refused, reason);
    else this.#status({ state: 'ended' });
  }

  /** Reads events until the stream ends, and returns why the server ended it, if it said so. */
  async #read(response, abort) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let reason = '';
    const parse = parser((name, data) => {
      const content = JSON.parse(data);
      if (name === 'end') {
        reason = content.reason ?? '';
        if (content.final) this.#url = '';
        return;
      }
      if (name === 'ready') {
        this.#failures = 0;
        this.#status({ state: 'live' });
      }
      this.#receive(name, content);
    });
    for (;;) {
      const silence = setTimeout(() => abort.abort(), longestSilence);
      const { value, done } = await reader.read().finally(() => clearTimeout(silence));
      if (done || this.#abort !== abort) return reason;
      parse(value);
    }
  }

  #retry(refused, reason) {
    const wait = Math.min(longestWait, firstWait * 2 ** this.#failures) * (0.75 + Math.random() / 2);
    this.#failures++;
    if (refused) this.#status({ state: 'refused', reason: refused });
    else this.#status({ state: 'waiting', seconds: Math.max(1, Math.round(wait / 1000)), reason });
    this.#timer = setTimeout(() => this.#connect(), refused ? longestWait : wait);
  }
}
