"""What the pytest plugin does once it is asked for: measuring a test, limits, leaks, the baseline, the summary."""
