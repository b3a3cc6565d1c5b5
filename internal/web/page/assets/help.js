// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element } from './dom.js';

const stored = 'seamark-single-keys';

/** Shows the keys in a dialog, and whether the page uses keys that are single characters. */
export class Help {
  constructor() {
    this.dialog = byId('help');
    byId('help-button').addEventListener('click', () => this.open());
    this.dialog.addEventListener('click', (event) => {
      if (event.target === this.dialog || event.target.closest('.close')) this.dialog.close();
    });
    this.dialog.addEventListener('change', (event) => remember(event.target.checked));
  }

  /** Whether the page uses the keys / and ?, which may collide with a screen reader or voice control. */
  get singleKeys() {
    try {
      return localStorage.getItem(stored) !== 'off';
    } catch {
      return true;
    }
  }

  /** Opens the dialog. Escape closes it and returns the focus. */
  open() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  /** @param {import('./i18n.js').Translator} translator */
  translate(translator) {
    const keys = [
      [['/'], 'key.filter'], [['?'], 'key.keys'], [['Tab', 'Shift+Tab'], 'key.tab'], [['←', '→', '↑', '↓'], 'key.arrows'],
      [['Home', 'End'], 'key.ends'], [['Page Up', 'Page Down'], 'key.pages'], [['Enter'], 'key.enter'], [['Esc'], 'key.escape'],
    ];
    this.dialog.replaceChildren(
      element('div', { class: 'head' }, element('h2', { id: 'help-title' }, translator.text('keys')),
        element('button', { type: 'button', class: 'close round', 'aria-label': translator.text('close') }, '×')),
      element('dl', { class: 'keys' }, ...keys.map(([names, text]) => element('div', {},
        element('dt', {}, ...names.map((name) => element('kbd', {}, name))), element('dd', {}, translator.text(text))))),
      element('label', { class: 'check' }, element('input', { type: 'checkbox', id: 'single-keys', checked: this.singleKeys }), translator.text('singleKeys')));
  }
}

function remember(on) {
  try {
    localStorage.setItem(stored, on ? 'on' : 'off');
  } catch {
    // The browser stores nothing: the choice holds until the page is closed.
  }
}
