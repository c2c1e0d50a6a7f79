"""Allocates, then replaces itself by another Python, twice: one pid, three programs."""

import argparse
import os
import sys

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--stage", type=int, default=0)
parser.add_argument("--python", default=sys.executable, help="the interpreter to exec; needs torch too")
parser.add_argument("--wait", action="store_true", help="the last program ends when its stdin is closed")
args = parser.parse_args()

tensor = torch.full((1000 * (args.stage + 1),), args.stage)
print(f"stage {args.stage} sum {tensor.sum().item()}", flush=True)
if args.stage < 2:
    wait = ["--wait"] if args.wait else []
    os.execv(args.python, [args.python, __file__, "--stage", str(args.stage + 1), "--python", args.python, *wait])
if args.wait:
    sys.stdin.read()
