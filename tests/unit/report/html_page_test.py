#!/usr/bin/env python3
"""The page of `tidemark report`, read by Python's own parsers: its numbers against those of the other commands, names that
would like to run, and how large it gets.

    html_page_test.py TIDEMARK SNAPSHOTS RECORDING [--sanitized]

--sanitized leaves out what takes long with sanitizers, and says no more than the other pages.
"""
import base64
import hashlib
import html
import html.parser
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TIDEMARK, SNAPSHOTS, RECORDING = None, None, None
takes_long = unittest.skipIf("--sanitized" in sys.argv, "takes long with sanitizers")
VOID = {"meta", "br", "input"}
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--<script>", "]]>", "\u202egnp.py",
           "\" onload=\"alert(1)", "' onload='alert(1)", "</title></svg></style><iframe src=http://evil.example>",
           "&lt;b&gt;", "\x1b[2J\x00\n", "\u2028", "\udcff\ud800", "javascript:alert(1)", "\\u003c/script>"]


class Page(html.parser.HTMLParser):
    """Checks while parsing that every element is closed in its turn."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.tags, self.ids, self.attributes = text, [], [], [], set()
        self.scripts, self.cells, self.titles, self.links = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attributes)
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((given, ""))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open, self.getpos())
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        if self.open and self.open[-1] == "title":
            self.titles.append(data)

    @property
    def data(self):
        blocks = [text for given, text in self.scripts if given.get("id") == "tidemark-data"]
        assert len(blocks) == 1
        return json.loads(blocks[0])


def tidemark(*arguments):
    return subprocess.run([TIDEMARK, *arguments], stdout=subprocess.PIPE, check=True).stdout


def report(*arguments):
    text = tidemark("report", "-o", "-", *arguments).decode("utf-8")  # fails where it is no UTF-8
    return Page(text)


def as_json(command, *arguments):
    return json.loads(tidemark(command, *arguments, "--format", "json"))


def entry(index, name, filename, **more):
    frames = [{"name": name, "filename": filename, "line": index + 1}, {"name": "main", "filename": "train.py", "line": 9}]
    return {"action": "alloc", "addr": 4096 * (index + 1), "size": 512, "stream": 0, "time_us": 10 + index, "frames": frames,
            **more}


class Snapshots(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def snapshot(self, entries, name="made.pickle"):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            pickle.dump({"segments": [], "device_traces": [entries]}, file)
        return path


class Numbers(unittest.TestCase):
    def same(self, ours, theirs, path=""):
        """Whether the page's object is what the command prints, without what is said once for all of them."""
        for key, value in theirs.items():
            if key not in ("file", "source", "allocator_settings", "process", "event_count", "duration_ns", "data_quality", "filter"):
                self.assertEqual(ours[key], value, path + key)

    def test_block_holds_what_the_commands_print(self):
        for file in (os.path.join(SNAPSHOTS, "streams.pickle.xz"), os.path.join(SNAPSHOTS, "out_of_memory.pickle.xz"), RECORDING):
            with self.subTest(file):
                data = report(file).data
                self.assertEqual((data["schema"], data["version"]), ("tidemark-report", 1))
                recording, = data["recordings"]
                summary = as_json("summary", file)
                for key in ("file", "process", "event_count", "duration_ns", "data_quality"):
                    self.assertEqual(recording[key], summary[key])
                self.same(recording["summary"], summary)
                self.same(recording["fragmentation"], as_json("fragmentation", file))
                self.same(recording["leaks"], as_json("leaks", file))
                self.same(recording["explain"], as_json("explain", file))
                timeline = as_json("timeline", file, "--points", "1200", "--by", "call-site")
                self.same(recording["timeline"], timeline)
                table = json.loads(tidemark("table", file, "--format", "json", "--top", "25"))
                self.same(recording["table"], table)

    def test_chosen_blocks_are_those_of_the_commands(self):
        chosen = (os.path.join(SNAPSHOTS, "oom_leak.pickle.xz"), "--category", "workspace")
        page = report(*chosen)
        recording, = page.data["recordings"]
        for part in ("summary", "fragmentation", "leaks", "explain"):
            self.same(recording[part], as_json(part, *chosen))
        self.same(recording["table"], as_json("table", *chosen, "--top", "25"))
        self.same(recording["timeline"], as_json("timeline", *chosen, "--points", "1200", "--by", "call-site"))
        self.assertIn("only blocks with category workspace", page.text)

    def test_says_the_peaks(self):
        file = os.path.join(SNAPSHOTS, "streams.pickle.xz")
        with open(os.path.join(SNAPSHOTS, "streams.truth.json")) as truth:
            peak = json.load(truth)["peak"]  # PyTorch's own counters
        text = report(file).text
        for kind in ("allocated", "reserved", "active"):
            self.assertIn(f"{peak[kind + '_bytes']:,} bytes", text)

    def test_map_adds_up_to_what_is_reserved(self):
        data = report(os.path.join(SNAPSHOTS, "streams.pickle.xz")).data["recordings"][0]
        segments = data["segment_maps"][0]
        measures = data["fragmentation"]["devices"][0]["at_moment"]
        self.assertEqual(sum(segment["bytes"] for segment in segments["segments"]) + segments["other_bytes"],
                         measures["reserved_bytes"])
        blocks = [block for segment in segments["segments"] for block in segment["blocks"]]
        self.assertEqual(sum(block["bytes"] for block in blocks if block["state"] == "free"), measures["free_bytes"])


