// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// The value is a list of what has too little contrast: text with less than 4.5, and shapes, borders and focus rings
// with less than 3, as WCAG 2.2 requires at level AA.
(() => {
  const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  // Returns red, green, blue and alpha of a color in any notation.
  const parse = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => {
    const [, , , a] = top;
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(1);
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  };
  // Returns the color behind the contents of an element.
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), parse('canvas'));
  };
  const found = new Set();
  const sample = document.body.appendChild(document.createElement('i'));
  const resolve = (variable) => {
    sample.style.color = `var(${variable})`;
    return getComputedStyle(sample).color;
  };
  const [focus, problem] = [resolve('--focus'), resolve('--problem')];
  sample.remove();
  let checked = 0;
  const check = (what, element, color, background, least) => {
    const front = parse(color);
    if (front[3] === 0) return;
    checked++;
    const value = ratio(over(front, background), background);
    if (value < least) {
      const name = `${element.tagName.toLowerCase()}${element.id && `#${element.id}`}.${element.getAttribute('class') ?? ''}`;
      found.add(`${what} ${name} ${JSON.stringify((element.textContent || '').trim().slice(0, 30))}: ${color} on ${background.slice(0, 3).map(Math.round)} is ${value.toFixed(2)}, want ${least}`);
    }
  };
  const visible = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 1 && height > 1 && element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.closest('.hidden, noscript, option');
  };
  for (const element of document.body.querySelectorAll('*')) {
    if (!visible(element)) continue;
    const style = getComputedStyle(element);
    const background = behind(element);
    if ([...element.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim())) check('text', element, style.color, background, 4.5);
    if (element.matches('select, input')) check('text', element, style.color, background, 4.5);
    if (element.matches('input[placeholder]')) check('placeholder', element, getComputedStyle(element, '::placeholder').color, background, 4.5);
    if (element.matches('.icon')) check('shape', element, style.color, behind(element.parentElement), 3);
    if (element.matches('.cell')) check('shape', element, style.color, background, 3);
    if (element.matches('.cell.troubled')) check('corner', element, problem, behind(element.closest('.card')), 3);
    if (element.matches('rect') && element.getBoundingClientRect().width > 1) check('shape', element, style.fill, behind(element.closest('svg').parentElement), 3);
    if (element.matches('.dot')) check('border', element, style.borderTopColor, behind(element.parentElement), 3);
    if (element.matches('input, select, button')) check('border', element, style.borderTopColor, behind(element.parentElement), 3);
    if (element.matches('a, button, input, select, summary, [tabindex]')) check('focus', element, focus, behind(element.parentElement), 3);
  }
  return { checked, found: [...found] };
})()
