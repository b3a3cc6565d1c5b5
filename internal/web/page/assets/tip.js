// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

import { element } from './dom.js';

/** Shows the name, state and message of the cell that has the pointer or the focus. */
export class Tip {
  /**
   * @param {HTMLElement} node
   * @param {import('./grid.js').Grid} grid
   */
  constructor(node, grid) {
    this.node = node;
    this.grid = grid;
    const { root } = grid;
    root.addEventListener('pointerover', (event) => this.#show(event.target.closest('.cell')));
    root.addEventListener('pointerleave', () => this.hide());
    root.addEventListener('focusin', (event) => event.target.matches(':focus-visible') && this.#show(event.target.closest('.cell')));
    root.addEventListener('focusout', () => this.hide());
    addEventListener('scroll', () => this.hide(), { passive: true });
  }

  /** Hides the tip. */
  hide() {
    this.node.hidden = true;
  }

  #show(cell) {
    const pod = cell && this.grid.store.pods.get(cell.dataset.pod);
    if (!pod) {
      this.hide();
      return;
    }
    const { translator, colors } = this.grid;
    const value = colors.noteOf(colors.valueOf(pod, ''));
    const colored = value === undefined ? null : element('span', {}, translator.text('colored', { name: colors.name, value }));
    const guarded = pod.guard ? element('span', {}, translator.text('guarded', { name: pod.guard.name })) : null;
    this.node.replaceChildren(...[element('strong', {}, pod.name), guarded, colored].filter(Boolean), ...pod.probes.map((probe) => element('span', {},
      `${probe.marker}#${probe.probe}: ${translator.text(`state.${probe.state || 'None'}`)}`,
      probe.message || probe.problem ? ` – ${(probe.problem?.message ?? probe.message).slice(0, 200)}` : '')));
    this.node.hidden = false;
    const at = cell.getBoundingClientRect();
    const size = this.node.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8));
    const below = at.bottom + 6;
    const top = below + size.height > innerHeight ? at.top - size.height - 6 : below;
    this.node.style.left = `${left}px`;
    this.node.style.top = `${Math.max(8, top)}px`;
  }
}
