// Conveniences only: a click into a flame graph enlarges a box, its words are fitted into the boxes, a search marks boxes;
// of several recordings one is picked from a list, where the style sheet shows the one that the address names.
(() => {
  'use strict';
  const articles = [...document.querySelectorAll('.several > article')];
  if (articles.length > 1) {
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
  const pen = document.createElement('canvas').getContext('2d');
  // The parts that fit; of the first one as much as fits.
  const fit = (it, room) => {
    let used = 0;
    for (const [index, part] of it.parts.entries()) {
      used += part.width;
      const letters = Math.floor(room / part.width * part.text.length) - 1;
      part.span.textContent = used <= room ? part.text : index === 0 && letters > 1 ? part.text.slice(0, letters) + '\u2026' : '';
    }
  };
  const groups = [...document.querySelectorAll('.calls')].map((group) => ({
    group, hides: group.querySelector('input'),
    charts: [...group.querySelectorAll('.flame')].map((chart) => {
      const text = [...chart.querySelectorAll('text')].pop();
      if (text) pen.font = ['fontWeight', 'fontSize', 'fontFamily'].map((name) => getComputedStyle(text)[name]).join(' ');
      const boxes = [...chart.querySelectorAll('svg > svg')].map((box) => {
        box.classList.remove('s', 'm');
        return {
          box, x: parseFloat(box.getAttribute('x')), width: parseFloat(box.getAttribute('width')),
          name: box.querySelector('title').textContent.toLowerCase(),
          parts: [...box.querySelectorAll('tspan')].map((span) => (
            { span, text: span.textContent, width: pen.measureText(span.textContent).width })),
        };
      });
      return { boxes, shown: { x: 0, width: 100 } };
    }),
  }));
  const lay_out = (chart, pixels) => {
    for (const it of chart.boxes) {
      const left = Math.max(it.x, chart.shown.x);
      const right = Math.min(it.x + it.width, chart.shown.x + chart.shown.width);
      const width = (right - left) / chart.shown.width;
      it.box.classList.toggle('gone', width < 1e-6);
      if (width < 1e-6) continue;
      it.box.setAttribute('x', (left - chart.shown.x) / chart.shown.width * 100 + '%');
      it.box.setAttribute('width', width * 100 + '%');
      fit(it, width * pixels - 8);
    }
  };
  const lay_out_all = (pixels) => {
    for (const { group, charts } of groups) for (const chart of charts) lay_out(chart, pixels || group.clientWidth);
  };
  for (const { group, charts, hides } of groups) {
    for (const chart of charts) {
      for (const it of chart.boxes) {
        it.box.addEventListener('click', () => { chart.shown = it; lay_out(chart, group.clientWidth); });
      }
    }
    const search = document.createElement('input');
    search.type = 'search';
    search.placeholder = 'Search frames';
    search.setAttribute('aria-label', 'Search frames');
    const found = document.createElement('span');
    const mark = () => {
      const words = search.value.trim().toLowerCase();
      const count = charts.map((chart) => {
        for (const it of chart.boxes) it.box.classList.toggle('hit', words !== '' && it.name.includes(words));
        return chart.boxes.filter((it) => it.box.classList.contains('hit')).length;
      })[hides && hides.checked ? 1 : 0];
      found.textContent = words === '' ? 'Click a box to enlarge it, the top one to go back.' : count + ' found';
    };
    search.addEventListener('input', mark);
    if (hides) hides.addEventListener('change', mark);
    const tools = document.createElement('p');
    tools.className = 'tools';
    tools.append(search, found);
    group.querySelector('.all').before(tools);
    mark();
  }
  lay_out_all();
  addEventListener('resize', () => lay_out_all());
  addEventListener('beforeprint', () => lay_out_all(680));  // as wide as a sheet of A4 without its margins
  addEventListener('afterprint', () => lay_out_all());
})();
