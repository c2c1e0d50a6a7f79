#!/usr/bin/env python3
"""Measures the workspaces that cuDNN takes for convolutions, for the phantom GPU (src/phantom/libraries/cudnn_*.inc).

    scripts/measure_convolutions.py OUTPUT [SECONDS]      on a GPU, with PyTorch 2.1 or newer and torchvision

Runs every convolution of torchvision's networks by itself, for several batch sizes, data types and layouts, and writes what
PyTorch's allocator was asked for besides the results. Stops after SECONDS (600).
"""

import sys
import time

import torch
import torchvision

NETWORKS = (
    "resnet18 resnet50 vgg16 mobilenet_v3_large efficientnet_b0 convnext_tiny densenet121 vit_b_16 regnet_y_400mf "
    "squeezenet1_0 googlenet shufflenet_v2_x1_0"
).split()
BATCHES = (8, 32, 96, 16, 64, 4, 128)
KINDS = (
    (torch.float, torch.contiguous_format),
    (torch.bfloat16, torch.contiguous_format),
    (torch.bfloat16, torch.channels_last),
)


def network(name):
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    return getattr(torchvision.models, name)(weights=None, **options).to("meta").train()


def layers():
    """The networks' convolutions, each once: shape of the input and the module's arguments."""
    found = {}

    def note(module, inputs, _):
        shape = tuple(inputs[0].shape)
        sizes = (module.kernel_size, module.stride, module.padding, module.dilation)
        found[(shape, module.out_channels, *sizes, module.groups)] = None

    models = [network(name) for name in NETWORKS]
    for module in (module for model in models for module in model.modules()):
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(note)
    for batch in BATCHES:
        for model in models:
            model(torch.empty(batch, 3, 224, 224, device="meta"))
    return list(found)


def allocated(work):
    """What `work` returned, and the sizes that it asked the allocator for; negative: freed."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=10_000, context=None)
    result = work()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    sign = {"alloc": 1, "free_requested": -1}
    return result, [sign[event["action"]] * event["size"] for event in trace if event["action"] in sign]


def workspace_after(sizes, result):
    """Takes a result and the workspace that came and went after it off the front; None when something else was allocated."""
    if not sizes or sizes.pop(0) != result:
        return None
    if len(sizes) > 1 and sizes[0] == -sizes[1]:
        workspace = sizes[0]
        del sizes[:2]
        return workspace
    return 0


def measure(layer, dtype, memory_format):
    """Bytes of the workspaces: forward, backward data, backward filter. None when cuDNN was not asked."""
    shape, outputs, kernel, stride, padding, dilation, groups = layer
    x = torch.empty(shape, device="cuda", dtype=dtype).to(memory_format=memory_format).requires_grad_()
    w = torch.empty(outputs, shape[1] // groups, *kernel, device="cuda", dtype=dtype)
    w = w.to(memory_format=memory_format).requires_grad_()
    y, sizes = allocated(lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, dilation, groups))
    gradient = torch.ones_like(y)
    _, backward = allocated(lambda: y.backward(gradient))
    workspaces = [workspace_after(sizes, y.nbytes), workspace_after(backward, x.nbytes), workspace_after(backward, w.nbytes)]
    return None if None in workspaces or sizes or backward else workspaces


def key(layer, dtype, memory_format):
    shape, outputs, kernel, stride, padding, dilation, groups = layer
    names = {torch.float: "float", torch.bfloat16: "bfloat16"}
    layout = "nhwc" if memory_format is torch.channels_last else "nchw"
    numbers = (*shape[1:], outputs, *kernel, *stride, *padding, *dilation, groups)
    return " ".join([names[dtype], layout, *map(str, numbers)])


HEADER = """\
# Bytes of the workspaces that cuDNN {cudnn} takes for convolutions on an {device} (compute capability {capability}): what
# PyTorch {torch} allocated for each with its default settings (scripts/measure_convolutions.py). A line for each layer: its
# key (layer_key in convolution.h), two spaces, and for each batch size `batch:forward,backward data,backward filter`.
"""


def header():
    number = torch.backends.cudnn.version()
    return HEADER.format(
        cudnn=f"{number // 10000}.{number // 100 % 100}",
        device=torch.cuda.get_device_name(),
        capability=".".join(map(str, torch.cuda.get_device_capability())),
        torch=torch.__version__.split("+")[0],
    )


def main():
    end = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 600)
    table = {}
    found = layers()
    for dtype, memory_format in KINDS:
        for layer in found:
            if time.monotonic() > end:
                break
            workspaces = measure(layer, dtype, memory_format)
            if workspaces is not None:
                table.setdefault(key(layer, dtype, memory_format), {})[layer[0][0]] = workspaces
    with open(sys.argv[1], "w", encoding="utf-8") as output:
        output.write(f'R"tidemark({header()}')
        for line, batches in sorted(table.items()):
            texts = (f"{batch}:{','.join(map(str, workspaces))}" for batch, workspaces in sorted(batches.items()))
            output.write(f"{line}  {' '.join(texts)}\n")
        output.write(')tidemark"\n')
    print(f"{sum(map(len, table.values()))} convolutions")


if __name__ == "__main__":
    main()