class Checked(unittest.TestCase):
    def check(self, page):
        """Whether a browser finds nothing in the page to load or to run but the page's own script."""
        self.assertNotRegex(page.text, r"(?i)https?:|//cdn|@import|url\(")
        self.assertFalse({name for name in page.attributes if name.startswith("on") or name in ("src", "style", "srcdoc")})
        self.assertTrue(all(link.startswith("#") and link[1:] in page.ids for link in page.links))
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertLessEqual(set(page.tags), set(
            "html head meta title style body header h1 main article h2 h3 h4 section p b small strong i dl div dt dd br ul ol "
            "li table thead tbody tr th td details summary code svg rect line circle g path text tspan footer script span a input label".split()))
        for picture in re.findall(r"<svg.*?</svg>(?=</div>|</td>)", page.text, re.S):
            for one in picture.split("</svg><svg role")[1:] or [picture]:
                xml.etree.ElementTree.fromstring(one if one.startswith("<svg") else "<svg role" + one)
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.text).group(1)
        self.assertTrue(policy.startswith("default-src 'none'; "))
        self.assertEqual(len(page.scripts), 2)
        digest = base64.b64encode(hashlib.sha256(page.scripts[1][1].encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}'", policy)
        self.assertEqual(page.scripts[0][0], {"type": "application/json", "id": "tidemark-data"})


class Structure(Checked):
    def test_is_closed_in_itself(self):
        for file in ("streams.pickle.xz", "out_of_memory.pickle.xz", "small.pickle", "late.pickle.xz"):
            with self.subTest(file):
                self.check(report(os.path.join(SNAPSHOTS, file)))
        self.check(report(RECORDING))

    def test_an_out_of_memory_error_is_said_first(self):
        file = os.path.join(SNAPSHOTS, "oom_demand.pickle.xz")
        text = tidemark("report", "-o", "-", file).decode("utf-8")
        headline, command = as_json("summary", file)["out_of_memory_verdict"]["text"].split(". More: ")
        self.assertEqual(command, f"`tidemark explain {file}`")
        self.assertLess(text.index("Fixes that would have been enough"), text.index('class="facts"'))
        self.assertLess(text.index("<h2>"), text.index(html.escape(headline, quote=False)))
        self.assertLess(text.index(html.escape(headline, quote=False)), text.index('class="facts"'))
        self.assertNotIn('class="verdict', tidemark("report", "-o", "-", os.path.join(SNAPSHOTS, "streams.pickle.xz")).decode("utf-8"))

    def test_keeps_several_files_and_devices_apart(self):
        files = [RECORDING, os.path.join(SNAPSHOTS, "small.pickle")]  # what has a rank comes first
        page = report(*reversed(files))
        self.check(page)
        self.assertEqual(page.tags.count("article"), 2)
        self.assertEqual([one["file"] for one in page.data["recordings"]], files)
        devices = [device["device"] for one in page.data["recordings"] for device in one["summary"]["devices"]]
        self.assertGreater(len(devices), 2)
        self.assertEqual(page.text.count("<dt>Peak allocated</dt>"), len(devices))

    def test_begins_with_a_table_of_several_files(self):
        files = [os.path.join(SNAPSHOTS, "small.pickle"), os.path.join(SNAPSHOTS, "streams.pickle.xz"), RECORDING]
        page = report(*files)
        self.assertIn('<main class="several">', page.text)
        rows = page.data["ranks"]["rows"]
        self.assertEqual([row["file"] for row in rows], [one["file"] for one in page.data["recordings"]])
        self.assertEqual([link for link in page.links if re.fullmatch(r"#r\d+", link)], ["#r0", "#r1", "#r2"])
        for row, one in zip(rows, page.data["recordings"]):
            peaks = {device["device"]: device["peak_allocated_bytes"] for device in one["summary"]["devices"]}
            self.assertEqual(row["peak_allocated_bytes"], peaks[row["device"]])
        self.assertIsNone(report(RECORDING).data["ranks"])

    def test_rank_option(self):
        files = [RECORDING, os.path.join(SNAPSHOTS, "small.pickle")]
        rank = as_json("summary", RECORDING)["process"]["rank"]
        page = report(*files, "--rank", str(rank))
        self.check(page)
        self.assertEqual(page.tags.count("article"), 1)
        self.assertEqual([one["file"] for one in page.data["recordings"]], [RECORDING])
        self.assertEqual([row["file"] for row in page.data["ranks"]["rows"]], files)
        failed = subprocess.run([TIDEMARK, "report", "-o", "-", *files, "--rank", "77"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
        self.assertEqual((failed.returncode, failed.stdout), (2, ""))
        self.assertIn(f"no recording of this rank (available: {rank})", failed.stderr)

    @takes_long
    def test_what_does_not_fit_is_not_read_in_vain(self):
        """Also where there are more files than a page can have: it stops when the page is full."""
        count = 10_000
        done = subprocess.run([TIDEMARK, "report", "-o", "-", *[RECORDING] * count], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        read, named = re.search(r"([\d,]+) of ([\d,]+) recordings fill more than the 14.3 MiB that a report may have; name fewer files, "
                                r"show one rank beside the table of all with --rank N", done.stderr).groups()
        self.assertEqual(int(named.replace(",", "")), count)
        self.assertLess(int(read.replace(",", "")), count / 4)

    def test_device_option(self):
        data = report(os.path.join(SNAPSHOTS, "small.pickle"), "--device", "cuda:1").data
        self.assertEqual([device["device"] for device in data["recordings"][0]["tree"]["sections"]], ["cuda:1"])


class Made(Snapshots, Checked):
    def test_names_stay_names(self):
        entries = [entry(index, name, HOSTILE[-1 - index]) for index, name in enumerate(HOSTILE)]
        page = report(self.snapshot(entries))
        plain = report(self.snapshot([entry(index, "f", "a.py") for index in range(len(HOSTILE))], "plain.pickle"))
        harmless = page.text.replace("http://evil.example", "")  # as a name it may be shown
        self.assertEqual(len(page.text) - len(harmless) > 0, True)
        page.text = harmless
        self.check(page)
        self.assertEqual(set(page.tags), set(plain.tags))
        self.assertEqual(page.tags.count("script"), 2)
        self.assertFalse(set(page.text) & set(BIDI + "\x1b\x00\u2028"))
        self.assertIn("&lt;img src=x onerror=alert(1)&gt;", page.text)
        functions = json.dumps(page.data, ensure_ascii=False)
        self.assertIn("</script><script>alert(1)</script>", functions)  # whole for programs

    def test_boxes_are_as_wide_as_what_was_allocated_below_them(self):
        pick = random.Random(4)
        entries, bytes_of, total = [], {}, 0
        for index in range(300):
            frames = [{"name": pick.choice("abcd"), "filename": "a.py", "line": 1} for _ in range(pick.randint(1, 6))]
            size = 512 * pick.randint(1, 2000)
            entries.append(entry(0, "", "", addr=1 << 40 | index << 24, size=size, frames=frames[::-1]))  # innermost first
            total += size
            for depth in range(len(frames)):
                path = "".join(frame["name"] for frame in frames[:depth + 1])
                bytes_of[path] = bytes_of.get(path, 0) + size
        page = report(self.snapshot(entries))
        number = r'"([\d.e-]+)%?"'
        boxes = re.findall(rf'<svg class="(?:own|root)[^"]*" x={number} y={number} width={number}', page.text)
        rows = {}
        for x, y, width in (tuple(map(float, box)) for box in boxes):
            rows.setdefault(round(y / 19), []).append((x, x + width))
        self.assertEqual(rows[0], [(0, 100)])
        for depth in range(1, 7):
            row = sorted(rows[depth])
            for (_, end), (begin, _) in zip(row, row[1:]):
                self.assertLessEqual(end, begin + 0.01)
            for begin, end in row:
                self.assertTrue(any(left - 0.01 <= begin and end <= right + 0.01 for left, right in rows[depth - 1]))
            expected = sorted(100 * held / total for path, held in bytes_of.items() if len(path) == depth)
            expected = [share for share in expected if share >= 0.1]
            widths = sorted(end - begin for begin, end in row)
            self.assertEqual(len(widths), len(expected))
            for width, share in zip(widths, expected):
                self.assertAlmostEqual(width, share, places=2)

    def test_nothing_recorded(self):
        page = report(self.snapshot([]))
        self.check(page)
        self.assertEqual(page.data["recordings"][0]["summary"]["devices"], [])
        self.assertIn("No events recorded", page.text)

    @takes_long
    def test_a_hundred_thousand_stacks(self):
        entries = [entry(index, f"function_{index}_{'x' * 40}", f"/project/module_{index % 977}.py") for index in range(100_000)]
        page = report(self.snapshot(entries))
        self.assertLess(len(page.text.encode()), 15_000_000)
        self.check(page)
        section, = page.data["recordings"][0]["table"]["sections"]
        self.assertEqual(len(section["rows"]) + section["other_row_count"], 100_000)
        self.assertIn(f"{section['other_row_count']:,} other stacks", page.text)
        self.assertEqual(sum(row["bytes"] for row in section["rows"]) + section["other_bytes"], 51_200_000)

    @takes_long
    def test_long_names_and_many_files_fit(self):
        frames = [{"name": f"{'long' * 400}{index}", "filename": "/deep" * 60, "line": index} for index in range(60)]
        entries = [entry(index, "f", "a.py", frames=frames[:1 + index % 60]) for index in range(200)]
        path = self.snapshot(entries)
        page = report(*[path] * 40)
        self.assertLess(len(page.text.encode()), 15_000_000)
        self.assertEqual(page.tags.count("article"), 40)

    def test_refuses_to_replace_what_it_reads(self):
        path = self.snapshot([entry(0, "f", "a.py")])
        done = subprocess.run([TIDEMARK, "report", path, "-o", path], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is an input file", done.stderr)


if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--sanitized"]
    RECORDING = sys.argv.pop()
    SNAPSHOTS = sys.argv.pop()
    TIDEMARK = sys.argv.pop()
    unittest.main()
