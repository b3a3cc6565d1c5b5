// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { Announcer, describe } from './announce.js';
import { byId, setText } from './dom.js';
import { Frames } from './frames.js';
import { Grid } from './grid.js';
import { Header } from './header.js';
import { Help } from './help.js';
import { Translator, languageOf, translatePage } from './i18n.js';
import { format, parse, states } from './location.js';
import { Legend } from './legend.js';
import { Markers } from './markers.js';
import { addMoves } from './moves.js';
import { Objects } from './objects.js';
import { Panel } from './panel.js';
import { Problems } from './problems.js';
import { enter, onSession, request } from './session.js';
import { Sets } from './sets.js';
import { Settings } from './settings.js';
import { Store } from './store.js';
import { Stream, reasonOf } from './stream.js';
import { Tip } from './tip.js';
import { Toolbar } from './toolbar.js';

/** The minimum time between two announcements for screen readers, in milliseconds. */
const announcement = 5000;

/** How long the URL lags behind, in milliseconds: browsers limit how often it may change. */
const urlDelay = 300;

/** The page: what the URL selects, the data, and the parts that draw them. */
class Page {
  #urlTimer = 0;
  #session = null;
  #status = { state: 'connecting' };
  #namespaces = { whole: true, names: [] };
  /** Whether parts other than the cells must be drawn. */
  #dirty = true;

