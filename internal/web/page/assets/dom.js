// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/**
 * Creates an element. An attribute whose value is false, null or undefined is left out; true is
 * an attribute without a value. Texts among the children are never read as HTML.
 * @param {string} tag
 * @param {Object<string, string|number|boolean|null|undefined>} [attributes]
 * @param {...(Node|string|null|undefined)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Creates an SVG element, as element does.
 * @param {string} tag
 * @param {Object<string, string|number|boolean|null|undefined>} [attributes]
 * @param {...(Node|string|null|undefined)} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * Sets or removes an attribute, and does nothing if it has the value already.
 * @param {Element} node
 * @param {string} name
 * @param {string|number|boolean|null|undefined} value
 */
export function setAttribute(node, name, value) {
  if (value === false || value === null || value === undefined) {
    node.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/**
 * Sets the text of a node, and does nothing if it has the text already.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Returns the element with the ID.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Makes the children of a node show the items, in their order. A child is kept as long as its
 * item's key exists, so that it does not lose the focus.
 * @template T
 * @param {Element} parent has no other children
 * @param {T[]} items
 * @param {{key: (item: T) => string, create: (item: T) => Element, update: (node: Element, item: T) => void}} draw
 */
export function reconcile(parent, items, draw) {
  const known = new Map();
  for (const child of parent.children) known.set(child.dataset.key, child);
  let position = parent.firstElementChild;
  for (const item of items) {
    const key = draw.key(item);
    let node = known.get(key);
    known.delete(key);
    if (!node) {
      node = draw.create(item);
      node.dataset.key = key;
    }
    draw.update(node, item);
    if (node === position) position = position.nextElementSibling;
    else parent.insertBefore(node, position);
  }
  for (const node of known.values()) node.remove();
}

/**
 * Creates a sample of the look of a cell, which is hidden from screen readers.
 * @param {import('./colors.js').Look} look
 * @returns {HTMLElement}
 */
export function swatch({ css, symbol }) {
  return symbol ? element('span', { class: `swatch ${css}`, 'aria-hidden': 'true' }, symbol) : icon(css);
}

/**
 * Creates the icon of a state, or of a problem. It is hidden from screen readers: the text next to it
 * names the state.
 * @param {string} state
 * @returns {HTMLElement}
 */
export function icon(state) {
  return element('span', { class: `icon ${state.toLowerCase()}`, 'aria-hidden': 'true' });
}
