"""PyTorch's own tools that say whose memory it is, as their documentation uses them."""

import torch


def memory_tracker(model, optimizer):
    """A context: torch.distributed._tools.mem_tracker.MemTracker of what is there already."""
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    return tracker


def memory_profiler():
    """A context: torch.profiler with what its memory timeline needs."""
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], profile_memory=True, record_shapes=True, with_stack=True)