  constructor() {
    this.settings = new Settings();
    this.selection = parse(location.search);
    const language = languageOf(this.selection.language || this.settings.language, navigator.languages);
    this.translator = new Translator(language);
    this.store = new Store((key) => this.#changed(key));
    this.stream = new Stream((name, data) => this.#receive(name, data), (status) => this.#connection(status));
    this.objects = new Objects(() => this.#changed(null));
    this.frames = new Frames((deadline) => this.#draw(deadline));
    const select = (changes) => this.select(changes);
    const link = (changes) => this.#link(changes);
    this.grid = new Grid({ root: byId('groups'), store: this.store, translator: this.translator, selection: this.selection, link });
    this.tip = new Tip(byId('tip'), this.grid);
    this.problems = new Problems(select);
    this.markers = new Markers(select);
    this.sets = new Sets();
    this.toolbar = new Toolbar(select);
    this.legend = new Legend();
    this.panel = new Panel(() => this.closePanel());
    this.help = new Help();
    this.announcer = new Announcer(byId('live'), announcement);
    this.header = new Header({
      namespace: (name) => this.select({ namespace: name, marker: '', reason: '', pod: '', set: '' }, true),
      language: (name) => this.#language(name),
      theme: (theme) => { this.settings.theme = theme; },
    });
    addMoves(this.grid, (key) => this.select({ pod: key, set: '' }, true));
    document.addEventListener('click', (event) => this.#openSet(event));
    addEventListener('popstate', () => this.#apply(parse(location.search)));
    document.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Shows the page and connects to the server. */
  async start() {
    this.#translate();
    this.#openPanel();
    this.frames.request();
    await enter();
    onSession(() => this.#open());
    await this.#readSession();
    if (!this.selection.namespace && this.#session?.namespace) {
      this.selection.namespace = this.#session.namespace;
      history.replaceState(null, '', this.#url(this.selection));
    }
    this.#open();
  }

  /**
   * Changes what is selected, and the URL.
   * @param {Object} changes fields of a Selection
   * @param {boolean} [step] whether the browser's back button returns to the state before
   */
  select(changes, step = false) {
    if (step) {
      this.#writeURL();
      history.pushState(null, '', this.#url({ ...this.selection, ...changes }));
    } else {
      clearTimeout(this.#urlTimer);
      this.#urlTimer = setTimeout(() => this.#writeURL(), urlDelay);
    }
    this.#apply({ ...this.selection, ...changes });
    if (changes.pod || changes.set) this.panel.focus();
  }

  /** Opens the set of a link, wherever it is, unless the user opens it in another tab. */
  #openSet(event) {
    const link = event.target.closest?.('a[data-set]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.select({ set: link.dataset.set, pod: '' }, true);
  }

  /** Closes the panel and returns the focus to the cell of its pod, or to a link to its set. */
  closePanel() {
    const { pod, set } = this.selection;
    this.select({ pod: '', set: '' }, true);
    const opener = pod ? this.grid.entry(pod)?.node : document.querySelector(`a[data-set="${CSS.escape(set)}"]`);
    (opener ?? byId('pods')).focus();
  }

  #apply(selection) {
    const before = this.selection;
    this.selection = selection;
    if (selection.namespace !== before.namespace && this.#status.state !== 'ended') {
      this.store.clear();
      this.#open();
    }
    const sameCells = ['namespace', 'group', 'cells', 'color', 'text', 'marker', 'reason'].every((field) => selection[field] === before[field]) &&
      selection.states.join() === before.states.join();
    if (sameCells) this.grid.selection = selection;
    else this.grid.redraw(selection, this.translator);
    if (selection.pod !== before.pod) this.grid.select(before.pod, selection.pod);
    if (selection.pod !== before.pod || selection.set !== before.set) this.#openPanel();
    this.#changed(null);
  }

  #openPanel() {
    this.tip.hide();
    const { pod, set } = this.selection;
    const options = { translator: this.translator, source: this.#session?.source ?? '', link: (changes) => this.#link(changes) };
    if (pod || set) this.panel.open({ pod, set }, options);
    else this.panel.close();
  }

  /** Returns the URL of the selection with the changes. */
  #link(changes) {
    return this.#url({ ...this.selection, ...changes });
  }

  #url(selection) {
    return format(selection) || location.pathname;
  }

  #writeURL() {
    clearTimeout(this.#urlTimer);
    const url = this.#url(this.selection);
    if (url !== location.search) history.replaceState(null, '', url);
  }

  /** Returns a path of the API for the chosen namespace. */
  #path(name) {
    const { namespace } = this.selection;
    return `api/v1/${name}${namespace ? `?${new URLSearchParams({ namespace })}` : ''}`;
  }

  #open() {
    this.stream.open(this.#path('stream'));
    this.objects.open(this.#path('problems'));
    this.#readNamespaces();
  }

  async #readNamespaces() {
    try {
      const response = await request('api/v1/namespaces');
      if (response.ok) this.#namespaces = await response.json();
      this.#changed(null);
    } catch {
      // The stream reports that the server cannot be read.
    }
  }

  #receive(name, data) {
    this.store.apply(name, data);
    if (name === 'sets') this.grid.touchGroups();
  }

  async #readSession() {
    try {
      const response = await request(this.#path('session'));
      if (!response.ok) throw new Error(await reasonOf(response));
      this.#session = await response.json();
      this.header.drawSession(this.#session);
      byId('partial').hidden = this.#session.full !== false;
      this.#openPanel();
      this.#changed(null);
    } catch {
      // The stream reports that the server cannot be read, and the session is read when it is connected.
    }
  }

  #connection(status) {
    this.#status = status;
    if (status.state === 'live' && !this.#session) this.#readSession();
    if (status.state === 'ended') this.objects.close();
    this.#changed(null);
  }

  #changed(key) {
    if (key !== null) this.grid.change(key);
    this.#dirty = true;
    this.frames.request();
  }

  #draw(deadline) {
    const more = this.grid.draw(deadline);
    if (this.#dirty || more) this.#drawParts();
    this.#dirty = more;
    return more;
  }

  #drawParts() {
    const { store, translator, selection } = this;
    const link = (changes) => this.#link(changes);
    this.header.drawNamespaces(this.#session, this.#namespaces, store.summary.namespaces.keys(), selection.namespace);
    this.header.drawStatus(this.#status, store.updated);
    this.problems.draw(store, this.objects.list, translator, link);
    this.markers.draw(store, translator, selection, link);
    this.sets.draw(store, translator, selection, link);
    this.toolbar.draw(this.grid, store, translator, selection);
    this.legend.draw(this.grid, store, translator, selection);
    if (this.panel.key) this.panel.draw(store);
    const problems = this.problems.count;
    setText(document.querySelector('title'), problems > 0 ? `(${problems}) ${translator.text('title')}` : translator.text('title'));
    if (store.ready) this.announcer.say(describe(store, translator, states, problems));
  }

  #language(name) {
    this.settings.language = name;
    this.translator = new Translator(name);
    this.select({ language: name });
    this.#translate();
    this.announcer.clear();
    this.grid.redraw(this.selection, this.translator);
    this.#openPanel();
    this.#changed(null);
  }

  #translate() {
    const { translator } = this;
    document.documentElement.lang = translator.locale;
    translatePage(document, translator);
    this.header.translate(translator, this.settings.theme);
    this.header.drawSession(this.#session);
    this.toolbar.translate(translator);
    this.help.translate(translator);
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.dialog.open) return;
    const typing = event.target.matches('input, textarea, select');
    if (event.key === 'Escape') this.#escape(event);
    else if (!typing && this.help.singleKeys && event.key === '/') {
      event.preventDefault();
      byId('filter').focus();
    } else if (!typing && this.help.singleKeys && event.key === '?') this.help.open();
  }

  #escape(event) {
    const { filter } = this.toolbar;
    if (!this.tip.node.hidden && !this.panel.key) this.tip.hide();
    else if (event.target === filter && filter.value) this.select({ text: '' });
    else if (this.panel.key) this.closePanel();
  }
}

new Page().start();
