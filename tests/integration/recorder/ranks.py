"""A minimal torchrun: one process per rank with RANK, LOCAL_RANK and WORLD_SIZE set, and a collective if there is gloo."""

import argparse
import os
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--world", type=int, default=2)
args = parser.parse_args()


def launch():
    """The launcher itself uses no torch."""
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for rank in range(args.world):
            environment = dict(
                os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.world), MEETING=f"{folder}/meeting"
            )
            processes.append(
                subprocess.Popen([sys.executable, __file__], env=environment, stdout=subprocess.PIPE, text=True)
            )
        outputs = [process.communicate()[0] for process in processes]
        print("".join(outputs), end="")
        sys.exit(max(process.returncode for process in processes))


def rank_main():
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    tensor = torch.full((1000 * (rank + 1),), 1.0)
    reduced = tensor[:1000].clone()
    if dist.is_available() and hasattr(dist, "ProcessGroupGloo"):
        dist.init_process_group("gloo", init_method=f"file://{os.environ['MEETING']}", rank=rank, world_size=world)
        dist.all_reduce(reduced)
        dist.destroy_process_group()
    print(f"rank {rank} of {world}: own {tensor.sum().item()} reduced {reduced.sum().item()}")


rank_main() if "RANK" in os.environ and "MEETING" in os.environ else launch()
