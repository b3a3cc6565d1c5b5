// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import en from './en.js';
import { reasons } from './reasons.js';
import zh from './zh.js';

/** The texts by language. All have the same keys. */
export const texts = { en, zh };

/** The names of the languages, each in its own language. */
export const names = { en: 'English', zh: '中文' };

/** Translates texts, and formats numbers and times, in one language. */
export class Translator {
  /** @param {string} language a key of texts */
  constructor(language) {
    this.language = language;
    this.locale = language === 'zh' ? 'zh-CN' : 'en';
    this.texts = texts[language];
    this.plural = new Intl.PluralRules(this.locale);
    this.numbers = new Intl.NumberFormat(this.locale);
    this.clock = new Intl.DateTimeFormat(this.locale, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
    this.moment = new Intl.DateTimeFormat(this.locale, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });
    this.relative = new Intl.RelativeTimeFormat(this.locale, { numeric: 'always' });
  }

  /**
   * Returns a text. {name} in it is replaced by values.name. A text with several forms is selected by
   * values.count.
   * @param {string} key
   * @param {Object<string, string|number>} [values]
   * @returns {string}
   */
  text(key, values = {}) {
    let form = this.texts[key];
    if (form === undefined) throw new Error(`no text ${key} in ${this.language}`);
    if (typeof form === 'object') form = form[this.plural.select(values.count)] ?? form.other;
    return form.replace(/\{(\w+)\}/g, (_, name) => {
      const value = values[name];
      return typeof value === 'number' ? this.numbers.format(value) : String(value);
    });
  }

  /**
   * Returns what a reason means, if the language is not that of the reasons.
   * @param {string} code
   * @returns {string} empty if it is not known
   */
  meaning(code) {
    return this.language === 'zh' && Object.hasOwn(reasons, code) ? reasons[code] : '';
  }

  /**
   * Returns the text of a reason: what it means, and the reason itself, which the documentation names.
   * @param {string} code
   * @returns {string}
   */
  reason(code) {
    const meaning = this.meaning(code);
    return meaning ? `${meaning}（${code}）` : code;
  }

  /**
   * Returns how long ago a time is, such as "5 minutes ago".
   * @param {Date} time
   * @param {Date} now
   * @returns {string}
   */
  ago(time, now) {
    const seconds = Math.max(0, Math.round((now - time) / 1000));
    for (const [unit, length] of [['day', 86400], ['hour', 3600], ['minute', 60]]) {
      if (seconds >= length) return this.relative.format(-Math.floor(seconds / length), unit);
    }
    return this.relative.format(-seconds, 'second');
  }
}

/**
 * Returns the language to use.
 * @param {string|null} wanted the language in the URL or in the storage
 * @param {readonly string[]} preferred the languages of the browser
 * @returns {string}
 */
export function languageOf(wanted, preferred) {
  if (wanted && Object.hasOwn(texts, wanted)) return wanted;
  for (const tag of preferred) {
    const language = tag.split('-')[0];
    if (Object.hasOwn(texts, language)) return language;
  }
  return 'en';
}

/**
 * Writes the texts of the elements that name them: data-text, data-label for aria-label and title, and
 * data-placeholder.
 * @param {ParentNode} root
 * @param {Translator} translator
 */
export function translatePage(root, translator) {
  for (const node of root.querySelectorAll('[data-text]')) node.textContent = translator.text(node.dataset.text);
  for (const node of root.querySelectorAll('[data-label]')) node.setAttribute('aria-label', translator.text(node.dataset.label));
  for (const node of root.querySelectorAll('[data-placeholder]')) node.placeholder = translator.text(node.dataset.placeholder);
}
