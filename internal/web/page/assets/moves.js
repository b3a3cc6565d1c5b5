// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/**
 * Adds keys to the cells of a grid: arrows, Home, End, Page Up and Page Down move the focus, and Enter
 * and the space bar open the pod. A click opens it, too. One listener serves all cells.
 * @param {import('./grid.js').Grid} grid
 * @param {(key: string) => void} open
 */
export function addMoves(grid, open) {
  const { root } = grid;
  root.addEventListener('click', (event) => {
    const cell = event.target.closest('.cell');
    if (cell) open(cell.dataset.pod);
  });
  root.addEventListener('focusin', (event) => {
    const entry = grid.entry(event.target.dataset.pod);
    entry?.group.activate(entry);
  });
  root.addEventListener('keydown', (event) => {
    const entry = grid.entry(event.target.dataset?.pod);
    if (!entry || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Enter' || event.key === ' ') open(entry.key);
    else if (!focus(target(grid.groups, entry, event.key, columns))) return;
    event.preventDefault();
  });
}

function focus(entry) {
  if (!entry) return false;
  entry.node.focus();
  return true;
}

/** Returns the number of columns of a group. */
function columns(group) {
  return getComputedStyle(group.list).gridTemplateColumns.split(' ').length;
}

/**
 * Returns where a key moves the focus. At the edge of a group, it moves to the next or previous one.
 * @param {Object[]} groups
 * @param {Object} entry the entry that has the focus
 * @param {string} key
 * @param {(group: Object) => number} columns
 * @returns {Object|undefined} undefined if the key does not move the focus
 */
export function target(groups, entry, key, columns) {
  const { group } = entry;
  const { entries } = group;
  const at = entries.indexOf(entry);
  const index = groups.indexOf(group);
  const next = groups[index + 1]?.entries;
  const before = groups[index - 1]?.entries;
  switch (key) {
    case 'ArrowRight': return entries[at + 1] ?? next?.[0];
    case 'ArrowLeft': return entries[at - 1] ?? before?.at(-1);
    case 'ArrowDown': return down(entries, at, columns(group)) ?? next?.[0];
    case 'ArrowUp': return entries[at - columns(group)] ?? before?.at(-1);
    case 'Home': return entries[0];
    case 'End': return entries.at(-1);
    case 'PageDown': return next?.[0];
    case 'PageUp': return before?.[0];
    default: return undefined;
  }
}

/** Returns the entry below, or the last one if the last row is shorter. */
function down(entries, at, width) {
  if (entries[at + width]) return entries[at + width];
  const inLastRow = Math.floor(at / width) === Math.floor((entries.length - 1) / width);
  return inLastRow ? undefined : entries.at(-1);
}
