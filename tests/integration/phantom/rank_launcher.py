"""Replaces torchrun for a program of two ranks on two devices of this machine, each of which writes a line of JSON."""

import json
import os
import socket
import subprocess
import sys

WORLD = 2


def start(*program):
    """Starts the program once for each rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(WORLD):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": WORLD, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = os.environ | {name: str(value) for name, value in place.items()}
        ranks.append(subprocess.Popen([sys.executable, *program], env=environment, stdout=subprocess.PIPE, text=True))
    return ranks


def launch(*program):
    """Runs the program once for each rank, prints their lines as a list, and exits with their exit code."""
    ranks = start(*program)
    outputs = [rank.communicate()[0] for rank in ranks]
    print(json.dumps([json.loads(output.splitlines()[-1]) for output in outputs if output]))
    sys.exit(max(rank.returncode for rank in ranks))


if __name__ == "__main__":
    launch(*sys.argv[1:])
