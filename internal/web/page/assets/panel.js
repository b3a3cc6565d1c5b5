// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { byId, element } from './dom.js';
import { PodView } from './podview.js';
import { SetView } from './setview.js';
import { drawAges } from './timeline.js';

/** How often the ages are drawn, and what the server knows about the object is read again, in milliseconds. */
const ageInterval = 10000;
const readInterval = 30000;

/** Shows the selected pod or set. */
export class Panel {
  /** The key of the object, or empty. */
  key = '';
  #view = null;
  #timers = [];

  /** @param {() => void} close is called when the user closes the panel */
  constructor(close) {
    this.node = byId('panel');
    this.node.addEventListener('click', (event) => event.target.closest('.close') && close());
  }

  /**
   * Opens the panel.
   * @param {import('./location.js').Selection} selection has a pod or a set
   * @param {{translator: import('./i18n.js').Translator, source: string, link: (changes: Object) => string}} options
   */
  open({ pod, set }, options) {
    this.close();
    this.key = pod || set;
    this.translator = options.translator;
    this.#view = pod ? new PodView(pod, options) : new SetView(set, options);
    const { translator } = this;
    this.title = element('h2', { id: 'panel-title', tabindex: -1 }, this.#view.title);
    this.gone = element('p', { class: 'notice', hidden: true }, translator.text(this.#view.goneText));
    this.node.replaceChildren(
      element('header', {}, this.title, element('button', { type: 'button', class: 'close round', 'aria-label': translator.text('closePanel') }, '×')),
      this.gone, ...this.#view.nodes);
    this.node.hidden = false;
    document.body.classList.add('with-panel');
    this.#place();
    requestAnimationFrame(() => this.#place());
    this.#timers = [
      setInterval(() => drawAges(this.node, translator, new Date()), ageInterval),
      setInterval(() => document.hidden || this.#view.refresh(), readInterval),
    ];
  }

  /** In a wide window, the panel begins where the window does, and scrolls with the page. */
  #place() {
    this.node.style.setProperty('--from', `${Math.max(0, -this.node.parentNode.getBoundingClientRect().top)}px`);
  }

  /** Moves the focus to the title. */
  focus() {
    this.title.focus({ preventScroll: true });
  }

  /** Closes the panel. */
  close() {
    if (!this.key) return;
    this.#timers.forEach(clearInterval);
    this.#view.close();
    this.key = '';
    this.node.hidden = true;
    document.body.classList.remove('with-panel');
    this.node.replaceChildren();
  }

  /**
   * Draws the object, if it has changed.
   * @param {import('./store.js').Store} store
   */
  draw(store) {
    this.gone.hidden = this.#view.draw(store) || !store.ready;
  }
}
