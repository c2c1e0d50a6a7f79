"""More clients of --listen than the monitor has descriptors, which send a byte now and then: it continues measuring and serving others."""

import contextlib
import os
import re
import resource
import socket
import sqlite3
import unittest
import urllib.parse
import urllib.request

from monitored import Machine, url_of, wait_for

CLIENTS = 2000
DESCRIPTORS = 1024  # of the monitor
ROUNDS = 3
BEGUN = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: "


@contextlib.contextmanager
def descriptors(count):
    """Processes started meanwhile may have this many."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class SlowClients:
    """Clients that reconnect after they were closed."""

    def __init__(self, url, count):
        parts = urllib.parse.urlsplit(url)
        self.address = (parts.hostname, parts.port)
        self.clients = [self.connect() for _ in range(count)]

    def connect(self):
        client = socket.create_connection(self.address)
        client.setblocking(False)
        client.send(BEGUN)
        return client

    def send(self):
        """Sends a byte from each. Returns how many had been closed."""
        closed = 0
        for position, client in enumerate(self.clients):
            try:
                client.send(b"a")
                if client.recv(1) != b"":
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            client.close()
            closed += 1
            self.clients[position] = self.connect()
        return closed

    def close(self):
        for client in self.clients:
            client.close()


class SlowClientsTest(unittest.TestCase):
    def setUp(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard != resource.RLIM_INFINITY and hard < CLIENTS + 100:
            self.skipTest(f"ulimit -Hn {hard}")
        self.machine = Machine()
        self.addCleanup(self.machine.close)
        self.history = self.machine.at / "history.db"
        with descriptors(DESCRIPTORS):
            self.monitor = self.machine.watch(
                "oom", "--monitor", "--interval", "0.05", "--listen", "127.0.0.1:0", "--history", str(self.history),
                "--output", str(self.machine.at / "oom.json"),
            )  # fmt: skip
        self.url = url_of(self.monitor)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (CLIENTS + 100, before[1]))

    def value(self, name):
        with urllib.request.urlopen(self.url, timeout=120) as answer:
            found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)", answer.read().decode(), re.M)
        return found and float(found[1])

    def newest_row(self, series):
        with contextlib.closing(sqlite3.connect(self.history)) as database:
            query = "SELECT max(time) FROM points JOIN series ON series.id = series WHERE key = ? AND pid = 0"
            return database.execute(query, (series,)).fetchone()[0]

    def descriptor_count(self):
        return len(os.listdir(f"/proc/{self.monitor.pid}/fd"))

    def test_they_change_nothing_in_what_is_measured(self):
        wait_for("readings", lambda: self.value("hw_gpu_memory_usage_bytes") and self.value("system_memory_linux_available_bytes"))
        wait_for("the history", self.history.exists)
        usual = self.descriptor_count()
        clients = SlowClients(self.url, CLIENTS)
        self.addCleanup(clients.close)
        self.machine.grow(0.02)  # 0.4 GiB/s: for longer than the test takes
        closed = 0
        for _ in range(ROUNDS):
            closed += clients.send()
            # 64 connections; its readings take a few.
            self.assertLess(self.descriptor_count(), usual + 64 + 16)
            seen = self.value("hw_gpu_memory_usage_bytes")
            wait_for("the GPU's next reading", lambda seen=seen: self.value("hw_gpu_memory_usage_bytes") > seen)
            self.assertGreater(self.value("system_memory_linux_available_bytes"), 0)
        for series in ("0", "cpu"):
            last = self.newest_row(series)

            def goes_on(series=series, last=last):
                clients.send()
                return self.newest_row(series) > last

            wait_for(f"the history of {series}", goes_on)
        self.assertGreaterEqual(closed, CLIENTS - 64)
        self.assertEqual(self.monitor.errors.read_text().count("\n"), 1, self.monitor.errors.read_text())
        self.monitor.terminate()
        self.assertEqual(self.monitor.wait(), 0)


if __name__ == "__main__":
    unittest.main()
