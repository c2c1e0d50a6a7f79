"""The largest batch of a loader: found without loading, and run without a trace."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from long_texts import Buckets, Texts, collate
from scripted_device import ScriptedDevice

import tidemark
from tidemark.step_guard import BatchShape
from tidemark.step_guard.longest_batch import longest_batches

torch = pytest.importorskip("torch")


def guard_of(model: Any = None, **options: Any) -> Any:
    return tidemark.StepGuard(model or torch.nn.Linear(2, 2), **options)


def largest(loader: Any, epochs: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """What the loader really yields: (epoch, number) of the largest batches."""
    seen = [(epoch, number, batch.shape) for epoch in range(epochs) for number, batch in enumerate(loader)]
    tokens = max(seen, key=lambda one: (one[2][0] * one[2][1], one[2][0] * one[2][1] ** 2, -one[0], -one[1]))
    squares = max(seen, key=lambda one: (one[2][0] * one[2][1] ** 2, one[2][0] * one[2][1], -one[0], -one[1]))
    return tokens[:2], squares[:2]


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_shuffled_loader(seeded: bool, workers: int) -> None:
    """With its own generator, or the default one; as it is iterated next."""
    texts = Texts()
    generator = torch.Generator().manual_seed(5) if seeded else None
    loader = torch.utils.data.DataLoader(
        texts, batch_size=8, shuffle=True, collate_fn=collate, generator=generator, num_workers=workers, drop_last=True
    )
    guard = guard_of()
    torch.manual_seed(9)
    before = torch.get_rng_state().clone()
    tokens, squares = guard.longest_batches(loader, epochs=1)
    assert texts.read == 0 and torch.equal(torch.get_rng_state(), before)
    assert ((tokens.epoch, tokens.number), (squares.epoch, squares.number)) == largest(loader, 1)
    assert tokens.compared == 25


def test_later_epochs_of_a_seeded_loader() -> None:
    texts = Texts()
    loader = torch.utils.data.DataLoader(
        texts, batch_size=8, shuffle=True, collate_fn=collate, generator=torch.Generator().manual_seed(5)
    )
    tokens, squares = guard_of().longest_batches(loader, epochs=4)
    assert tokens.compared == 100
    assert ((tokens.epoch, tokens.number), (squares.epoch, squares.number)) == largest(loader, 4)


def test_a_distributed_sampler() -> None:
    texts = Texts(known=False)
    sampler = torch.utils.data.DistributedSampler(texts, num_replicas=3, rank=1, seed=4)
    sampler.set_epoch(2)
    found = guard_of().longest_batches(texts, lengths=texts.sizes, sampler=sampler, batch_size=4, collate_fn=collate, epochs=3)
    assert (sampler.epoch, texts.read) == (2, 0)
    for longest in found:
        sampler.set_epoch(longest.epoch)
        loader = torch.utils.data.DataLoader(texts, sampler=sampler, batch_size=4, collate_fn=collate)
        assert torch.equal(list(loader)[longest.number], longest.load())
        assert longest.load().shape == longest.shape


def test_buckets() -> None:
    texts = Texts()
    loader = torch.utils.data.DataLoader(texts, batch_sampler=Buckets(texts.sizes, tokens=300), collate_fn=collate)
    tokens, squares = guard_of().longest_batches(loader)
    assert ((0, tokens.number), (0, squares.number)) == largest(loader, 1)
    assert squares.shape.length > tokens.shape.length, "buckets have as many tokens; long ones have more scores"


def test_lengths_that_have_to_be_read() -> None:
    texts = Texts(known=False)
    random.seed(3)
    state = random.getstate()
    tokens, _ = guard_of().longest_batches(texts, batch_size=5, collate_fn=collate, epochs=2)
    assert texts.read == len(texts), "each once"
    assert random.getstate() == state
    assert tokens.shape == (5, max(texts.sizes))
    again, _ = guard_of().longest_batches(texts, lengths=len, batch_size=5, collate_fn=collate)
    assert again.indexes == tokens.indexes

    class Columns(Texts):
        column_names = ("text", "length")

        def __getitem__(self, index: Any) -> Any:
            return self.sizes if index == "length" else super().__getitem__(index)

    columns = Columns(known=False)
    assert guard_of().longest_batches(columns, batch_size=5)[0].indexes == tokens.indexes
    assert columns.read == 0


def test_loaders_without_an_order_of_indexes() -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter(())

    texts = Texts()
    for loader in (torch.utils.data.DataLoader(Stream()), torch.utils.data.DataLoader(texts, batch_size=None)):
        with pytest.raises(tidemark.TidemarkError, match="batches of indexes"):
            guard_of().longest_batches(loader)
    with pytest.raises(ValueError, match="batch_size: only for a data set"):
        guard_of().longest_batches(torch.utils.data.DataLoader(texts), batch_size=3)
    with pytest.raises(ValueError, match="has no batches"):
        guard_of().longest_batches(texts, batch_size=300, drop_last=True)
    with pytest.raises(ValueError, match="1 for 200 samples"):
        guard_of().longest_batches(texts, lengths=[3])
    with pytest.raises(ValueError, match="epochs"):
        guard_of().longest_batches(texts, epochs=0)


class Normalized(torch.nn.Module):  # type: ignore[misc]
    """With running statistics, dropout, and a buffer that the forward pass replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.dropout = torch.nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, tokens: Any) -> Any:
        self.calls = self.calls + 1
        return self.dropout(self.norm(self.embedding(tokens).flatten(0, 1)))


