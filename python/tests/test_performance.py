"""The performance monitor: its numbers compared with the statistics module, and its report on the machine."""

from __future__ import annotations

import json
import logging
import math
import os
import random
import statistics
import threading
import time

import pytest

import tidemark
from tidemark.compat import PerformanceMonitor


def test_the_older_names_and_keys_are_there():
    monitor = PerformanceMonitor()
    monitor.start_monitoring()
    for step in range(10):
        monitor.log_metric("loss", 1.0 / (step + 1))
    report = monitor.get_performance_report()
    monitor.stop_monitoring()
    assert {"gpu_metrics", "training_metrics", "system_metrics"} <= report.keys()
    assert {"mean", "max", "min", "std"} <= report["training_metrics"]["loss"].keys()
    assert {"cpu_usage", "memory_usage", "disk_usage"} <= report["system_metrics"].keys()
    assert PerformanceMonitor is tidemark.PerformanceMonitor


def test_numbers_are_those_of_the_statistics_module():
    generator = random.Random(3)
    values = [generator.lognormvariate(0, 2) * generator.choice([-1, 1, 1]) for _ in range(5000)]
    monitor = tidemark.PerformanceMonitor()
    for value in values:
        monitor.log_metric("value", value)
    got = monitor.get_performance_report()["training_metrics"]["value"]
    assert got["count"] == 5000
    assert got["min"] == min(values)
    assert got["max"] == max(values)
    assert got["last"] == values[-1]
    assert got["mean"] == pytest.approx(statistics.fmean(values), rel=1e-12)
    assert got["std"] == pytest.approx(statistics.pstdev(values), rel=1e-12)
    ordered = sorted(values)
    for key, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        assert got[key] == pytest.approx(ordered[int(share * 4999)], rel=got["quantile_relative_error"] + 1e-9)


def test_what_is_no_finite_number():
    monitor = tidemark.PerformanceMonitor()
    for value in (1, 2.5, True, math.nan, math.inf, -math.inf):
        monitor.log_metric("odd", value)
    got = monitor.get_performance_report()["training_metrics"]["odd"]
    assert (got["count"], got["nan_count"], got["infinite_count"]) == (3, 1, 2)
    assert got["mean"] == 1.5
    for name, value in (("odd", "text"), ("odd", None), (7, 1.0)):
        with pytest.raises(TypeError):
            monitor.log_metric(name, value)

    class Scalar:  # as a tensor of one element
        def __float__(self):
            return 4.0

    monitor.log_metric("scalar", Scalar())
    assert monitor.get_performance_report()["training_metrics"]["scalar"]["mean"] == 4.0


def test_threads_lose_nothing():
    monitor = tidemark.PerformanceMonitor()

    def log() -> None:
        for n in range(2000):
            monitor.log_metric("shared", n)

    threads = [threading.Thread(target=log) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    got = monitor.get_performance_report()["training_metrics"]["shared"]
    assert (got["count"], got["mean"]) == (16000, pytest.approx(999.5))


def test_steps_and_their_parts():
    monitor = tidemark.PerformanceMonitor()
    for _ in range(3):
        with monitor.waiting_for_data():
            time.sleep(0.02)
        with monitor.part("forward"):
            pass
        monitor.step(samples=4)
    steps = monitor.get_performance_report()["steps"]
    assert (steps["steps"], steps["samples"], steps["stalled_steps"]) == (3, 12, 3)
    assert steps["breakdown"]["data"]["min"] >= 0.02
    assert steps["breakdown"]["data"]["share_of_step_time"] <= 1
    assert steps["breakdown"]["backward"]["mean"] is None
    assert steps["samples_per_second"] == pytest.approx(4 * steps["steps_per_second"])
    with pytest.raises(ValueError, match="part 'lunch'"):
        monitor.part("lunch")
    with pytest.raises(ValueError, match="samples"):
        monitor.step(samples=-1)


def test_the_host_is_watched(tmp_path):
    with tidemark.PerformanceMonitor(interval=0.06, disk=tmp_path) as monitor:
        assert monitor.monitoring
        assert monitor.get_performance_report()["system_metrics"]["cpu_usage"] is not None
    assert not monitor.monitoring
    system = monitor.get_performance_report()["system_metrics"]
    space = os.statvfs(tmp_path)
    assert system["disk"]["total_bytes"] == space.f_frsize * space.f_blocks
    assert 0 <= system["cpu_usage"] <= 100
    assert 0 < system["memory_usage"] < 100
    assert system["process"]["pid"] == os.getpid()
    assert system["process"]["rss_bytes"] > 2**20
    assert system["processors"] == len(os.sched_getaffinity(0))


def test_what_is_logged_after_the_stop_is_said_once(caplog):
    monitor = tidemark.PerformanceMonitor()
    monitor.log_metric("loss", 1)
    monitor.stop_monitoring()
    with caplog.at_level(logging.WARNING, logger="tidemark"):
        monitor.log_metric("loss", 2)
        monitor.step()
    assert [record.message.split(":")[0] for record in caplog.records] == ["PerformanceMonitor"]
    report = monitor.get_performance_report()
    assert (report["training_metrics"]["loss"]["count"], report["values_after_stop"]) == (1, 2)


def test_a_forked_child_has_what_was_seen_and_takes_nothing():
    with tidemark.PerformanceMonitor(interval=0.02) as monitor:
        monitor.log_metric("loss", 1)
        child = os.fork()
        if child == 0:
            monitor.log_metric("loss", 2)
            got = monitor.get_performance_report()
            os._exit(0 if got["training_metrics"]["loss"]["count"] == 1 and not got["monitoring"] else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_files_and_pages(tmp_path):
    monitor = tidemark.PerformanceMonitor()
    monitor.log_metric("loss", 0.5)
    assert monitor.generate_report(tmp_path / "report.json")["training_metrics"]["loss"]["mean"] == 0.5
    assert json.loads((tmp_path / "report.json").read_text())["training_metrics"]["loss"]["count"] == 1
    monitor.save_chart(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes()[1:4] == b"PNG"
    page = monitor.prometheus()
    assert 'tidemark_training_metric{tidemark_metric="loss",tidemark_statistic="p50"} 0.5\n' in page
    with pytest.raises(OSError, match="no"):
        monitor.save_chart(tmp_path / "no" / "chart.png")


def test_a_device_that_is_not_there_is_a_problem():
    with tidemark.PerformanceMonitor(devices=[77]) as monitor:
        report = monitor.get_performance_report()
    assert report["gpu_metrics"] == {}
    assert [problem.partition(";")[0] for problem in report["problems"]] == ["there is no device 77 here"]


@pytest.mark.parametrize("interval", [0, -1, math.nan, 1e9])
def test_intervals_that_cannot_be(interval):
    with pytest.raises(ValueError, match="interval"):
        tidemark.PerformanceMonitor(interval=interval)
