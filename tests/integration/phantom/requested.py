"""The requests for memory that PyTorch's allocator gets during a call."""

import torch


def requests_of(call):
    """Their sizes in bytes, in order."""
    memory = torch.cuda.memory
    memory._record_memory_history(context=None)
    call()
    (events,) = (trace for trace in memory._snapshot()["device_traces"] if trace)
    memory._record_memory_history(None)
    return [event["size"] for event in events if event["action"] == "alloc"]
