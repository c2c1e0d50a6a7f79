"""The autograd nodes and sequence numbers of a recording equal PyTorch's own."""

import json
import sys
import unittest

from driver import PROGRAMS, TIDEMARK, Case, environment, has_cuda, program, run

READER = PROGRAMS.parents[1] / "compat" / "read_tide.py"
ACCUMULATE_GRAD = (1 << 64) - 1  # Node::sequence_nr() of AccumulateGrad


class Autograd(Case):
    def check(self, said):
        text, threads, nodes, allocations = {}, {}, {}, []
        for kind, fields in self.dump():
            if kind == "string":
                text[fields["id"]] = fields["text"]
            elif kind == "thread":
                threads[fields["id"]] = fields["tid"]
            elif kind == "autograd_node":
                nodes[fields["id"]] = text[fields["class"]].split("::")[-1], threads.get(fields["forward_thread"])
            elif kind == "event" and fields["kind"] == "allocate":
                allocations.append(fields)
        places = {event["size"]: place for place, event in enumerate(allocations)}
        self.check_nodes(said, nodes, threads, allocations, places)
        self.check_passes(said, nodes, threads, allocations, places)
        self.check_forward(said, nodes, allocations, places)
        for size in said["outside"]:
            self.assertNotIn("autograd_node", allocations[places[size]])

    def check_nodes(self, said, nodes, threads, allocations, places):
        self.assertGreater(len(said["nodes"]), 60)
        self.numbers = {}  # of the nodes, by the sizes of their blocks
        for node in said["nodes"]:
            event = allocations[places[node["size"]]]
            name, forward_thread = nodes[event["autograd_node"]]
            self.assertEqual((name, threads[event["thread"]]), (node["class"], node["thread"]))
            if name != "AccumulateGrad":  # it belongs to the parameter, and its first user
                self.assertEqual(forward_thread, node["forward_thread"])
            self.assertIn(node["sequence"], (None, event["node_sequence"]))
            self.assertEqual(event["node_sequence"] == ACCUMULATE_GRAD, name == "AccumulateGrad")
        self.assertTrue({"ScaleBackward", "ShiftBackward", "CheckpointFunctionBackward"} <= {name for name, _ in nodes.values()})

    def check_passes(self, said, nodes, threads, allocations, places):
        """Every block of a backward pass has a node, except the gradient of the loss, which its caller makes."""
        for before, after in said["passes"]:
            events = allocations[places[before] + 1 : places[after]]
            without = [event for event in events if "autograd_node" not in event]
            self.assertLessEqual(len(without), 1)
            for event in without:
                self.assertEqual(event["thread"], allocations[places[before]]["thread"])
            self.assertGreaterEqual(len(events), 4)
        first = [event for event in allocations[places[said["passes"][0][0]] : places[said["passes"][0][1]]] if "autograd_node" in event]
        graph = {(node["class"], node["sequence"]) for node in said["graphs"][0]}
        named = {(nodes[event["autograd_node"]][0], event["node_sequence"]) for event in first}
        if (None in {number for _, number in graph}):  # before PyTorch 2.1
            graph, named = ({name for name, _ in pairs} for pairs in (graph, named))
        self.assertEqual(named, graph, "every node of this graph makes a block")

    def check_forward(self, said, nodes, allocations, places):
        numbers = {}
        for event in allocations:
            if "autograd_node" in event:
                numbers.setdefault(nodes[event["autograd_node"]], set()).add(event["node_sequence"])
        before = None
        for node in said["forward"]:
            event = allocations[places[node["size"]]]
            number = event["sequence"] - 1  # of the latest node
            self.assertIn(node["sequence"], (None, number))
            self.assertIn(number, numbers[(node["class"], node["forward_thread"])])
            # The operation's own blocks: right before its node is made, or after.
            own = [each for each in allocations[(before or places[node["size"]]) + 1 : places[node["size"]]] if each["thread"] == event["thread"]]
            if own:
                self.assertIn(own[-1]["sequence"], (number, number + 1))
            before = places[node["size"]]

    def test_on_the_cpu(self):
        plain = json.loads(run(program("autograd.py")).stdout)
        said = json.loads(self.record_well(program("autograd.py")).stdout)
        self.check(said)
        self.assertEqual(said["losses"], plain["losses"])
        self.check_other_reader()

    def check_other_reader(self):
        lines = [json.loads(line) for line in run([sys.executable, str(READER), str(self.output)]).stdout.splitlines()]
        theirs = [(line["size"], line.get("sequence"), line.get("node"), line.get("node_sequence")) for line in lines if line.get("kind") == "allocate"]
        ours = [event for event in self.events() if event["kind"] == "allocate"]
        self.assertEqual(theirs, [(event["size"], event.get("sequence"), event.get("autograd_node"), event.get("node_sequence")) for event in ours])

    @unittest.skipUnless(has_cuda(), "this PyTorch is built without CUDA")
    def test_on_a_gpu(self):
        """Where one of PyTorch's threads runs the nodes."""
        options = ["--gpu", "H200", "--steps", "0", "--format", "json", "-o", str(self.output)]
        done = run([TIDEMARK, "plan", *options, "--", *program("autograd.py", "--device", "cuda")], env=environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        said = json.loads(next(line for line in done.stderr.splitlines() if line.startswith(b"{")))
        self.check(said)
        makers = {node["forward_thread"] for node in said["nodes"]}
        runners = {node["thread"] for node in said["nodes"]}
        self.assertNotIn(said["nodes"][0]["forward_thread"], runners)
        self.assertEqual(len(makers & runners), 1, "of what is computed again")


if __name__ == "__main__":
    unittest.main()
