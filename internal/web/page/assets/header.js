// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element, setText } from './dom.js';
import { names } from './i18n.js';

/** The value of the choice that asks for the name of a namespace. */
const other = '?';

/** Draws the header: where the data come from, the connection, and the settings. */
export class Header {
  #shown = null;
  /** Where the data come from. */
  source = 'cluster';

  /** @param {{namespace: (name: string) => void, language: (name: string) => void, theme: (name: string) => void}} choose */
  constructor(choose) {
    this.choose = choose;
    const namespace = byId('namespace');
    namespace.addEventListener('change', () => this.#chooseNamespace(namespace.value));
    byId('namespace-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const name = byId('namespace-name').value.trim();
      if (name) this.#chooseNamespace(name);
    });
    byId('language').addEventListener('change', (event) => choose.language(event.target.value));
    byId('theme').addEventListener('change', (event) => choose.theme(event.target.value));
  }

  #chooseNamespace(value) {
    byId('namespace-form').hidden = value !== other;
    if (value === other) byId('namespace-name').focus();
    else this.choose.namespace(value);
  }

  /**
   * Draws the choices.
   * @param {import('./i18n.js').Translator} translator
   * @param {string} theme
   */
  translate(translator, theme) {
    this.translator = translator;
    this.#shown = null;
    options(byId('language'), Object.entries(names), translator.language);
    options(byId('theme'), ['system', 'light', 'dark'].map((value) => [value, translator.text(`theme.${value}`)]), theme);
  }

  /**
   * Draws the session.
   * @param {Object|null} session
   */
  drawSession(session) {
    if (!session) return;
    this.source = session.source === 'local' ? 'local' : 'cluster';
    const parts = [this.translator.text(`source.${this.source}`), session.user, session.version];
    setText(byId('source'), parts.filter(Boolean).join(' · '));
  }

  /**
   * Draws the namespaces: those that the user may see, those of the pods, and the selected one.
   * @param {Object|null} session
   * @param {{whole: boolean, names: string[], shown?: string[]}} visible
   * @param {Iterable<string>} known
   * @param {string} selected
   */
  drawNamespaces(session, visible, known, selected) {
    const some = !visible.whole && !selected;
    byId('some-namespaces').hidden = !some;
    const names = (visible.shown ?? []).join(this.translator.text('separator'));
    if (some) setText(byId('some-namespaces'), this.translator.text('someNamespaces', { names }));
    const all = new Set([...visible.names, ...known]);
    if (selected) all.add(selected);
    const list = [...all].sort();
    const signature = [selected, ...list].join(' ');
    if (signature === this.#shown) return;
    this.#shown = signature;
    options(byId('namespace'), [
      ['', this.translator.text('allNamespaces')], ...list.map((name) => [name, name]),
      ...(session?.source === 'local' ? [] : [[other, this.translator.text('otherNamespace')]]),
    ], selected);
    byId('namespace-form').hidden = true;
  }

  /**
   * Draws the state of the connection, and a notice if the page is not up to date.
   * @param {{state: string, seconds?: number, reason?: string}} status
   * @param {Date|null} updated when the server sent something for the last time
   */
  drawStatus(status, updated) {
    const { translator } = this;
    byId('connection').dataset.state = status.state;
    setText(byId('connection-text'), translator.text(`connection.${status.state}`, { count: status.seconds ?? 0 }));
    byId('namespace').disabled = status.state === 'ended';
    setText(byId('notice'), this.#notice(status, updated));
    byId('notice').hidden = byId('notice').textContent === '';
  }

  #notice(status, updated) {
    const { translator } = this;
    const { reason } = status;
    if (status.state === 'refused') return translator.text('refused', { reason });
    if (status.state === 'queued') return translator.text('queued');
    if (status.state === 'live' || status.state === 'connecting' && !byId('notice').textContent) return '';
    if (!updated) return reason ? translator.text('failed', { reason }) : byId('notice').textContent;
    const time = translator.clock.format(updated);
    if (status.state === 'ended') return translator.text(`ended.${this.source}`, { time });
    if (status.state === 'connecting') return byId('notice').textContent;
    return reason ? translator.text('staleReason', { time, reason }) : translator.text('stale', { time });
  }
}

function options(select, values, selected) {
  select.replaceChildren(...values.map(([value, text]) => element('option', { value }, text)));
  select.value = selected;
}
