// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/** Reads and writes what the browser stores: the language and the theme. */
export class Settings {
  /** @returns {string|null} */
  get language() {
    return read('seamark-language');
  }

  set language(value) {
    write('seamark-language', value);
  }

  /** @returns {string} system, light or dark */
  get theme() {
    const theme = read('seamark-theme');
    return theme === 'light' || theme === 'dark' ? theme : 'system';
  }

  set theme(value) {
    write('seamark-theme', value);
    if (value === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
  }
}

/**
 * Returns what the browser stores.
 * @param {string} key
 * @returns {string|null} null if it stores nothing
 */
export function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/**
 * Makes the browser store a value.
 * @param {string} key
 * @param {string} value
 */
export function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The browser stores nothing: the value holds until the page is closed.
  }
}
