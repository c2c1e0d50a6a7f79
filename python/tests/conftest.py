"""Tests that take long and rarely fail run in the nightly run only: ``@pytest.mark.nightly``."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("TIDEMARK_NIGHTLY") == "ON":
        return
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.skip(reason="nightly: set TIDEMARK_NIGHTLY=ON"))
