// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/**
 * One rectangle of a timeline. x and width are shares of the whole, from 0 to 1.
 * @typedef {{x: number, width: number, span: Object}} Part
 */

/** The heights of the phases as shares of a line, so that they can be distinguished without colors. */
export const heights = { Succeeded: 1, Failed: 0.5, Unknown: 0.75, Error: 0.35, Changing: 0.85, NotKnown: 0.12 };

/**
 * Returns the rectangles of a line.
 * @param {Object} line
 * @param {Date} start
 * @param {Date} end
 * @returns {Part[]}
 */
export function parts(line, start, end) {
  const whole = end - start;
  if (whole <= 0) return [];
  return line.spans.map((span) => {
    const from = Math.min(1, Math.max(0, (new Date(span.start) - start) / whole));
    const to = Math.min(1, Math.max(0, (new Date(span.end) - start) / whole));
    return { x: from, width: to - from, span };
  });
}

/**
 * Returns the phases that lines have, in the order of heights.
 * @param {Object[]} lines
 * @returns {string[]}
 */
export function phasesOf(lines) {
  const found = new Set(lines.flatMap((line) => line.spans.map((span) => span.phase)));
  return Object.keys(heights).filter((phase) => found.has(phase));
}

/**
 * Returns all spans of the lines, the latest first.
 * @param {Object[]} lines
 * @param {number} limit
 * @returns {{line: Object, span: Object}[]}
 */
export function latest(lines, limit) {
  const all = lines.flatMap((line) => line.spans.map((span) => ({ line, span })));
  return all.sort((a, b) => new Date(b.span.start) - new Date(a.span.start)).slice(0, limit);
}
