"""The program's marks are in its recording: names, order, and the memory allocated meanwhile."""

import json
import unittest

from driver import Case, program, real_pytorch


class Marks(Case):
    def setUp(self):
        super().setUp()
        self.record_once(program("marks.py"), "--stacks", "none")

    def marks(self):
        strings, found = {}, []
        for kind, fields in self.dump():
            if kind == "string":
                strings[fields["id"]] = fields["text"]
            if kind == "mark":
                found.append((fields["kind"], strings[fields["name"]], fields["time_ns"]))
        return found

    def test_names_and_order(self):
        step = [("range_begin", "step"), ("range_begin", "rückwärts"), ("range_end", "rückwärts"), ("range_end", "step")]
        expected = [("point", "before PyTorch allocates"), *step, *step, ("point", "x" * 256)]
        self.assertEqual([(kind, name) for kind, name, _ in self.marks()], expected)

    @real_pytorch
    def test_times_lie_between_the_events(self):
        births = {event["size"]: event["time_ns"] for event in self.events() if event["kind"] == "allocate"}
        last = {(kind, name): time_ns for kind, name, time_ns in self.marks()}
        in_order = [
            last["point", "before PyTorch allocates"],
            births[1001],
            last["range_begin", "step"],
            births[2001],
            last["range_begin", "rückwärts"],
            births[3001],
            last["range_end", "rückwärts"],
            last["range_end", "step"],
            last["point", "x" * 256],
            births[4001],
        ]
        self.assertEqual(in_order, sorted(in_order))

    def test_memory_by_annotation(self):
        table = json.loads(self.read("table", "--by", "annotation", "--format", "json", self.output))
        rows = {row["annotation"]: row["bytes"] for row in table["sections"][0]["rows"]}
        self.assertEqual(rows, {"step": 2 * 2001, "rückwärts": 2 * 3001, None: 1001 + 4001})

    def test_memory_at_a_mark(self):
        for moment, size in {"rückwärts": 1001 + 2001, "rückwärts@2": 1001 + 2 * 2001 + 3001, "x" * 256: 1001 + 2 * 5002}.items():
            table = json.loads(self.read("table", "--at", moment, "--format", "json", self.output))
            self.assertEqual(table["sections"][0]["allocated_bytes"], size, moment)


if __name__ == "__main__":
    unittest.main()
