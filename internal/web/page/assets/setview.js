// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element, icon } from './dom.js';
import { Events } from './events.js';
import { Poll } from './poll.js';
import { badge, messageOf } from './sets.js';

/** The minimum time between two requests, in milliseconds: the server reads all pods of the set. */
const pause = 10000;

/** What the panel shows of a set: its rollout, the pods that it waits for, and its events. */
export class SetView {
  goneText = 'goneSet';
  #set = null;

  /**
   * @param {string} key KIND/NAMESPACE/NAME
   * @param {{translator: import('./i18n.js').Translator}} view
   */
  constructor(key, { translator }) {
    this.key = key;
    const [kind, namespace, name] = key.split('/');
    this.title = name ?? key;
    this.translator = translator;
    this.facts = element('dl', { class: 'facts' });
    this.waits = element('div');
    this.events = new Events(translator);
    this.nodes = [
      this.facts, element('section', { 'aria-labelledby': 'waits-title' }, element('h3', { id: 'waits-title' }, translator.text('waits')), this.waits),
      this.events.node,
      element('p', { class: 'hint' }, `${translator.text('explain')} `, element('code', {}, `seamark explain ${kind.toLowerCase()}/${name} -n ${namespace}`)),
    ];
    const path = `api/v1/set?${new URLSearchParams({ namespace, kind, set: name })}`;
    this.poll = new Poll(pause, () => path, (data) => this.#receive(data), (error) => this.#fail(error));
  }

  /**
   * Draws the set, if it has changed.
   * @param {import('./store.js').Store} store
   * @returns {boolean} whether it exists
   */
  draw(store) {
    const set = store.setsByKey.get(this.key);
    if (set && set !== this.#set) {
      this.#set = set;
      this.#drawFacts(set);
      this.poll.refresh();
    }
    return Boolean(set);
  }

  /** Reads the pods and the events again. */
  refresh() {
    if (this.#set) this.poll.refresh();
  }

  /** Stops reading. */
  close() {
    this.poll.close();
  }

  #drawFacts(set) {
    const { translator } = this;
    const of = (part) => translator.text('ofNumber', { part, whole: set.desired });
    const facts = [
      ['namespace', set.namespace], ['kind', set.kind], ['rollout', element('span', {}, badge(set, translator), ` ${messageOf(set, translator)}`)],
      ['revision', set.revision], ['updated', of(set.updated)], ['available', of(set.available)],
    ];
    this.facts.replaceChildren(...facts.map(([name, value]) => element('div', {}, element('dt', {}, translator.text(name)), element('dd', {}, value))));
  }

  #receive({ waits, waitCount, podsNote, events, note }) {
    const { translator } = this;
    const content = [];
    if (waits.length > 0) content.push(element('ul', { class: 'events' }, ...waits.map((wait) => drawWait(wait))));
    else if (!podsNote) content.push(element('p', { class: 'calm' }, translator.text('noWaits')));
    if (waitCount > waits.length) content.push(element('p', { class: 'hint' }, translator.text('some', { shown: waits.length, count: waitCount })));
    if (podsNote) content.push(element('p', { class: 'hint' }, translator.text('podsUnread', { reason: podsNote })));
    this.waits.replaceChildren(...content);
    this.events.draw(events, note ?? '');
  }

  #fail(error) {
    // Without a server, what is shown stays: the page says that it is not connected.
    if (error instanceof TypeError && this.waits.firstChild) return;
    this.waits.replaceChildren(element('p', { class: 'calm' }, this.translator.text('setFailed', { reason: error.message })));
  }
}

function drawWait({ name, why, problem }) {
  return element('li', {}, problem ? icon('problem') : null, element('strong', {}, name), element('p', { class: 'output' }, why));
}
