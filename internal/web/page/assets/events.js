// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element, icon } from './dom.js';
import { drawAges, timeOf } from './timeline.js';

/** Draws the newest events of an object. */
export class Events {
  /** @param {import('./i18n.js').Translator} translator */
  constructor(translator) {
    this.translator = translator;
    this.body = element('div', {}, element('p', { class: 'calm' }, translator.text('loading')));
    this.node = element('section', { 'aria-labelledby': 'events-title' }, element('h3', { id: 'events-title' }, translator.text('events')), this.body);
  }

  /**
   * @param {Object[]} events the newest first
   * @param {string} note why events are missing, or empty
   */
  draw(events, note) {
    const { translator } = this;
    const content = [];
    if (events.length > 0) content.push(element('ul', { class: 'events' }, ...events.map((event) => drawEvent(event, translator))));
    else if (!note) content.push(element('p', { class: 'calm' }, translator.text('noEvents')));
    if (note) content.push(element('p', { class: 'hint' }, translator.text('eventsUnread', { reason: note })));
    this.body.replaceChildren(...content);
    drawAges(this.body, translator, new Date());
  }
}

function drawEvent(event, translator) {
  const warning = event.type === 'Warning';
  return element('li', {},
    element('p', {}, warning ? icon('problem') : null, warning ? element('span', { class: 'hidden' }, translator.text('warning')) : null,
      element('strong', {}, event.reason), event.count > 1 ? ` ${translator.text('times', { count: event.count })}` : '', ' ', timeOf(event.last, translator)),
    element('p', { class: 'output' }, event.message));
}
