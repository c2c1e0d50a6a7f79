"""Trains the result of ``lora_model``, or a similar model: the default training of ``debug_lora_training``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

import torch
from torch import Tensor, nn

from tidemark.debugger.lora_model import lora_model, setting

_ALIASES = {
    "cfg": "config",
    "conf": "config",
    "data": "dataloader",
    "loader": "dataloader",
    "train_loader": "dataloader",
    "data_loader": "dataloader",
    "train_dataloader": "dataloader",
    "net": "model",
}


def call(fn: Callable[..., Any], **given: Any) -> Any:
    """Calls a program's function with the arguments that it takes by name (config, dataloader, model, …), the rest in that
    order.
    """
    rest = [value for name, value in given.items() if value is not None]
    by_name: dict[str, Any] = {}
    positional: list[Any] = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        wanted = _ALIASES.get(parameter.name, parameter.name)
        if wanted in given:
            value = given[wanted]
            rest = [each for each in rest if each is not value]
        elif parameter.default is parameter.empty and rest:
            value = rest.pop(0)
        else:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            by_name[parameter.name] = value
    return fn(*positional, **by_name)


def functions_of(settings: Mapping[str, Any]) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
    """The functions among settings that train and that create a model, by their names: ``train_fn``, ``create_model``, …"""
    found = {name: value for name, value in settings.items() if callable(value) and not isinstance(value, (type, nn.Module))}
    train = next((value for name, value in found.items() if "train" in name), None)
    create = next((value for name, value in found.items() if "model" in name and "train" not in name), None)
    return train, create


def batches_of(config: Mapping[str, Any]) -> list[Tensor]:
    """Four batches of random token ids of the configuration's sizes, for trainings without data."""
    size = (int(setting(config, "batch_size", 4)), int(setting(config, "seq_length", 64)))
    return [torch.randint(int(setting(config, "vocab_size", 1000)), size) for _ in range(4)]


def input_of(batch: Any) -> Any:
    """The model's input in a batch: a tensor, the first of a tuple, or ``input_ids``."""
    if isinstance(batch, Mapping):
        return batch.get("input_ids", next(iter(batch.values()), None))
    return batch[0] if isinstance(batch, (list, tuple)) else batch


def train_lora(model: nn.Module, dataloader: Iterable[Any], config: Mapping[str, Any]) -> nn.Module:
    """Trains the parameters that are not frozen with AdamW: ``num_epochs`` of the data, at most ``max_steps``."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise ValueError("the model has no parameter to train: every one is frozen")
    optimizer = torch.optim.AdamW(trained, lr=float(setting(config, "learning_rate", 1e-4)))
    device = trained[0].device
    most = setting(config, "max_steps", None)
    for step, batch in enumerate(_epochs(dataloader, int(setting(config, "num_epochs", 1)))):
        if most is not None and step >= int(most):
            break
        loss = loss_of(model, _moved(batch, device))
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return model


def loss_of(model: nn.Module, batch: Any) -> Tensor:
    """The model's loss for a batch: its own if it returns one, else computed with the batch's target.

    A batch is a tensor, ``(input, target)`` or a mapping (``input_ids``, ``labels``). Raises TypeError if neither is possible.
    """
    x = input_of(batch)
    target = batch.get("labels") if isinstance(batch, Mapping) else None
    if isinstance(batch, (list, tuple)) and len(batch) > 1:
        target = batch[1]
    inputs: dict[str, Any] = {"labels": x, **batch} if isinstance(batch, Mapping) else {}
    output = model(**inputs) if inputs and hasattr(model, "config") else model(x)  # transformers' models take keywords
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if own is not None:
        return own
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor):
        raise TypeError(f"a model that returns {type(output).__name__} has no loss that is known: give train_fn")
    logits = logits.float()
    if target is None and not x.is_floating_point():
        logits, target = logits[:, :-1], x[:, 1:]  # the next token
    if target is None:
        return logits.pow(2).mean()
    if not target.is_floating_point():
        if target.dim() < logits.dim() - 1:
            logits = logits.mean(dim=tuple(range(target.dim(), logits.dim() - 1)))
        return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1).long())
    if target.shape != logits.shape:
        logits = logits.flatten(1).mean(dim=1).reshape(-1, *[1] * (target.dim() - 1)).expand(target.shape)
    return nn.functional.mse_loss(logits, target.float())


def run_config(config: dict[str, Any]) -> None:
    """One configuration of ``debug_memory_with_different_configs``: its model and two steps of training, or its ``fn``."""
    train, create = functions_of(config)
    settings = {key: value for key, value in config.items() if value is not train}
    if train is not None:
        call(train, config=settings)
        return
    model = call(create, config=config) if create else lora_model(config, str(config.get("precision", "fp32")))
    if isinstance(model, nn.Module) and any(parameter.requires_grad for parameter in model.parameters()) and not create:
        train_lora(model, batches_of(config), {"max_steps": 2, **config})


def _epochs(dataloader: Iterable[Any], count: int) -> Iterator[Any]:
    for _ in range(count):
        yield from dataloader


def _moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: _moved(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [_moved(value, device) for value in batch]
    return batch
