"""Signal handlers that allocate tensors while the main program does. With --wait: runs until a signal ends it."""

import argparse
import os
import signal
import sys
import threading

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--wait", action="store_true")
args = parser.parse_args()

torch.set_num_threads(1)
seen = {"SIGALRM": 0, "SIGINT": 0, "SIGTERM": 0}
kept = []


def handler(number, _frame):
    name = signal.Signals(number).name
    seen[name] += 1
    kept.append(torch.full((100,), number))
    if args.wait:
        print("ended by", name, flush=True)
        sys.exit(3)


for name in seen:
    signal.signal(getattr(signal, name), handler)

if args.wait:
    print("ready", flush=True)
    threading.Event().wait(60)
    sys.exit("no signal came")

signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while seen["SIGALRM"] < 200:
    torch.ones(32, 32).add(1).sum()
signal.setitimer(signal.ITIMER_REAL, 0)
del kept[200:]
os.kill(os.getpid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGTERM)
print(f"alarms {len(kept) - 2} int {seen['SIGINT']} term {seen['SIGTERM']} sum {sum(t.sum().item() for t in kept)}")
