"""Fills the phantom's memory: blocks of 1 GiB until PyTorch has no more, which ends the program; or it continues.

With --ranks two ranks do so on a device each: the second one fills its own, the first holds three blocks until the other has gone.
"""

import argparse
import os
import socket
import sys
import time

import torch
from rank_launcher import launch

parser = argparse.ArgumentParser()
parser.add_argument("--mib", type=int, default=1024, help="of each block")
parser.add_argument("--survive", action="store_true")
parser.add_argument("--ranks", action="store_true")
args = parser.parse_args()
BYTES = args.mib << 20


def fill(kept):
    while True:
        if torch.cuda.mem_get_info()[0] < BYTES:
            time.sleep(0.5)  # the recorder samples what is free meanwhile
        kept.append(torch.empty(BYTES, dtype=torch.uint8, device="cuda"))


def hold_until_the_other_ends():
    kept = [torch.empty(BYTES, dtype=torch.uint8, device="cuda") for _ in range(3)]
    with socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))) as server, server.accept()[0] as other:
        other.recv(1)
    return kept


def connect():
    while True:
        try:
            return socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))
        except ConnectionRefusedError:
            time.sleep(0.05)


kept = []
if args.survive:
    try:
        fill(kept)
    except torch.cuda.OutOfMemoryError:
        print(len(kept), flush=True)
    kept.clear()
    sys.stdin.read()
elif args.ranks and "RANK" not in os.environ:
    launch(__file__, "--ranks")
elif args.ranks:
    torch.cuda.set_device(int(os.environ["RANK"]))
    if os.environ["RANK"] == "0":
        hold_until_the_other_ends()
    else:
        with connect():
            fill(kept)
else:
    fill(kept)
