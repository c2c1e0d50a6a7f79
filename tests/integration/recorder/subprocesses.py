"""Starts shells, helpers and a Python without torch, and one child that allocates. Only two programs here use torch."""

import subprocess
import sys

import torch

held = torch.ones(1000)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


print("shell:", output("/bin/sh", "-c", "echo one | cat; true; (echo two)"))
print("env:", output("/usr/bin/env", "true") or "nothing")
print("python without torch:", output(sys.executable, "-c", "print(sum(range(1000)))"))
print("child:", output(sys.executable, "-c", "import torch; print(torch.arange(1000).sum().item())"))
print("closed descriptors:", subprocess.run([sys.executable, "-c", "pass"], close_fds=True).returncode)
print("code:", subprocess.run(["/bin/sh", "-c", "exit 5"]).returncode)
print("held:", held.sum().item())
