#!/usr/bin/env python3
"""The page of `tidemark report` in headless Chromium: at three widths, light, dark and printed.

    page_test.py CHROMIUM CHROMEDRIVER TIDEMARK GOLDEN_RECORDINGS

After an intended change: TIDEMARK_UPDATE_GOLDEN=1, then look at the pictures that changed before committing them. If a
picture differs, TIDEMARK_PAGE_PICTURES is a folder for pictures of the page.
"""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import training_snapshot
from browser import Browser
from pictures import Sheets

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTHS, MODES = (390, 800, 1440), ("light", "dark", "print")
# Content wider than its container: text beyond the block or the drawing that contains it, unless that scrolls.
OVERFLOWS = """
  const found = [];
  const report = (element, text) => found.push(`${element.tagName} ${element.className.baseVal ?? element.className}: ${text.trim()}`);
  const scrolls = (element) => element.closest('.scroll') || element.closest('summary');
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest('svg, script, select') || scrolls(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    let block = element;
    while (getComputedStyle(block).display === 'inline') block = block.parentElement;
    const room = block.getBoundingClientRect();
    if (text.right > room.right + 1 || text.left < room.left - 1) report(element, node.data);
  }
  for (const table of document.querySelectorAll('.stacks')) {
    if (table.scrollWidth > table.parentElement.clientWidth) report(table, table.textContent.slice(0, 60));
  }
  for (const text of document.querySelectorAll('svg text')) {
    const box = text.getBoundingClientRect();
    if (box.width === 0) continue;
    const room = text.closest('svg').getBoundingClientRect();
    const page = document.documentElement.clientWidth;
    if (text.closest('.flame') ? box.right > room.right + 1 : box.right > page || box.left < 0) report(text, text.textContent);
  }
  return found;
"""
PARTS = """
  const article = document.querySelector('.several') ? null : document.querySelector('article');
  const parts = article ? [['top', article.getBoundingClientRect().top, article.querySelector('section').getBoundingClientRect().top]] : [];
  const rect = (element) => element.getBoundingClientRect();
  for (const section of document.querySelectorAll(arguments[0])) {
    parts.push([section.id.replace(/^r\\d+-/, '') || section.className, rect(section).top, rect(section).bottom]);
  }
  return parts.filter(([, top, bottom]) => bottom > top).map(([name, top, bottom]) => [name, top + scrollY, bottom - top]);
"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        subprocess.run([RECORDINGS, cls.folder], check=True)
        training_snapshot.write(os.path.join(cls.folder, "training.pickle"))
        ranks = sorted(os.path.basename(path) for path in glob.glob(os.path.join(cls.folder, "job.rank*.tide")))
        cls.report("training", "training.pickle")
        cls.report("job", *ranks)
        cls.report("rank", *ranks, "--rank", "3")
        cls.report("ledger", "shared_gpu.tide")
        cls.report("leaks", "leaking.tide")
        cls.browser = Browser(CHROMIUM, DRIVER, cls.folder)
        cls.addClassCleanup(cls.browser.quit)
        cls.sheets = Sheets(os.path.join(HERE, "pictures"))

    @classmethod
    def report(cls, name, *arguments):
        # File names in the page are the same everywhere.
        subprocess.run([TIDEMARK, "report", *arguments, "-o", name + ".html"], cwd=cls.folder, check=True)

    def open(self, name, width=800, mode="light"):
        self.browser.open(os.path.join(self.folder, name + ".html"))
        self.browser.show(width, mode)

    def tearDown(self):
        self.assertEqual(self.browser.console(), [])

    def check_picture(self, sheet, width, parts):
        found = {name: self.browser.picture(0, top, width, height) for name, top, height in self.browser.run(PARTS, parts)}
        if os.environ.get("TIDEMARK_UPDATE_GOLDEN"):
            self.sheets.keep(sheet, found)
            return
        wrong = self.sheets.compare(sheet, found)
        if wrong and os.environ.get("TIDEMARK_PAGE_PICTURES"):
            for name, picture in found.items():
                picture.save(os.path.join(os.environ["TIDEMARK_PAGE_PICTURES"], f"{sheet}-{name}.png"))
        self.assertEqual(wrong, [])

    def test_fits_and_looks_as_it_did(self):
        for name, parts in (("training", "section"), ("job", ".ranks"), ("ledger", "[id$=ledger]"), ("leaks", None), ("rank", None)):
            self.open(name)
            for width in WIDTHS:
                for mode in MODES:
                    with self.subTest(page=name, width=width, mode=mode):
                        self.browser.show(width, mode)
                        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
                        self.assertEqual(self.browser.run(OVERFLOWS), [])
                        # For parts that are drawn the same way, one picture is enough.
                        if name == "training" or (parts and (width, mode) in ((390, "light"), (800, "dark"))):
                            self.check_picture(f"{name}-{width}-{mode}", width, parts)

    def test_prints_on_a_few_pages(self):
        self.open("training")
        printed = self.browser.printed()
        self.assertTrue(printed.startswith(b"%PDF-"))
        pages = printed.count(b"/Type /Page\n")
        self.assertTrue(3 <= pages <= 8, pages)
        self.assertEqual(self.browser.run(OVERFLOWS), [])  # back on the screen

    def boxes(self):
        """(x, width, role, words, first line of the title) of the boxes that are shown, in percent."""
        return self.browser.run("""
          return [...document.querySelectorAll('.flame svg > svg')].filter((box) => box.getClientRects().length > 0).map((box) => [
            parseFloat(box.getAttribute('x')), parseFloat(box.getAttribute('width')), box.classList[0], box.textContent
              .slice(box.querySelector('title').textContent.length), box.querySelector('title').textContent.split('\\n')[0]]);
        """)

    def click(self, selector):
        self.browser.run("document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector)

    def test_the_switch_hides_frames_of_libraries(self):
        self.open("training", 1440)
        whole = self.boxes()
        self.assertEqual({role for _, _, role, _, _ in whole}, {"root", "own", "library-code"})
        self.click(".calls > label")
        own = self.boxes()
        self.assertEqual({role for _, _, role, _, _ in own}, {"root", "own"})
        # 948 MiB at the peak: weights, states, activations of eight layers, logits, one gradient; see training_snapshot.py.
        shares = {title.split(" (")[0]: width for _, width, _, _, title in own}
        expected = {"cuda:0: all allocated memory": 948, "main": 948, "build": 160, "train_step": 788, "Transformer.forward": 352,
                    "Mlp.forward": 256, "Attention.forward": 96, "next_token_loss": 96}
        self.assertEqual(set(shares), set(expected))
        for name, mib in expected.items():
            self.assertAlmostEqual(shares[name], 100 * mib / 948, places=2)
        self.assertIn("main (train.py:88) \u00b7 948.0 MiB \u00b7 100.0%", [words for _, _, _, words, _ in own])
        self.click(".calls > label")
        self.assertEqual(self.boxes(), whole)

    def test_a_click_enlarges_a_box_and_a_search_finds_some(self):
        self.open("training", 1440)
        self.browser.run("""
          const box = [...document.querySelectorAll('.flame svg > svg')].find((each) => each.textContent.includes('Mlp.forward'));
          box.dispatchEvent(new MouseEvent('click'));""")
        shown = {title.split(" (")[0]: (x, width, words) for x, width, _, words, title in self.boxes()}
        self.assertEqual(shown["Mlp.forward"], (0, 100, "Mlp.forward (model.py:37) \u00b7 256.0 MiB \u00b7 27.0%"))
        self.assertNotIn("Attention.forward", shown)
        self.click(".flame svg > svg")
        self.assertIn("Attention.forward", {title.split(" (")[0] for _, _, _, _, title in self.boxes()})
        self.browser.run("""
          const search = document.querySelector('.tools input');
          search.value = 'adamw';
          search.dispatchEvent(new Event('input'));""")
        self.assertEqual(self.browser.run("return document.querySelector('.tools span').textContent"), "1 found")
        self.assertEqual(self.browser.run("return document.querySelector('.hit').textContent.includes('AdamW.step')"), True)

    def shown_article(self):
        return self.browser.run("""
          return [...document.querySelectorAll('article')].filter((each) => each.getClientRects().length > 0)
            .map((each) => each.querySelector('h2').textContent);""")

    def test_the_picker_shows_one_process_at_a_time(self):
        self.open("job", 390)
        titles = self.browser.run("return [...document.querySelectorAll('article h2')].map((each) => each.textContent)")
        self.assertEqual(len(titles), 6)  # five ranks, and a worker of one
        self.assertEqual(self.shown_article(), titles[:1])
        self.browser.run("""
          const picker = document.querySelector('.picker select');
          picker.selectedIndex = 3;
          picker.dispatchEvent(new Event('change'));""")
        self.assertEqual(self.shown_article(), [titles[3]])
        self.click(".ranks tbody tr:nth-child(2) a")
        self.assertEqual(self.shown_article(), [titles[1]])
        self.assertEqual(self.browser.run("return document.querySelector('.picker select').selectedOptions[0].textContent"),
                         titles[1])

    def test_one_rank_of_several(self):
        self.open("rank")
        shown, = self.shown_article()
        self.assertTrue(shown.startswith("rank 3 "), shown)
        self.assertEqual(self.browser.run("return document.querySelectorAll('.ranks tbody tr').length"), 6)
        self.assertEqual(self.browser.run("return document.querySelector('.picker')"), None)


if __name__ == "__main__":
    RECORDINGS, TIDEMARK, DRIVER, CHROMIUM = (os.path.abspath(sys.argv.pop()) for _ in range(4))
    unittest.main()
