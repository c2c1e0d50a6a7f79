"""The tensors that a forward pass saves for the backward pass, by PyTorch's saved-tensor hooks."""

import torch


def local(tensor):
    """A rank's own part of a DTensor."""
    return getattr(tensor, "_local_tensor", tensor)


def tensors_in(values):
    leaves = torch.utils._pytree.tree_leaves(values)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_cuda]


class MadeBy(torch.utils._python_dispatch.TorchDispatchMode):
    """The module whose call made each storage: the innermost active one."""

    def __init__(self, model):
        super().__init__()
        self.calls = [None]
        self.module_of = {}
        self.saved = {}
        for path, module in model.named_modules():
            name = path or type(module).__name__
            module.register_forward_pre_hook(lambda *_, name=name: self.calls.append(name))
            module.register_forward_hook(self.leave)

    def leave(self, *_):
        self.calls.pop()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        given = {tensor.untyped_storage().data_ptr() for tensor in tensors_in([arguments, options or {}])}
        for tensor in tensors_in(made):
            if (address := tensor.untyped_storage().data_ptr()) not in given:  # not a view of an existing storage
                self.module_of[address] = self.calls[-1]
        return made

    def save(self, tensor):
        if tensor.is_cuda:
            storage = tensor.untyped_storage()
            self.saved[storage._cdata] = storage, self.module_of.get(storage.data_ptr())
        return tensor


def saved_by_module(model, loss_of):
    """The tensors saved by a forward pass, and its loss: bytes of each storage, by the module that made it, or None outside of modules."""
    made_by = MadeBy(model)
    with made_by, torch.autograd.graph.saved_tensors_hooks(made_by.save, lambda tensor: tensor):
        loss = loss_of(model)
    made_by.save(loss)
    own = {local(tensor).untyped_storage()._cdata for tensor in [*model.parameters(), *model.buffers()]}
    by_module = {}
    for address, (storage, name) in made_by.saved.items():
        if address not in own and storage.nbytes() != 0:
            by_module.setdefault(name, []).append(storage.nbytes())
    return list(by_module.items())
