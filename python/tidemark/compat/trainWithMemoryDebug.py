"""The older module and script ``trainWithMemoryDebug``: a LoRA training analyzed stage by stage.

``python -m tidemark.compat.trainWithMemoryDebug --debug_level full --precision fp16``
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

from tidemark._language import say
from tidemark.debugger.memory_debugger import MemoryDebugger as MemoryDebugger
from tidemark.debugger.memory_debugger import create_memory_debugger as create_memory_debugger
from tidemark.debugger.training_profiler import TrainingMemoryProfiler as TrainingMemoryProfiler
from tidemark.debugger.training_profiler import debug_lora_training as debug_lora_training
from tidemark.debugger.training_profiler import debug_memory_with_different_configs as debug_memory_with_different_configs
from tidemark.debugger.training_profiler import memory_profiled_training as memory_profiled_training

VARIATIONS = {"small_r": {"r": 8, "alpha": 16}, "medium_r": {"r": 16, "alpha": 32}, "large_r": {"r": 32, "alpha": 64}}


def main(arguments: Sequence[str] | None = None) -> int:
    """The script; returns its exit status."""
    parser = argparse.ArgumentParser(prog="trainWithMemoryDebug", description="Take a LoRA training apart stage by stage")
    parser.add_argument("--debug_level", choices=["model_only", "full", "custom", "comparison"], default="full",
                        help="only the model; a training; stage by stage; r = 8, 16 and 32 compared")  # fmt: skip
    parser.add_argument("--precision", default="fp16", help="fp16, bf16 or fp32 (default: fp16)")
    parser.add_argument("--config", type=Path, help="JSON: model or sizes (hidden_size, …), r, alpha, learning_rate, …")
    parser.add_argument("--train_fn", help="module:function to train with instead")
    parser.add_argument("--log_dir", default="logs/lora_training_debug", help="folder of logs and reports")
    for name in ("--pkg", "--version", "--knowledge_type"):
        parser.add_argument(name, help="handed to --train_fn")
    chosen = parser.parse_args(arguments)
    try:
        config = json.loads(chosen.config.read_text(encoding="utf-8")) if chosen.config else {}
        _LEVELS[chosen.debug_level](config, chosen)
    except (OSError, ValueError, ImportError, AttributeError) as problem:
        print(f"trainWithMemoryDebug: {problem}", file=sys.stderr)
        return 2
    return 0


def _train_fn(name: str | None) -> Callable[..., Any] | None:
    if name is None:
        return None
    module, _, function = name.partition(":")
    if not function:
        raise ValueError(f"--train_fn {name}: module:function is needed")
    sys.path.insert(0, "")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def _model_only(config: dict[str, Any], chosen: argparse.Namespace) -> None:
    from tidemark.compat.models import analyze_model
    from tidemark.debugger.lora_model import lora_model

    with memory_profiled_training(log_dir=chosen.log_dir) as profiler:
        model = profiler.profile_stage("model_creation", lora_model, config, chosen.precision)
        analyze_model(model, "lora_model")
        profiler.generate_training_report()


def _full(config: dict[str, Any], chosen: argparse.Namespace) -> None:
    _, results = debug_lora_training(
        config=config,
        precision=chosen.precision,
        pkg=chosen.pkg,
        version=chosen.version,
        knowledge_type=chosen.knowledge_type,
        log_dir=chosen.log_dir,
        train_fn=_train_fn(chosen.train_fn),
    )
    for stage in ("creation_analysis", "training_analysis"):
        memory = results[stage]["summary"]["total_memory_mb"]
        print(say("{stage}: the model holds {mb:.2f} MB", stage=stage, mb=memory))


def _custom(config: dict[str, Any], chosen: argparse.Namespace) -> None:
    from tidemark.debugger.lora_model import lora_model
    from tidemark.debugger.lora_training import batches_of, train_lora

    with memory_profiled_training(log_dir=chosen.log_dir) as profiler:
        model = profiler.profile_stage("model_creation", lora_model, config, chosen.precision)
        data = profiler.profile_stage("data_loading", batches_of, config)
        profiler.profile_stage("training", train_lora, model, data, config)
        profiler.generate_training_report()


def _comparison(config: dict[str, Any], chosen: argparse.Namespace) -> None:
    results = debug_memory_with_different_configs(
        {"precision": chosen.precision, **config}, VARIATIONS, _train_fn(chosen.train_fn)
    )
    for name, result in results.items():
        memory = "n/a" if result["memory_mb"] is None else f"{result['memory_mb']:.2f} MB"
        print(f"{name}: {memory} ({result['measured_by']})" + (f": {result['error']}" if result["error"] else ""))


_LEVELS = {"model_only": _model_only, "full": _full, "custom": _custom, "comparison": _comparison}

if __name__ == "__main__":
    sys.exit(main())
