// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { setOf } from './sets.js';

/**
 * A group of pods.
 * @typedef {Object} GroupID
 * @property {string} key
 * @property {string} namespace empty for a node
 * @property {string} kind the kind of the workload, or empty
 * @property {string} name empty for pods without a workload or a node
 * @property {string} set the key of the set that controls the pods, or empty
 */

/** Compares names, and numbers in them by value: web-2 is before web-10. */
const compareNames = new Intl.Collator('en', { numeric: true }).compare;

/**
 * Returns the group of a pod.
 * @param {Object} pod
 * @param {string} by workload or node
 * @returns {GroupID}
 */
export function groupOf(pod, by) {
  if (by === 'node') return { key: `node ${pod.node ?? ''}`, namespace: '', kind: '', name: pod.node ?? '', set: '' };
  const { kind = '', name = '', group = '' } = pod.workload ?? {};
  return { key: `${pod.namespace} ${kind} ${name} ${group}`, namespace: pod.namespace, kind, name, set: setOf(pod) };
}

/**
 * Compares two groups: by namespace and name, those without a name last.
 * @param {GroupID} a
 * @param {GroupID} b
 * @returns {number}
 */
export function compareGroups(a, b) {
  return compareNames(a.namespace, b.namespace) || Number(a.name === '') - Number(b.name === '') ||
    compareNames(a.name, b.name) || compareNames(a.kind, b.kind) || compareNames(a.set, b.set);
}

/**
 * Compares two pods by name.
 * @param {{name: string, key: string}} a
 * @param {{name: string, key: string}} b
 * @returns {number}
 */
export function comparePods(a, b) {
  return compareNames(a.name, b.name) || compareNames(a.key, b.key);
}

/**
 * Returns where an item is or belongs in an ordered list.
 * @template T
 * @param {T[]} list
 * @param {T} item
 * @param {(a: T, b: T) => number} compare
 * @returns {number}
 */
export function position(list, item, compare) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(list[middle], item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
