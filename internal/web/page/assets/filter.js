// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { states } from './location.js';

/**
 * Returns the state of a pod, or that of its probes of one marker: the worst of its probes.
 * @param {Object} pod
 * @param {string} marker NAMESPACE/NAME, or empty
 * @returns {string} one of states
 */
export function stateOf(pod, marker) {
  if (!marker) return pod.state;
  const found = new Set(probesOf(pod, marker).map((probe) => probe.state || 'None'));
  return states.find((state) => found.has(state)) ?? 'None';
}

/**
 * Returns the probes of a pod, or those of one marker.
 * @param {Object} pod
 * @param {string} marker NAMESPACE/NAME, or empty
 * @returns {Object[]}
 */
export function probesOf(pod, marker) {
  if (!marker) return pod.probes;
  return pod.probes.filter((probe) => `${pod.namespace}/${probe.marker}` === marker);
}

/**
 * Returns the probe that represents a pod in a cell: one with a problem, otherwise one with the state
 * of the pod.
 * @param {Object} pod
 * @param {string} marker NAMESPACE/NAME, or empty
 * @returns {Object|undefined}
 */
export function representative(pod, marker) {
  const probes = probesOf(pod, marker);
  const state = stateOf(pod, marker);
  return probes.find((probe) => probe.notable) ?? probes.find((probe) => (probe.state || 'None') === state);
}

/** Decides which pods match the text, the marker and the reason of a selection. */
export class Filter {
  #haystacks = new WeakMap();

  /** @param {import('./location.js').Selection} selection */
  constructor(selection) {
    this.set(selection);
  }

  /** @param {import('./location.js').Selection} selection */
  set(selection) {
    this.words = selection.text.toLowerCase().split(/\s+/).filter(Boolean);
    this.marker = selection.marker;
    this.reason = selection.reason;
  }

  /**
   * Reports whether a pod matches. The states of the selection are not considered, so that the
   * number of pods can be shown for each state.
   * @param {Object} pod
   * @returns {boolean}
   */
  matches(pod) {
    const probes = probesOf(pod, this.marker);
    if (this.marker && probes.length === 0) return false;
    if (this.reason && !probes.some((probe) => probe.notable && probe.problem?.reason === this.reason)) return false;
    if (this.words.length === 0) return true;
    const haystack = this.#haystack(pod);
    return this.words.every((word) => haystack.includes(word));
  }

  #haystack(pod) {
    let text = this.#haystacks.get(pod);
    if (text === undefined) {
      const parts = [pod.key, pod.node, pod.phase, pod.workload?.kind, pod.workload?.name, pod.guard?.name];
      for (const probe of pod.probes) {
        parts.push(`${probe.marker}#${probe.probe}`, probe.container, probe.state, probe.message, probe.problem?.reason, probe.problem?.message);
        for (const mark of probe.marks ?? []) parts.push(`${mark.name}=${mark.value}`);
      }
      text = parts.filter(Boolean).join('\n').toLowerCase();
      this.#haystacks.set(pod, text);
    }
    return text;
  }
}
