"""A real Prometheus scrapes the exporter, and every query of the Grafana dashboards returns data there."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import unittest
import urllib.parse
import urllib.request

from monitored import DEVICES, GIB, Machine, url_of, wait_for

# Present only on some machines: in a control group, and with a limit; with a PyTorch.
OF_SOME_MACHINES = {
    "tidemark_cgroup_memory_usage_bytes",
    "tidemark_cgroup_memory_limit_bytes",
    "tidemark_cgroup_oom_kills_total",
}
OF_RECORDED = {f"tidemark_framework_memory_{kind}_bytes" for kind in ("allocated", "category", "component")}


def queries():
    """(panel, query) of the dashboards, with their variables as Grafana fills them in."""
    for path in sorted(pathlib.Path(os.environ["DASHBOARDS"]).glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"].replace("$__rate_interval", "10s").replace('"$instance"', '".*"').replace(
                    '"$command"', '".*"'
                )


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed (scripts/setup.sh --dev)")
class PrometheusTest(unittest.TestCase):
    def setUp(self):
        self.machine = Machine()
        self.addCleanup(self.machine.close)
        monitor = self.machine.watch("exporter", "--listen", "127.0.0.1:0", "--interval", "0.05")
        self.url = url_of(monitor)
        self.machine.grow(0.02)  # 0.4 GiB/s: for longer than the test takes
        port = free_port()
        config = self.machine.at / "prometheus.yml"
        target = urllib.parse.urlsplit(self.url).netloc
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: tidemark, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.machine.at}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        )  # fmt: skip
        self.machine.monitors.append(prometheus)
        self.api = f"http://127.0.0.1:{port}/api/v1/query?"

    def query(self, text):
        try:
            with urllib.request.urlopen(self.api + urllib.parse.urlencode({"query": text})) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            self.assertEqual(error.code, 503, f"{text}: {error.read()}")  # it is starting
        except OSError:
            pass
        return []

    def value(self, text):
        return {series["metric"].get("hw_name"): float(series["value"][1]) for series in self.query(text)}

    def test_every_query_of_the_dashboards_returns_data(self):
        said = self.machine.record() if os.environ["TIDEMARK_PYTHON"] else None
        wait_for("a scrape", lambda: self.value("hw_gpu_memory_limit_bytes"))
        self.assertEqual(self.value("hw_gpu_memory_limit_bytes"), {"GPU 0": 80 * GIB, "GPU 1": 80 * GIB})
        self.assertEqual(self.value("hw_gpu_memory_usage_bytes")["GPU 1"], 5 * GIB)
        self.assertEqual(self.value("hw_power_watts"), {"GPU 0": 71.5, "GPU 1": 60})
        models = {series["metric"]["hw_model"] for series in self.query("hw_temperature_celsius")}
        self.assertEqual(models, {device["name"] for device in DEVICES})
        if said:
            self.check_categories(said)
        with urllib.request.urlopen(self.url) as answer:
            page = answer.read().decode()
        some = OF_SOME_MACHINES if said else OF_SOME_MACHINES | OF_RECORDED
        count = 0
        for panel, text in queries():
            needed = {name for name in re.findall(r"\b(?:hw|tidemark|process|system)_\w+", text) if name + "{" in text}
            if not needed & some or all(f"\n{name}" in page for name in needed):
                wait_for(f"{panel}: {text}", lambda text=text: self.query(text))
                count += 1
        self.assertGreater(count, 30)

    def check_categories(self, said):
        """Prometheus's values of a recorded program equal the program's own values of its tensors."""

        def categories():
            found = self.query('tidemark_framework_memory_category_bytes{tidemark_device="cpu"}')
            return {series["metric"]["tidemark_category"]: int(series["value"][1]) for series in found}

        # Between its steps: within one there are more gradients.
        wanted = {name.replace(" ", "_"): said[name] for name in ("parameter", "gradient", "optimizer state")}
        found = wait_for(f"categories {wanted}", lambda: wanted.items() <= (now := categories()).items() and now)
        self.assertGreater(found["activation"], 0)
        (series,) = self.query('tidemark_framework_memory_component_bytes{tidemark_component="embedding"}')
        self.assertGreaterEqual(int(series["value"][1]), said["modules"]["embedding"])

    def test_its_own_parser_finds_nothing_wrong(self):
        with urllib.request.urlopen(self.url) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        # The page with the most metrics.
        page = wait_for("a process", lambda: (text := urllib.request.urlopen(self.url).read()).count(b"process_pid=") and text)
        checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True)
        self.assertEqual(checked.stdout + checked.stderr, b"")
        self.assertEqual(checked.returncode, 0)


if __name__ == "__main__":
    unittest.main()
