"""Actions, pushes and the history of monitors, as users start them."""

import http.server
import json
import os
import re
import socket
import sqlite3
import stat
import subprocess
import threading
import unittest
import urllib.error
import urllib.request

from monitored import DEVICES, GIB, Machine, url_of, wait_for


def run(*arguments):
    return subprocess.run([os.environ["TIDEMARK"], *arguments], capture_output=True, text=True)


def page(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def time_left(url):
    """The line with the expected time until GPU 0 is full."""
    return re.search(r'^tidemark_memory_time_to_limit_seconds{tidemark_memory="0".*"expected"} .*$', page(url), re.M)[0]


class Collector(http.server.ThreadingHTTPServer):
    """Stores posted bodies, by path."""

    def __init__(self):
        posted = self.posted = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posted.setdefault(self.path, []).append((dict(self.headers), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def close(self):
        self.shutdown()
        self.server_close()


class OutputsTest(unittest.TestCase):
    def setUp(self):
        self.machine = Machine()
        self.addCleanup(self.machine.close)

    def test_a_gpu_that_fills_up_is_told_to_everyone(self):
        collector = Collector()
        self.addCleanup(collector.close)
        os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "x-token=a%20b"
        told_files = self.machine.at / "told"
        told_files.mkdir()
        history = self.machine.at / "history.db"
        monitor = self.machine.watch(
            "oom", "--monitor", "--threshold", "50", "--interval", "0.05", "--output", str(self.machine.at / "oom.json"),
            "--otlp", collector.url, "--otlp-interval", "0.5", "--history", str(history),
            "--on-risk", f"medium=cat > {told_files}/$$.part && mv {told_files}/$$.part {told_files}/$$.json; echo printed",
            "--on-risk", "medium=exit 3",
        )  # fmt: skip
        self.machine.grow(0.5, up_to=60)

        def told_of_the_gpu():  # changes of the host may be reported, too, if other programs use its memory
            every = (json.loads(file.read_text()) for file in told_files.glob("*.json"))
            return next((told for told in every if told["device"] == "0"), None)

        told = wait_for("the command", told_of_the_gpu)
        self.assertEqual((told["name"], told["before"]), (DEVICES[0]["name"], "low"))
        self.assertEqual(told["limit_bytes"], 79 * GIB)
        self.assertIn(told["risk_assessment"]["risk_level"], ("medium", "high", "critical"))

        headers, request = wait_for("metrics", lambda: collector.posted.get("/v1/metrics"))[-1]
        self.assertEqual((headers["Content-Type"], headers["x-token"]), ("application/json", "a b"))
        (scope,) = request["resourceMetrics"][0]["scopeMetrics"]
        limits = next(metric for metric in scope["metrics"] if metric["name"] == "hw.gpu.memory.limit")
        self.assertEqual((limits["unit"], limits["sum"]["isMonotonic"]), ("By", False))
        self.assertEqual([point["asInt"] for point in limits["sum"]["dataPoints"]], [str(80 * GIB)] * 2)

        monitor.terminate()
        self.assertEqual(monitor.wait(), 0)
        errors = monitor.errors.read_text()
        self.assertIn("exit 3: the command failed: exit code 3", errors)
        self.assertNotIn("printed", errors)
        self.assertEqual(stat.S_IMODE(history.stat().st_mode), 0o600)
        self.check_history(history)

    def check_history(self, history):
        read = run("history", str(history), "--format", "json", "--plot", str(self.machine.at / "past.png"))
        self.assertEqual(read.returncode, 0, read.stderr)
        past = json.loads(read.stdout)
        devices = {device["device"]: device for device in past["devices"]}
        self.assertEqual(set(devices), {"0", "1", "cpu"})
        self.assertEqual(devices["1"]["peak_bytes"], 5 * GIB)
        self.assertEqual(devices["0"]["limit_bytes"], 79 * GIB)
        (process,) = devices["0"]["processes"]
        self.assertEqual((process["pid"], process["name"]), (self.machine.program.pid, "sleep"))
        change = next(change for change in past["risk_changes"] if change["device"] == "0")
        self.assertEqual((change["id"], change["before"], change["assessment"]["device"]), ("GPU-1111", "low", "0"))
        self.assertTrue((self.machine.at / "past.png").read_bytes().startswith(b"\x89PNG"))
        # Read by another program: the highest of the rows is the peak.
        with sqlite3.connect(history) as database:
            (peak,) = database.execute(
                "SELECT max(high) FROM points JOIN series ON series.id = series WHERE key = '0' AND pid = 0"
            ).fetchone()
        self.assertEqual(devices["0"]["peak_bytes"], peak)
        text = run("history", str(history), "--device", "1").stdout
        self.assertIn("5.0 GiB of 80.0 GiB", text)
        self.assertNotIn("GPU 0", text.split("Changes of risk")[0])
        self.assertIn(f",1,GPU-2222,1000,{5 * GIB},{5 * GIB}\n", run("history", str(history), "--format", "csv").stdout)

    @unittest.skipUnless(os.environ["FAKES_CLOCK_LIBRARY"], "not with a sanitizer")
    def test_a_critical_risk_is_told_once(self):
        # 79 GiB are full after 130 s. A growth over 76 s is critical: 1.4 times as long as the remaining 54 s.
        machine = Machine(memory={"total": 80 * GIB, "reserved": GIB, "used": 40 * GIB}, grows=0.3 * GIB)
        self.addCleanup(machine.close)
        collector = Collector()
        self.addCleanup(collector.close)
        told_file = machine.at / "told.json"
        monitor = machine.watch(
            "oom", "--monitor", "--interval", "0.5", "--devices", "0", "--listen", "127.0.0.1:0",
            "--output", str(machine.at / "oom.json"),
            "--on-critical", f"cat >> {told_file}", "--webhook", f"{collector.url}/hook",
            LD_PRELOAD=os.environ["FAKES_CLOCK_LIBRARY"], FAKES_CLOCK="10 76",
        )  # fmt: skip
        (headers, posted), *others = wait_for("the webhook", lambda: collector.posted.get("/hook"))
        self.assertEqual((headers["Content-Type"], others), ("application/json", []))
        self.assertEqual((posted["device"], posted["name"]), ("0", DEVICES[0]["name"]))
        self.assertIn(posted["before"], ("low", "medium"))
        risk = posted["risk_assessment"]
        self.assertEqual(risk["risk_level"], "critical")
        self.assertAlmostEqual(risk["growth_rate_mb_per_sec"], 0.3 * 1024, delta=0.03 * 1024)
        self.assertLessEqual(risk["predicted_oom_time_seconds"], 60)

        # It stays so in the next assessment, which happens in the remaining time.
        url = url_of(monitor)
        before = time_left(url)
        wait_for("the next assessment", lambda: time_left(url) != before)
        self.assertIn('tidemark_memory_risk_level{tidemark_memory="0",hw_id="GPU-1111",hw_name="GPU 0"} 3\n', page(url))
        monitor.terminate()
        self.assertEqual(monitor.wait(), 0)
        (line,) = told_file.read_text().splitlines()
        self.assertEqual(json.loads(line), posted)
        self.assertEqual(len(collector.posted["/hook"]), 1)
        changes = json.loads((machine.at / "oom.json").read_text())["changes"]
        levels = [change["risk_assessment"]["risk_level"] for change in changes]
        self.assertEqual(levels[levels.index("critical") :], ["critical"])

    def test_the_last_assessment_is_handed_on(self):
        collector = Collector()
        self.addCleanup(collector.close)
        report = self.machine.at / "oom.json"
        self.machine.grow(0.5, up_to=60)
        monitor = self.machine.watch(
            "oom", "--duration", "1.2", "--interval", "0.05", "--threshold", "1", "--output", str(report),
            "--otlp", collector.url, "--otlp-interval", "86400",
        )  # fmt: skip
        self.assertEqual(monitor.wait(), 0, monitor.errors.read_text())
        # The first push is at the beginning; the next would be due tomorrow.
        pushes = [request for _, request in collector.posted["/v1/metrics"]]
        self.assertEqual(len(pushes), 2)
        (scope,) = pushes[-1]["resourceMetrics"][0]["scopeMetrics"]
        points = {
            metric["name"]: {
                attribute["value"]["stringValue"]: point
                for point in (metric.get("gauge") or metric["sum"])["dataPoints"]
                for attribute in point["attributes"]
                if attribute["key"] == "tidemark.memory"
            }
            for metric in scope["metrics"]
        }
        assessed = json.loads(report.read_text())["devices"]["0"]["risk_assessment"]
        used_percent = 100 * int(points["tidemark.memory.usage"]["0"]["asInt"]) / (79 * GIB)
        self.assertAlmostEqual(used_percent, assessed["current_usage_percent"])
        self.assertEqual(points["tidemark.memory.risk_level"]["0"]["asInt"], "1")
        self.assertEqual(assessed["risk_level"], "medium")

    def test_a_token_is_asked_for(self):
        token = self.machine.at / "token"
        token.touch(0o600)
        token.write_text("0123456789abcdef0123456789abcdef\n")
        url = url_of(self.machine.watch("exporter", "--listen", "0.0.0.0:0", "--listen-token-file", str(token)))
        url = url.replace("0.0.0.0", "127.0.0.1")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url)
        self.assertEqual(refused.exception.code, 401)
        request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token.read_text().strip()})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.status, 200)

    def test_what_cannot_be_done_is_said_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            in_use = run("exporter", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        self.assertIn("another program does", in_use.stderr)
        failures = {
            "--listen-token-file": run("exporter", "--listen", "0.0.0.0:9400"),
            "expected ADDRESS:PORT": run("exporter", "--listen", "everywhere"),
            "no URL": run("exporter", "--otlp", "127.0.0.1:4318"),
            "expected LEVEL=CMD": run("oom", "--on-risk", "worst=ls"),
            "cannot be created": run("profile", "--history", "/nowhere/history.db"),
            "such as 90s": run("oom", "--history", "x", "--keep-history", "long"),
        }
        for text, result in failures.items():
            self.assertIn(text, result.stderr)
            self.assertEqual(result.returncode, 2)
        self.assertEqual(in_use.returncode, 2)


if __name__ == "__main__":
    unittest.main()
