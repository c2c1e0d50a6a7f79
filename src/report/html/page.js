// Conveniences only: a click into a flame graph enlarges a box, a search marks boxes; of several recordings one is picked
// from a list, where the style sheet shows the one that the address names.
(() => {
  'use strict';
  const articles = [...document.querySelectorAll('.several > article')];
  if (articles.length > 0) {
    const select = document.createElement('select');
    select.setAttribute('aria-label', 'Process');
    for (const article of articles) select.add(new Option(article.querySelector('h2').textContent, article.id));
    const follow = () => {
      const target = document.getElementById(location.hash.slice(1));
      const article = target && target.closest('article');
      if (article) select.value = article.id;
    };
    select.addEventListener('change', () => { location.hash = select.value; });
    addEventListener('hashchange', follow);
    const picker = document.createElement('p');
    picker.className = 'picker';
    picker.append(select);
    articles[0].before(picker);
    follow();
  }
  for (const chart of document.querySelectorAll('.flame')) {
    const boxes = [...chart.querySelectorAll('svg > svg')].map((box) => ({
      box, x: parseFloat(box.getAttribute('x')), width: parseFloat(box.getAttribute('width')),
      name: box.querySelector('title').textContent.toLowerCase(),
    }));
    const zoom = (to) => {
      for (const it of boxes) {
        const left = Math.max(it.x, to.x), right = Math.min(it.x + it.width, to.x + to.width);
        const width = (right - left) / to.width;
        it.box.classList.toggle('gone', width < 1e-6);
        if (width < 1e-6) continue;
        it.box.setAttribute('x', (left - to.x) / to.width * 100 + '%');
        it.box.setAttribute('width', width * 100 + '%');
        it.box.classList.toggle('s', width < 0.02);
        it.box.classList.toggle('m', width >= 0.02 && width < 0.09);
      }
    };
    for (const it of boxes) it.box.addEventListener('click', () => zoom(it));
    const search = document.createElement('input');
    search.type = 'search';
    search.placeholder = 'Search frames';
    search.setAttribute('aria-label', 'Search frames');
    const found = document.createElement('span');
    search.addEventListener('input', () => {
      const words = search.value.trim().toLowerCase();
      let count = 0;
      for (const it of boxes) {
        const hit = words !== '' && it.name.includes(words);
        it.box.classList.toggle('hit', hit);
        count += hit ? 1 : 0;
      }
      found.textContent = words === '' ? 'Click a box to enlarge it, the top one to go back.' : count + ' found';
    });
    const tools = document.createElement('p');
    tools.className = 'tools';
    tools.append(search, found);
    chart.before(tools);
    search.dispatchEvent(new Event('input'));
  }
})();
