"""Chinese for the messages of the package: English template -> Chinese template, with the same fields in braces."""

from __future__ import annotations

CHINESE: dict[str, str] = {
    # events: the event profiler
    "GPU memory profiler started": "GPU内存分析器初始化",
    "GPU memory profiler closed": "GPU内存分析器清理完成",
    "Log file: {path}": "日志文件: {path}",
    "CUDA available: {yes}": "CUDA可用: {yes}",
    "Number of GPUs: {count}": "GPU数量: {count}",
    "Event: {name} | Allocated: {allocated} | Reserved: {reserved} | Max allocated: {max_allocated} | "
    "Max reserved: {max_reserved} | Elapsed: {seconds:.2f}s": "事件: {name} | 分配: {allocated} | 保留: {reserved} | "
    "最大分配: {max_allocated} | 最大保留: {max_reserved} | 耗时: {seconds:.2f}s",
    " | Info: {info}": " | 额外信息: {info}",
    "Memory summary": "内存使用摘要报告",
    "No events were recorded.": "没有记录任何事件。",
    "{events} events of {names} kinds in {seconds:.2f} s": "{events} 个事件，{names} 种，历时 {seconds:.2f} 秒",
    "CPU mode: PyTorch counts no memory of the CPU, so events have times only.": "CPU模式: PyTorch不统计CPU内存，"
    "事件只有时间。",
    "Peak at an event: {name}, allocated {allocated}, reserved {reserved}": "事件中的峰值: {name}，"
    "分配 {allocated}，保留 {reserved}",
    "Peak between events: {allocated} allocated": "事件之间的峰值: 分配 {allocated}",
    "Growth: {first} to {last}, {growth}": "内存增长: {first} 到 {last}，{growth}",
    "Events:": "事件统计:",
    "  {name} {count}x, allocated {allocated}, reserved {reserved} on average": "  {name} {count} 次，"
    "平均分配 {allocated}，平均保留 {reserved}",
    "Tensors at {name}:": "张量信息 - {name}:",
    "Model at {name}:": "模型信息 - {name}:",
    "total parameters": "总参数",
    "trainable parameters": "可训练参数",
    "Events written to {path}": "内存数据已保存到: {path}",
    # models: analyze_model, check_tensors, gradients
    "parameters": "参数",
    "all parameters": "全部参数",
    "trainable": "可训练",
    "buffers": "缓冲区",
    "gradients": "梯度",
    "only on the meta device": "仅在 meta 设备上",
    "on all ranks": "所有进程合计",
    "By layer": "按层",
    "By dtype": "按数据类型",
    "By device": "按设备",
    "By shape": "按形状",
    "Shared (counted once)": "共享（只计一次）",
    "Quantized and sharded": "量化与分片",
    "adapters of {count} modules": "{count} 个模块的适配器",
    "rank {rank}": "秩 {rank}",
    "base model": "基础模型",
    "Oversized parameters ({limit:g} MB or more)": "过大的参数（{limit:g} MB 及以上）",
    "Worth a look": "值得注意",
    "(the model itself)": "（模型本身）",
    "{first} to {last}, {mb:.1f} MB each": "{first} 至 {last}，每个 {mb:.1f} MB",
    "{count} more": "另有 {count} 项",
    "{count} more of this kind ({kind})": "同类问题另有 {count} 个（{kind}）",
    "oversized parameter {name}: {mb:.1f} MB ({shape}, {dtype}), the threshold is {limit:g} MB": (
        "参数过大 {name}：{mb:.1f} MB（{shape}，{dtype}），阈值为 {limit:g} MB"
    ),
    "{model} contains {word}: {name} ({count:,} of {elements:,} values, {mb:.1f} MB, {dtype}, {device})": (
        "{model} 含 {word}：{name}（{elements:,} 个值中的 {count:,} 个，{mb:.1f} MB，{dtype}，{device}）"
    ),
    "could not read {name}: {reason}; it is in no total": "无法读取 {name}：{reason}；未计入任何合计",
    "the adapter of {name} has {adapter:,} parameters (rank {rank}), the weight that it adapts {base:,}": (
        "{name} 的适配器有 {adapter:,} 个参数（秩 {rank}），而被适配的权重只有 {base:,} 个"
    ),
    "{count:,} parameters beside the LoRA adapters are trainable: each has a gradient and optimizer state": (
        "LoRA 适配器之外还有 {count:,} 个可训练参数：每个都需要梯度和优化器状态"
    ),
    "model {name}: {mb:.1f} MB, {total:,} parameters, {trainable:,} of them trainable ({share})": (
        "模型 {name}：{mb:.1f} MB，{total:,} 个参数，其中 {trainable:,} 个可训练（{share}）"
    ),
    "quantized ({label})": "已量化（{label}）",
    "sparse ({layout})": "稀疏（{layout}）",
    "held in {count} tensors": "由 {count} 个张量组成",
    "on the meta device: no values": "在 meta 设备上：没有数值",
    "its memory has been given back": "其内存已被释放",
    "dtype {dtype}": "数据类型 {dtype}",
    "{word} in {name}: {count:,} of {elements:,} values ({mb:.1f} MB, {dtype}, {device})": (
        "{name} 含 {word}：{elements:,} 个数值中有 {count:,} 个（{mb:.1f} MB，{dtype}，{device}）"
    ),
    "{count} tensors checked ({mb:.1f} MB), {bad} of them not finite": (
        "已检查 {count} 个张量（{mb:.1f} MB），其中 {bad} 个含非有限值"
    ),
    "largest magnitude": "最大绝对值",
    "least": "最小值",
    "most": "最大值",
    "{count} skipped": "跳过 {count} 个",
    "Gradients of {count} layers at step {step}": "第 {step} 步 {count} 个层的梯度",
    "norm": "范数",
    "median": "中位数",
    "verdict": "结论",
    "since the start": "自开始以来",
    "healthy": "正常",
    "missing": "缺失",
    "zero": "为零",
    "vanishing": "消失",
    "exploding": "爆炸",
    "inf": "无穷",
    "gradient of {name} has NaN at step {step} ({mb:.1f} MB)": "第 {step} 步 {name} 的梯度含 NaN（{mb:.1f} MB）",
    "gradient of {name} has infinite values at step {step} ({mb:.1f} MB)": "第 {step} 步 {name} 的梯度含无穷值（{mb:.1f} MB）",
    "gradient of {name} explodes at step {step}: norm {norm:.3g} ({mb:.1f} MB)": (
        "第 {step} 步 {name} 的梯度爆炸：范数 {norm:.3g}（{mb:.1f} MB）"
    ),
    "gradient of {name} vanishes at step {step}: norm {norm:.3g} ({mb:.1f} MB)": (
        "第 {step} 步 {name} 的梯度消失：范数 {norm:.3g}（{mb:.1f} MB）"
    ),
    "gradient of {name} stays zero, step {step} ({mb:.1f} MB)": "{name} 的梯度一直为零，第 {step} 步（{mb:.1f} MB）",
    "{name} is trainable and gets no gradient, step {step} ({mb:.1f} MB)": (
        "{name} 可训练但没有梯度，第 {step} 步（{mb:.1f} MB）"
    ),
    # tidemark._holders
    "No live Python object has this storage: it was freed, or native code alone holds it": (
        "没有存活的 Python 对象拥有此存储：它已被释放，或仅由原生代码持有"
    ),
    "{bytes} on {device} at 0x{address:x}, owned by {count}": "{bytes}，位于 {device} 的 0x{address:x}，有 {count} 个所有者",
    "parameter": "参数",
    "tensor": "张量",
    "view": "视图",
    "gradient": "梯度",
    "saved tensor": "反向传播保存的张量",
    "numpy array": "NumPy 数组",
    "storage": "存储对象",
    "reference cycle, freed by the garbage collector only": "循环引用，只有垃圾回收器才能释放",
    "held by native code, or a temporary of a running function": "由原生代码或正在运行的函数的临时值持有",
    "{count} of {all} live storages, {bytes} of {total}": "{all} 个存活存储中的 {count} 个，共 {total} 中的 {bytes}",
    "This PyTorch cannot show the tensors that autograd graphs keep without running hooks: they are not listed": (
        "此版本的 PyTorch 不运行钩子就无法显示自动求导图保存的张量，因此未列出"
    ),
    "{count} saved tensors are packed by hooks (activation checkpointing, offloading), which are not run: not listed": (
        "{count} 个保存的张量由钩子打包（激活检查点、卸载），钩子未运行，因此未列出"
    ),
    "Autograd graphs have more than {count} nodes: the rest of them was not looked at": (
        "自动求导图的节点超过 {count} 个，其余未检查"
    ),
    "gc.freeze() hides {count} objects: chains through them are not found": (
        "gc.freeze() 隐藏了 {count} 个对象，无法找到经过它们的引用链"
    ),
    "The search ended after {count} objects: there may be more chains": "搜索在 {count} 个对象后停止，可能还有更多引用链",
    "The search ended at {depth} references: there may be longer chains (max_depth)": (
        "搜索在 {depth} 层引用处停止，可能还有更长的引用链（max_depth）"
    ),
    # recording
    "there is no tidemark program: {path} is missing, and PATH has none; install tidemark-profiler again": (
        "找不到 tidemark 程序：{path} 不存在，PATH 中也没有；请重新安装 tidemark-profiler"
    ),
    "the recorder cannot be started: {error}": "无法启动记录进程：{error}",
    "the recorder ended before it began": "记录进程在开始之前就结束了",
    "the recorder cannot be reached; stderr says why": "无法连接记录进程；原因见 stderr",
    "the library that records cannot be loaded here: {error}": "无法在此加载记录所用的库：{error}",
    "this process is being recorded already, to {path}: tidemark.stop() ends that recording": (
        "本进程已经在记录到 {path}：tidemark.stop() 可结束该记录"
    ),
    'this program is being recorded already, by `tidemark run` or the program that started it: "{name}" is a '
    "range of that recording, and {path} is not written": (
        "本程序已由 `tidemark run` 或启动它的程序记录：“{name}”成为该记录中的一个区间，不会写入 {path}"
    ),
    "{path}: the recorder was killed; what it had written until then can be read": (
        "{path}：记录进程被杀死；此前写入的内容可以读取"
    ),
    "{path}: the recording is not complete: {why}": "{path}：记录不完整：{why}",
    "No tensor memory was allocated while this cell was recorded.": "记录此单元格期间没有分配张量内存。",
    "Category": "类别",
    "Call site": "调用位置",
    "At the peak": "峰值时",
    "Share": "占比",
    "peak {size} ({bytes:,} bytes)": "峰值 {size}（{bytes:,} 字节）",
    # debugger
    "there is no checkpoint {name!r}; there are: {known}": "没有检查点 {name!r}；已有: {known}",
    "there is no snapshot {name!r}; there are: {known}": "没有快照 {name!r}；已有: {known}",
    "{what!r} is neither a snapshot, as memory_snapshot() returns it, nor the name of one": (
        "{what!r} 既不是 memory_snapshot() 返回的快照，也不是快照的名称"
    ),
    "{what!r} is neither a checkpoint, as it was returned when it was made, nor the name of one": (
        "{what!r} 既不是创建检查点时返回的对象，也不是检查点的名称"
    ),
    "GPU {gpu}: memory grows steadily, by {mb:.1f}MB": "GPU {gpu}: 内存持续增长 {mb:.1f}MB",
    "GPU {gpu}: sudden growth by {mb:.1f}MB, {before} to {after}": ("GPU {gpu}: 内存突然增长 {mb:.1f}MB，{before} 到 {after}"),
    "GPU {gpu}: {percent:.1f}% of its memory in use at {name}": "GPU {gpu}: 内存利用率过高 {percent:.1f}%，位于 {name}",
    "GPU {gpu}: fragmentation, {mb:.1f}MB held and not used at {name}": (
        "GPU {gpu}: 内存碎片化，{mb:.1f}MB 保留但未使用，位于 {name}"
    ),
    "CPU mode: process {mb:.1f}MB / {total:.1f}MB ({percent:.1f}%)": (
        "CPU模式: 进程 {mb:.1f}MB / {total:.1f}MB ({percent:.1f}%)"
    ),
    "Memory snapshot: {name}": "获取内存快照: {name}",
    "Memory snapshots compared: {before} and {after}": "比较内存快照: {before} vs {after}",
    "  GPU {gpu}: memory {change}, utilization {percent:+.1f}%": ("  GPU {gpu}: 内存变化 {change}, 利用率变化 {percent:+.1f}%"),
    "  CPU mode: process {change}": "  CPU模式: 进程 {change}",
    "{device} uses more memory than the threshold: {mb:.1f}MB > {limit:.1f}MB": (
        "{device} 内存使用超过阈值: {mb:.1f}MB > {limit:.1f}MB"
    ),
    "GPU {gpu}: {mb:.1f}MB held and not used": "GPU {gpu}: {mb:.1f}MB 保留但未使用",
    "Memory cleaned up: {mb:.1f}MB given back, {objects} objects collected": (
        "内存清理完成: 归还 {mb:.1f}MB，回收 {objects} 个对象"
    ),
    "now": "当前",
    "Memory report": "内存报告",
    "Checkpoint: {name}": "创建检查点: {name}",
    "Checkpoints compared: {before} and {after}": "比较检查点: {before} vs {after}",
    "  tensors: {born:.2f}MB born, {died:.2f}MB died": "  张量: 新增 {born:.2f}MB，释放 {died:.2f}MB",
    "Memory debugging report": "内存调试报告",
    "in tensors": "为张量",
    "{before} to {after}: {born:.2f}MB of tensors born, {died:.2f}MB died": (
        "{before} 到 {after}: 张量新增 {born:.2f}MB，释放 {died:.2f}MB"
    ),
    "Issues: {count}": "问题: {count}",
    "Report written to {path}": "报告已保存到: {path}",
    "Samples: {count}": "采样数: {count}",
    "  GPU {gpu}: peak {mb:.1f}MB": "  GPU {gpu}: 峰值 {mb:.1f}MB",
    "Training report": "训练报告",
    "{stage}: {seconds:.2f} s, {born:.2f}MB of tensors born, {died:.2f}MB died": (
        "{stage}: {seconds:.2f} 秒，张量新增 {born:.2f}MB，释放 {died:.2f}MB"
    ),
    "  ended with an exception": "  因异常结束",
    "Steps: {count}": "步数: {count}",
    "  {stage}: {count} times, {ms:.2f} ms each, memory {change} in all, highest {highest}": (
        "  {stage}: {count} 次，每次 {ms:.2f} 毫秒，内存共变化 {change}，最高 {highest}"
    ),
    "Stage: {name}": "阶段: {name}",
    "{stage}: the model holds {mb:.2f} MB": "{stage}: 模型占用 {mb:.2f} MB",
}
