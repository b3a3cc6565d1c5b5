// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Sets the theme before the page is drawn. It is not a module, because modules run later.
(() => {
  try {
    const theme = localStorage.getItem('seamark-theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // The browser stores nothing: the theme of the system applies.
  }
})();
