"""The active part of the pytest plugin: measuring a test, limits, leaks, the baseline, the summary."""
