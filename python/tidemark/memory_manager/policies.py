"""Actions of a program when its memory is forecast to run out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Union

from tidemark._logging import package_logger
from tidemark._risks import RiskWatch, on_risk
from tidemark.memory_manager.out_of_memory import free_caches

Policy = Union[str, Callable[[dict[str, Any]], object]]


def _warn(change: dict[str, Any]) -> None:
    risk = change["risk_assessment"]
    package_logger().warning(
        "%s: %s risk of running out of memory. %s", change["name"], risk["risk_level"], risk["recommendation"]
    )


def _free_cache(change: dict[str, Any]) -> None:
    free_caches()
    package_logger().warning(
        "%s: emptied PyTorch's caches: %s risk of running out of memory",
        change["name"],
        change["risk_assessment"]["risk_level"],
    )


def checkpoint_and_exit(save_fn: Callable[[], object]) -> Callable[[dict[str, Any]], None]:
    """A policy: call ``save_fn()``, then end the process by SIGTERM, for which the program may have a handler.

    ``save_fn`` runs on the watching thread while the training continues: the saved state must be consistent at any time, such
    as a copy on the host that the loop updates, or guarded by a lock of the program. If it raises, the exception is logged and
    the process continues.
    """

    def save(change: dict[str, Any]) -> None:
        _warn(change)
        save_fn()
        package_logger().warning("checkpoint_and_exit: saved; this process ends")
        sys.stdout.flush()
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGTERM)

    return save


_POLICIES: dict[str, Callable[[dict[str, Any]], None]] = {"warn": _warn, "free_cache": _free_cache}


def act_on_forecast(policy: Policy, level: str = "high", **options: Any) -> RiskWatch:
    """Act when the risk that a memory runs out rises to ``level``.

    The policy runs on a dedicated thread, never on one that allocates; see ``tidemark.on_risk()`` for the timing and the
    ``options``.

    Args:
        policy: ``"warn"`` (a line in the log), ``"free_cache"``, ``checkpoint_and_exit(save_fn)``, or a function of the change.
        level: ``"medium"``, ``"high"`` or ``"critical"``.
        **options: ``devices``, ``interval`` and ``threshold`` of ``tidemark.on_risk()``.
    """
    if isinstance(policy, str) and policy not in _POLICIES:
        raise ValueError(f"policy {policy!r}: expected {', '.join(_POLICIES)}, checkpoint_and_exit(save_fn) or a function")
    return on_risk(level, _POLICIES[policy] if isinstance(policy, str) else policy, **options)
