// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { valuesOf } from './colors.js';

/**
 * The problems of one marker that have the same reason.
 * @typedef {Object} ProblemGroup
 * @property {string} key
 * @property {string} marker NAMESPACE/NAME
 * @property {string} reason
 * @property {Map<string, string>} messages a message by the key of its pod
 */

/**
 * Counts the pods by state, and groups the problems, as pods are added and removed. The cost of a change
 * does not depend on the number of pods.
 */
export class Summary {
  total = 0;
  /** @type {Map<string, number>} */
  states = new Map();
  /** @type {Map<string, ProblemGroup>} */
  problems = new Map();
  /** @type {Map<string, number>} */
  namespaces = new Map();
  /** The numbers of pods by value, by what cells can be colored by. @type {Map<string, Map<string, number>>} */
  colors = new Map();

  /**
   * Replaces a pod. A pod that is missing counts for nothing.
   * @param {Object|undefined} before
   * @param {Object|undefined} after
   */
  replace(before, after) {
    if (before) this.#count(before, -1);
    if (after) this.#count(after, 1);
    this.#color(before, -1);
    this.#color(after, 1);
    for (const probe of before?.probes ?? []) this.#removeProblem(before, probe);
    for (const probe of after?.probes ?? []) this.#addProblem(after, probe);
  }

  /**
   * Returns the groups of problems, the largest first.
   * @returns {ProblemGroup[]}
   */
  groups() {
    return [...this.problems.values()].sort((a, b) => b.messages.size - a.messages.size || (a.key < b.key ? -1 : 1));
  }

  #count(pod, by) {
    this.total += by;
    add(this.states, pod.state, by);
    add(this.namespaces, pod.namespace, by);
  }

  #color(pod, by) {
    for (const [key, value] of valuesOf(pod)) {
      let counts = this.colors.get(key);
      if (!counts) this.colors.set(key, counts = new Map());
      add(counts, value, by);
      if (counts.size === 0) this.colors.delete(key);
    }
  }

  #addProblem(pod, probe) {
    if (!probe.notable) return;
    const marker = `${pod.namespace}/${probe.marker}`;
    const key = `${marker} ${probe.problem.reason}`;
    let group = this.problems.get(key);
    if (!group) {
      group = { key, marker, reason: probe.problem.reason, messages: new Map() };
      this.problems.set(key, group);
    }
    group.messages.set(pod.key, probe.problem.message);
  }

  #removeProblem(pod, probe) {
    if (!probe.notable) return;
    const key = `${pod.namespace}/${probe.marker} ${probe.problem.reason}`;
    const group = this.problems.get(key);
    group?.messages.delete(pod.key);
    if (group?.messages.size === 0) this.problems.delete(key);
  }
}

function add(counts, key, by) {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
