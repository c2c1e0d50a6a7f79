#!/usr/bin/env python3
"""Measures the workspaces that cuDNN takes for convolutions, for the phantom GPU (src/phantom/libraries/cudnn_*.inc).

    scripts/measure_convolutions.py OUTPUT [SECONDS [PART]]   on a GPU, with PyTorch 2.1 or newer and torchvision
    scripts/measure_convolutions.py --merge TABLE PARTS...    adds the results of the PARTS to a table

Runs every convolution of torchvision's networks by itself, for several batch sizes, data types, layouts and sizes of images, and
writes the requests to PyTorch's allocator besides the results. Stops after SECONDS (600). A PART is a letter (PARTS below), so
that several processes can measure at once.
"""

import sys
import time
from pathlib import Path

import torch
import torchvision

FIRST = (
    "resnet18 resnet50 vgg16 mobilenet_v3_large efficientnet_b0 convnext_tiny densenet121 vit_b_16 regnet_y_400mf "
    "squeezenet1_0 googlenet shufflenet_v2_x1_0"
).split()
MORE = (
    "resnet34 resnet101 vgg11 vgg19 mobilenet_v2 mobilenet_v3_small resnext50_32x4d wide_resnet50_2 efficientnet_b1 "
    "efficientnet_b2 efficientnet_v2_s convnext_small convnext_base densenet169 regnet_y_800mf regnet_x_400mf regnet_y_1_6gf "
    "regnet_y_3_2gf mnasnet1_0 alexnet vit_l_16 vit_b_32 swin_t efficientnet_b3 densenet201 resnet152 shufflenet_v2_x0_5"
).split()
COMMON, ODD = (32, 8, 16, 64, 96, 128, 4), (1, 2, 48, 24, 12, 256)
FLOAT, BFLOAT16, HALF = torch.float, torch.bfloat16, torch.half
ROWS, LAST = torch.contiguous_format, torch.channels_last
# Networks, batch sizes, height of the images, data type and layout.
PARTS = {
    "a": [(MORE, COMMON, 224, FLOAT, ROWS), (FIRST + MORE, ODD, 224, FLOAT, ROWS)],
    "b": [(FIRST + MORE, (*COMMON, 1), 224, BFLOAT16, ROWS)],
    "c": [(FIRST, (*COMMON, 1), 224, BFLOAT16, LAST), (MORE, COMMON[:-1], 224, BFLOAT16, LAST)],
    "d": [
        (FIRST, COMMON[:-1], 224, FLOAT, LAST),
        *((FIRST, COMMON[:-2], 224, HALF, layout) for layout in (ROWS, LAST)),
    ],
    "e": [
        (FIRST, COMMON, 224, FLOAT, ROWS),
        (FIRST, (32, 64, 128, 16, 8), 128, FLOAT, ROWS),
        (FIRST, (16, 8, 32, 4), 256, FLOAT, ROWS),
        *((FIRST, (128, 64, 32, 256), size, FLOAT, ROWS) for size in (32, 64)),
        *((FIRST, (32, 16, 8, 64), size, FLOAT, ROWS) for size in (160, 192)),
    ],
}


def network(name, size):
    options = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
    options |= {"image_size": size} if name.startswith("vit") else {}
    return getattr(torchvision.models, name)(weights=None, **options).to("meta").train()


def layers(networks, batches, size):
    """The networks' convolutions, each once: shape of the input and the module's arguments."""
    found = {}

    def note(module, inputs, _):
        shape = tuple(inputs[0].shape)
        sizes = (module.kernel_size, module.stride, module.padding, module.dilation)
        found[(shape, module.out_channels, *sizes, module.groups)] = None

    for model in (network(name, size) for name in networks):
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                module.register_forward_hook(note)
        for batch in batches:
            try:
                model(torch.empty(batch, 3, size, size, device="meta"))
            except (RuntimeError, ValueError, AssertionError):
                break  # images of this size are too small
    return list(found)


def allocated(work):
    """The result of `work`, and the sizes that it requested from the allocator; negative: freed."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=10_000, context=None)
    result = work()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    sign = {"alloc": 1, "free_requested": -1}
    return result, [sign[event["action"]] * event["size"] for event in trace if event["action"] in sign]


def workspace_after(sizes, result):
    """Removes a result and the temporary workspace after it from the front; None if something else was allocated."""
    if not sizes or sizes.pop(0) != result:
        return None
    if len(sizes) > 1 and sizes[0] == -sizes[1]:
        workspace = sizes[0]
        del sizes[:2]
        return workspace
    return 0


def measure(layer, dtype, memory_format):
    """Bytes of the workspaces: forward, backward data, backward filter. None if cuDNN was not used."""
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
    names = {FLOAT: "float", BFLOAT16: "bfloat16", HALF: "half"}
    layout = "nhwc" if memory_format is LAST else "nchw"
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


def measure_part(part, end, table):
    for networks, batches, size, dtype, memory_format in PARTS[part]:
        for layer in layers(networks, batches, size):
            if time.monotonic() > end:
                return
            measured = table.setdefault(key(layer, dtype, memory_format), {})
            if layer[0][0] not in measured and (workspaces := measure(layer, dtype, memory_format)) is not None:
                measured[layer[0][0]] = workspaces
            if torch.cuda.memory_reserved() > 10 << 30:
                torch.cuda.empty_cache()


def read(path, table):
    """Adds the lines of a table; its header."""
    head = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(("R", "#")):
            head.append(line)
        elif "  " in line:
            name, measured = line.split("  ", 1)
            for entry in measured.split(" "):
                batch, workspaces = entry.split(":")
                table.setdefault(name, {})[int(batch)] = [int(value) for value in workspaces.split(",")]
    return "\n".join(head) + "\n"


def main():
    table = {}
    if sys.argv[1] == "--merge":
        output = sys.argv[2]
        head = read(output, table)
        for part in sys.argv[3:]:
            read(part, table)
    else:
        output = sys.argv[1]
        end = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 600)
        for part in sys.argv[3] if len(sys.argv) > 3 else PARTS:
            measure_part(part, end, table)
        head = f'R"tidemark({header()}'
    with open(output, "w", encoding="utf-8") as file:
        file.write(head)
        for name, measured in sorted(entry for entry in table.items() if entry[1]):
            texts = (f"{batch}:{','.join(map(str, workspaces))}" for batch, workspaces in sorted(measured.items()))
            file.write(f"{name}  {' '.join(texts)}\n")
        file.write(')tidemark"\n')
    print(f"{sum(map(len, table.values()))} convolutions")


if __name__ == "__main__":
    main()
