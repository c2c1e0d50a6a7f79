"""``memory_profiled_training()`` and ``debug_lora_training()``: a training analyzed by stages, with a log and reports."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, TypeVar

from tidemark._language import say
from tidemark._sizes import to_mb
from tidemark.debugger.compare_configs import compare_configs
from tidemark.debugger.issues import find_issues
from tidemark.debugger.live_tensors import owned_bytes
from tidemark.debugger.memory_debugger import MemoryDebugger
from tidemark.debugger.report_file import write_report
from tidemark.debugger.result import Result
from tidemark.debugger.training import Training

T = TypeVar("T")


class TrainingMemoryProfiler:
    """A training's stages with a ``MemoryDebugger`` (``debugger``); ``training_stages`` has a row for each stage."""

    def __init__(
        self,
        log_dir: str | os.PathLike[str] = "logs/training_memory_debug",
        enable_real_time: bool = True,
        lang: str | None = None,
    ) -> None:
        self.log_dir = Path(log_dir)
        self.lang = lang
        self.debugger = MemoryDebugger(log_dir, enable_real_time, lang)
        self.training = Training(lang)

    @property
    def training_stages(self) -> list[Result]:
        """``stage``, ``timestamp``, ``seconds``, ``ok`` and ``memory_comparison`` of each stage."""
        return self.training.stages

    def profile_stage(self, name: str, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Calls ``fn(*args, **kwargs)`` as a stage and returns its value."""
        self.debugger.logger.info("%s", say("Stage: {name}", self.lang, name=name))
        return self.training.stage(name, fn, *args, **kwargs)

    def detect_memory_issues(self) -> Result:
        """``memory_leaks``, ``excessive_usage``, ``abnormal_growth`` and ``fragmentation``, at stages' ends and checkpoints."""
        issues = self.debugger.detect_memory_issues()
        for kind, found in find_issues(self.training.samples).items():
            issues[kind] += found
        return issues

    def generate_training_report(self, output_file: str | os.PathLike[str] | None = None) -> str:
        """Prints and returns the stages, the loop's stages, checkpoints and issues as text; writes them to a file if one is
        given.

        A file with a name that ends in ``.json`` contains ``stages``, ``loop``, ``steps`` and ``issues``.
        """
        text = self.training.report() + "\n\n" + self.debugger.generate_memory_report()
        print(text)
        if output_file:
            write_report(output_file, text, {**self.training.to_dict(), "issues": self.detect_memory_issues()})
        return text

    def save(self) -> Path:
        """Writes the stages as JSON into ``log_dir``; returns the path."""
        path = self.log_dir / f"training_stages_{time.strftime('%Y%m%d_%H%M%S')}.json"
        self.training.save(path)
        return path


@contextmanager
def memory_profiled_training(
    log_dir: str | os.PathLike[str] = "logs/training_memory_debug", enable_real_time: bool = True, lang: str | None = None
) -> Iterator[TrainingMemoryProfiler]:
    """A context with ``profile_stage()`` and ``generate_training_report()``; at its end the stages are written as JSON."""
    profiler = TrainingMemoryProfiler(log_dir, enable_real_time, lang)
    try:
        with profiler.training:
            yield profiler
    finally:
        profiler.save()
        profiler.debugger.close()


def debug_lora_training(
    config: Mapping[str, Any] | None = None,
    dataloader: Iterable[Any] | None = None,
    precision: str = "fp16",
    pkg: str | None = None,
    version: str | None = None,
    knowledge_type: str | None = None,
    log_dir: str | os.PathLike[str] = "logs/lora_training_debug",
    train_fn: Callable[..., Any] | None = None,
    create_model: Callable[..., Any] | None = None,
    lang: str | None = None,
    **functions: Callable[..., Any],
) -> tuple[Any, Result]:
    """Creates a model and trains it under watch; returns the trained model and its memory use.

    ``create_model`` and ``train_fn`` (arguments or keys of ``config``; other names with "model" and "train" are accepted, too)
    are called with the arguments that they take by name: ``config``, ``dataloader``, ``precision``, ``model``, ``pkg``,
    ``version``, ``knowledge_type``. Without them the model is that of ``tidemark.debugger.lora_model`` and trained with AdamW;
    without a dataloader on random tokens.

    The results: ``creation_analysis`` and ``training_analysis``, each with the changes and ``summary.total_memory_mb``, the
    bytes held by the model at the stage's end (parameters, buffers, gradients; ``summary.by_category_mb`` splits them);
    ``memory_issues``; ``stages``; ``loop``. Exceptions of the program are passed on.
    """
    from tidemark.debugger.lora_model import lora_model
    from tidemark.debugger.lora_training import batches_of, call, functions_of, input_of, train_lora

    settings = dict(config or {})
    for name, value in functions.items():
        if not callable(value) or functions_of({name: value}) == (None, None):
            raise TypeError(f"debug_lora_training() got an unexpected argument {name!r}")
    named_train, named_create = functions_of({**settings, **functions})
    train, create = train_fn or named_train, create_model or named_create
    settings = {key: value for key, value in settings.items() if value is not train and value is not create}
    data = dataloader if dataloader is not None or train is not None else batches_of(settings)
    given = {"config": settings, "dataloader": data, "precision": precision}
    given.update(pkg=pkg, version=version, knowledge_type=knowledge_type)
    with memory_profiled_training(log_dir=log_dir, lang=lang) as profiler:
        model = None
        if create is not None:
            model = profiler.profile_stage("model_creation", call, create, **given)
        elif train is None:
            sample = input_of(next(iter(data))) if data is not None else None
            model = profiler.profile_stage("model_creation", lora_model, settings, precision, sample)
        created = None if model is None else owned_bytes(model)
        if train is not None:
            given = {"model": model, **given} if model is not None else given
            returned = profiler.profile_stage("training", call, train, **given)
        else:
            returned = profiler.profile_stage("training", train_lora, model, data, settings)
        trained = _model_in(returned) or model
        held = owned_bytes(trained) if trained is not None else {}
        # A training function that creates its own model has no separate stage for that: its parameters and buffers count.
        created = created or {name: size for name, size in held.items() if name in ("parameter", "buffer")}
        stages = {row["stage"]: row for row in profiler.training_stages}
        results = Result(
            creation_analysis=_analysis(stages.get("model_creation"), created),
            training_analysis=_analysis(stages["training"], held),
            memory_issues=profiler.detect_memory_issues(),
            stages=profiler.training_stages,
            loop=profiler.training.loop,
            steps=profiler.training.steps,
        )
        profiler.generate_training_report(Path(log_dir) / f"training_report_{time.strftime('%Y%m%d_%H%M%S')}.txt")
    return (trained if trained is not None else returned), results


def _analysis(stage: Result | None, held: Mapping[str, int]) -> Result:
    sizes = Result({name: to_mb(size) for name, size in held.items()})
    summary = Result(total_memory_mb=to_mb(sum(held.values())), by_category_mb=sizes)
    summary["seconds"] = None if stage is None else stage["seconds"]
    gpus = [] if stage is None else stage["gpu_memory"]
    summary["peak_memory_mb"] = sum(gpu["max_allocated_mb"] for gpu in gpus) if gpus else None
    return Result({} if stage is None else stage["memory_comparison"], summary=summary)


def _model_in(returned: Any) -> Any | None:
    """The model among the values returned by a training function."""
    values = returned if isinstance(returned, (list, tuple)) else [returned]
    return next((value for value in values if hasattr(value, "named_parameters")), None)


def debug_memory_with_different_configs(
    base_config: Mapping[str, Any], variations: Mapping[str, Mapping[str, Any]], fn: Callable[..., Any] | None = None
) -> Result:
    """Runs the base configuration with each variation in its own process; returns ``{name: {"memory_mb": …, …}}``.

    ``fn(config)`` is the function to run; without it the configuration's model is created and trained for two steps. See
    ``tidemark.compare_configs``.
    """
    from tidemark.debugger.lora_training import run_config

    chosen = {} if fn is None else {"train_fn": fn}
    configs = {name: {"config": {**base_config, **changes, **chosen}} for name, changes in variations.items()}
    results = compare_configs(run_config, configs)
    for name, changes in variations.items():
        results[name]["config"] = {**base_config, **changes}
    return results
