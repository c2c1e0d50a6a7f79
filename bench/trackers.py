"""PyTorch's own tools for memory by owner, used as in their documentation, or as near as possible."""

import torch


class NoHook:
    def remove(self):
        pass


def memory_tracker(model, optimizer):
    """A context: torch.distributed._tools.mem_tracker.MemTracker for existing tensors.

    It registers gradient hooks on frozen parameters too, which PyTorch refuses (2.11: "cannot register a hook on a tensor that
    doesn't require gradient"). To make LoRA comparable, frozen parameters count as having their hooks.
    """
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    for parameter in model.parameters():
        if not parameter.requires_grad:
            tracker._param_to_grad_hook_handles[parameter] = NoHook(), NoHook()
    return tracker


def memory_profiler():
    """A context: torch.profiler with the options for its memory timeline."""
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], profile_memory=True, record_shapes=True, with_stack=True)
