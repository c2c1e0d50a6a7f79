"""LoRA adapters for any model's linear layers, and a transformer with given sizes for configurations without a model."""

from __future__ import annotations

import copy
import fnmatch
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
#: Alternative names of the settings.
_NAMES = {
    "r": ("r", "lora_r", "rank", "lora_rank"),
    "alpha": ("alpha", "lora_alpha"),
    "hidden_size": ("hidden_size", "d_model", "hidden_dim", "dim"),
    "num_layers": ("num_layers", "num_hidden_layers", "n_layers"),
    "num_heads": ("num_heads", "num_attention_heads", "n_heads"),
    "intermediate_size": ("intermediate_size", "ffn_dim"),
    "vocab_size": ("vocab_size",),
    "learning_rate": ("learning_rate", "lr"),
    "num_epochs": ("num_epochs", "epochs", "num_train_epochs"),
    "batch_size": ("batch_size",),
    "seq_length": ("seq_length", "seq_len", "max_length", "max_seq_length"),
    "max_steps": ("max_steps", "num_steps"),
}


def setting(config: Mapping[str, Any], name: str, default: Any) -> Any:
    """A setting under any of its names."""
    return next((config[key] for key in _NAMES[name] if config.get(key) is not None), default)


def dtype_of(precision: str) -> torch.dtype:
    """fp16, bf16 or fp32 (or PyTorch's names of them); ValueError for others."""
    short = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32"}
    try:
        return _DTYPES[short.get(precision.lower(), precision.lower())]
    except KeyError:
        raise ValueError(f"precision={precision!r}: fp16, bf16 or fp32 is needed") from None


class LoraLinear(nn.Module):
    """A frozen linear layer and a trained low-rank update: ``base(x) + alpha / r * x A^T B^T``."""

    def __init__(self, base: nn.Linear, r: int, alpha: float) -> None:
        super().__init__()
        self.base = base
        self.scaling = alpha / r
        where = base.weight.device
        # The update stays in float32: in half precision small steps of the optimizer would be lost.
        self.lora_A = nn.Parameter(torch.randn(r, base.in_features, device=where) / base.in_features**0.5)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r, device=where))

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output, in the frozen layer's type."""
        own: Tensor = self.base(x.to(self.base.weight.dtype))
        update = x.to(self.lora_A.dtype) @ self.lora_A.T @ self.lora_B.T
        return own + (self.scaling * update).to(own.dtype)


def add_lora(model: nn.Module, r: int, alpha: float, targets: list[str] | None = None) -> nn.Module:
    """Freezes the model and adds adapters to linear layers whose names match ``targets``, or to all but the head."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    linear = [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    for name, module in linear:
        last = name.rpartition(".")[2]
        wanted = any(fnmatch.fnmatch(last, each) for each in targets) if targets else last not in ("head", "lm_head")
        if wanted:
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, last, LoraLinear(module, r, alpha))
    return model


class _Block(nn.Module):
    def __init__(self, hidden: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(hidden, hidden) for _ in range(4))
        self.up_proj, self.down_proj = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Tensor) -> Tensor:
        def split(each: Tensor) -> Tensor:
            return each.reshape(*each.shape[:2], self.heads, -1).transpose(1, 2)

        seen = self.norm1(x)
        q, k, v = split(self.q_proj(seen)), split(self.k_proj(seen)), split(self.v_proj(seen))
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(attended.transpose(1, 2).flatten(2))
        inner: Tensor = self.down_proj(nn.functional.gelu(self.up_proj(self.norm2(x))))
        return x + inner


class Transformer(nn.Module):
    """A decoder of the configuration's sizes, for token ids ``(batch, length)`` or features ``(batch, [length,] size)``."""

    def __init__(self, config: Mapping[str, Any], input_size: int | None = None) -> None:
        super().__init__()
        hidden, vocabulary = int(setting(config, "hidden_size", 256)), int(setting(config, "vocab_size", 1000))
        heads = int(setting(config, "num_heads", 4))
        inner = int(setting(config, "intermediate_size", 4 * hidden))
        if hidden % heads:
            raise ValueError(f"hidden_size={hidden} cannot be split into num_heads={heads}")
        self.embed = nn.Embedding(vocabulary, hidden) if input_size is None else nn.Linear(input_size, hidden)
        self.layers = nn.ModuleList(_Block(hidden, heads, inner) for _ in range(int(setting(config, "num_layers", 2))))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``(batch, length, vocabulary)``."""
        if x.is_floating_point() and x.dim() == 2:
            x = x.unsqueeze(1)
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def lora_model(config: Mapping[str, Any], precision: str = "fp32", sample: Any | None = None) -> nn.Module:
    """The model of a configuration with LoRA adapters, on the GPU if there is one.

    ``config["model"]`` is a module (which is copied) or an argument for transformers: a folder, or a name if no sizes are
    given. Otherwise a transformer of the configuration's sizes is made. ``r`` and ``alpha`` are the adapters';
    ``target_modules`` names the layers that get them. ``sample`` is the input of a batch: a transformer for features needs
    their number.
    """
    named = next(
        (config[key] for key in ("model", "base_model", "model_name", "model_path") if config.get(key) is not None), None
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sized = setting(config, "hidden_size", None) is not None
    model: Any
    if isinstance(named, nn.Module):
        model = copy.deepcopy(named)
    elif isinstance(named, str) and (Path(named).exists() or not sized):
        transformers: Any = importlib.import_module("transformers")  # Any: type checkers would read all of its models
        model = transformers.AutoModelForCausalLM.from_pretrained(named)
    else:
        features = int(sample.shape[-1]) if isinstance(sample, Tensor) and sample.is_floating_point() else None
        model = Transformer(config, features)
    model = model.to(device=device, dtype=dtype_of(precision))
    if any("lora_" in name for name, _ in model.named_parameters()):
        has_adapters: nn.Module = model
        return has_adapters
    r = int(setting(config, "r", 8))
    adapted = add_lora(model, r, float(setting(config, "alpha", 2 * r)), config.get("target_modules"))
    return adapted.to(device)