def test_preflight_leaves_everything_as_it_was() -> None:
    torch.manual_seed(1)
    texts = Texts()
    model = Normalized().eval()
    model(torch.zeros(4, 3, dtype=torch.long))
    model.embedding.weight.grad = torch.full_like(model.embedding.weight, 2.0)
    gradient, calls = model.embedding.weight.grad, model.calls
    state = copy.deepcopy(model.state_dict())
    random_states = torch.get_rng_state().clone(), random.getstate()
    memory = ScriptedDevice(10**6)
    guard = guard_of(model, memory=memory)
    seen = []

    def step(batch: Any, weight: float) -> None:
        assert model.training and model.embedding.weight.grad is None
        seen.append((tuple(batch.shape), weight))
        memory.taken = 100 * batch.numel()
        (model(batch).square().mean() * weight).backward()

    found = guard.preflight(step, texts, batch_size=8, shuffle=True, collate_fn=collate)
    assert (found.parts, found.rank) == (1, 0)
    assert seen == [(tuple(one.shape), 1.0) for one in found.tried]
    assert [one.needed_bytes for one in found.tried] == [100 * one.shape.tokens for one in found.tried]
    assert found.tried[0].shape.length == max(texts.sizes)
    assert guard.law.predict(found.tried[0].shape).bound_bytes == found.tried[0].needed_bytes
    assert not model.training and not model.norm.training
    assert model.embedding.weight.grad is gradient and torch.equal(gradient, torch.full_like(gradient, 2.0))
    assert model.norm.weight.grad is None and model.calls is calls
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert torch.equal(torch.get_rng_state(), random_states[0]) and random.getstate() == random_states[1]


@pytest.mark.parametrize(("largest_part", "parts"), [(8, 1), (3, 4), (1, 8), (0, None)])
def test_preflight_of_a_batch_that_does_not_fit(largest_part: int, parts: int | None) -> None:
    texts = Texts()
    guard = guard_of(Normalized())
    tried = []

    def step(batch: Any, weight: float) -> None:
        tried.append(len(batch))
        if len(batch) > largest_part:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    found = guard.preflight(step, texts, batch_size=8, collate_fn=collate)
    assert found.parts == parts and found.tried[0].parts == parts
    assert found.tried[0].needed_bytes is None, "not known on the CPU"
    assert max(tried) == 8

    def wrong(batch: Any, weight: float) -> None:
        raise KeyError("labels")

    with pytest.raises(KeyError, match="labels"):
        guard.preflight(wrong, texts, batch_size=8, collate_fn=collate)


def test_shapes_print_well() -> None:
    assert str(BatchShape(8, 512)) == "BatchShape(samples=8, length=512)"


def test_a_limit_of_the_time_for_reading() -> None:
    texts = Texts(known=False)
    loader = torch.utils.data.DataLoader(texts, batch_size=8, shuffle=True, collate_fn=collate)
    before = torch.get_rng_state().clone()
    tokens, _ = longest_batches(loader, None, 2, seconds=0.0)
    assert (tokens.compared, texts.read) == (1, 8)
    assert torch.equal(torch.get_rng_state(), before)
