"""Threads that come and go, allocate at the same time, and free each other's tensors."""

import queue
import threading

import torch

torch.set_num_threads(1)
ROUNDS, THREADS, TENSORS = 4, 4, 500
sums = {}


def work(number, inbox, outbox):
    total = 0
    for i in range(TENSORS):
        outbox.put(torch.full((64 + number, 16), i))
        received = inbox.get()  # from another thread; freed here, by the next assignment
        total += received.sum().item()
    sums[number] = total


for round_ in range(ROUNDS):
    queues = [queue.Queue() for _ in range(THREADS)]
    threads = [
        threading.Thread(target=work, args=(n, queues[n], queues[(n + 1) % THREADS]), name=f"worker-{round_}-{n}")
        for n in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"round {round_} sums {[sums[n] for n in range(THREADS)]}")
