#!/usr/bin/env python3
"""The cost of logging a metric from Python: PYTHONPATH=build/release/python bench/log_metric.py

The time of a loop that calls log_metric(), less the time of one that calls an empty function; the best of seven.
"""

import timeit

import tidemark

CALLS = 300_000


def nanoseconds(function):
    return min(timeit.repeat(function, number=CALLS, repeat=7)) / CALLS * 1e9


def main():
    monitor = tidemark.PerformanceMonitor()

    def step():
        with monitor.waiting_for_data():
            pass
        monitor.step(32)

    empty = nanoseconds(lambda: None)
    print(f"log_metric(name, value)        {nanoseconds(lambda: monitor.log_metric('train/loss', 0.5)) - empty:6.0f} ns")
    print(f"waiting_for_data() and step()  {nanoseconds(step) - empty:6.0f} ns")


if __name__ == "__main__":
    main()
