// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { read, write } from './settings.js';

/** The key of the session in the storage, which belongs to this address and port: all tabs have the same. */
const stored = 'seamark-session';

/** The session, if the browser stores nothing. */
let kept = '';

/**
 * Exchanges the key in the fragment of the URL, if there is one, for a session. A key can be used once, and is
 * removed from the URL. If the server does not accept it, the session before may still be valid.
 */
export async function enter() {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (!key) return;
  history.replaceState(history.state, '', location.pathname + location.search);
  try {
    const response = await fetch('api/v1/enter', { method: 'POST', cache: 'no-store', headers: { 'Seamark-Key': key } });
    if (!response.ok) return;
    kept = (await response.json()).session;
    write(stored, kept);
  } catch {
    // The requests that follow report that the server cannot be reached.
  }
}

/**
 * Calls a function when another tab has a new session, or when this one gets a URL with another key.
 * @param {() => void} changed
 */
export function onSession(changed) {
  addEventListener('storage', (event) => event.key === stored && changed());
  addEventListener('hashchange', async () => {
    if (!location.hash.startsWith('#key=')) return;
    await enter();
    changed();
  });
}

/**
 * Requests a path of the API with the session.
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 */
export function request(path, options = {}) {
  const session = read(stored) ?? kept;
  return fetch(path, { ...options, cache: 'no-store', headers: session ? { 'Seamark-Session': session } : {} });
}
