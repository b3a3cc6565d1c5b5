// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

/**
 * What the URL selects. A view can be shared by its URL.
 * @typedef {Object} Selection
 * @property {string} namespace empty means all namespaces
 * @property {string} group workload or node
 * @property {string} cells auto, names or dense
 * @property {string} color what the cells are colored by, as a key of valuesOf, or empty for the state of the pod
 * @property {string} text words that pods must contain
 * @property {string[]} states the states of the pods to show; none means all
 * @property {string} marker NAMESPACE/NAME, or empty
 * @property {string} reason the reason of a problem, or empty
 * @property {string} pod the key of the pod in the panel, or empty
 * @property {string} set the key of the set in the panel, or empty
 * @property {string} language empty means the language of the browser
 */

/** The states in order, the worst first. */
export const states = ['Failed', 'Unknown', 'None', 'Succeeded'];

const choices = { group: ['workload', 'node'], cells: ['auto', 'names', 'dense'] };

/** What cells can be colored by. */
const colored = /^(probe|label|annotation|condition):./;

/** KIND/NAMESPACE/NAME. */
const chosenSet = /^[^/]+\/[^/]+\/[^/]+$/;

/** The names of the query parameters. */
const parameters = {
  namespace: 'namespace', group: 'group', cells: 'cells', color: 'color', text: 'filter', marker: 'marker', reason: 'problem', pod: 'pod', set: 'set', language: 'lang',
};

/**
 * Reads the selection of a query.
 * @param {string} query
 * @returns {Selection}
 */
export function parse(query) {
  const search = new URLSearchParams(query);
  const selection = {};
  for (const [field, parameter] of Object.entries(parameters)) {
    const value = search.get(parameter) ?? '';
    selection[field] = choices[field] && !choices[field].includes(value) ? choices[field][0] : value;
  }
  if (selection.pod || !chosenSet.test(selection.set)) selection.set = '';
  if (!colored.test(selection.color)) selection.color = '';
  const wanted = (search.get('state') ?? '').split(',');
  selection.states = states.filter((state) => wanted.includes(state));
  return selection;
}

/**
 * Returns the query of a selection, which parse reads. Defaults are left out.
 * @param {Selection} selection
 * @returns {string} empty, or a query that begins with a question mark
 */
export function format(selection) {
  const search = new URLSearchParams();
  for (const [field, parameter] of Object.entries(parameters)) {
    const value = selection[field];
    if (value && value !== choices[field]?.[0]) search.set(parameter, value);
  }
  if (selection.states.length > 0) search.set('state', selection.states.join(','));
  const query = search.toString().replaceAll('%2F', '/').replaceAll('%2C', ',').replaceAll('%3A', ':');
  return query ? `?${query}` : '';
}
