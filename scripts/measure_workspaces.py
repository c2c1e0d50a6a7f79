#!/usr/bin/env python3
"""Queries cuSOLVER and cuFFT on a GPU for the workspace sizes of calls, with sizes drawn at random; nothing is computed.

Prints a line of JSON for each call: routine, letter of the type (S, D, C, Z), its numbers, and the bytes or elements of the answer (of
routines that answer for the host too, both). The numbers depend on the routine and the seed only, so one seed serves to find formulas,
another to test them, and the same call under `tidemark plan` gives the phantom GPU's values:

    scripts/measure_workspaces.py Xgeqrf 1 --calls 1500 > Xgeqrf.1
    tidemark plan --gpu H200 --steps 0 -- scripts/measure_workspaces.py Xgeqrf 1 --calls 1500

The last number of a plan of cuFFT's is the milliseconds that it took.
"""

import argparse
import ctypes
import json
import math
import random
import time

import torch

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("routine", help="a function of this file: geqrf, Xgeqrf, orgqr, ormqr, gesvd, gesvdj, geev, cufft, ...")
parser.add_argument("seed", type=int)
parser.add_argument("--calls", type=int, default=1500, help="of each type")
parser.add_argument("--seconds", type=float, default=60, help="after which no other is made")
options = parser.parse_args()

rng = random.Random(f"{options.routine}{options.seed}")
torch.linalg.inv(torch.eye(40, device="cuda"))
torch.linalg.eigh(torch.eye(40, device="cuda"))
torch.fft.fft(torch.ones(64, device="cuda"))
paths = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
solver = ctypes.CDLL(next((p for p in paths if "libcusolver.so" in p)))
fft = ctypes.CDLL(next((p for p in paths if "libcufft.so" in p)))
P, I, L, Z = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong, ctypes.c_size_t
handle = P()
assert solver.cusolverDnCreate(ctypes.byref(handle)) == 0
params = P()
assert solver.cusolverDnCreateParams(ctypes.byref(params)) == 0
jacobi_options = P()
assert solver.cusolverDnCreateSyevjInfo(ctypes.byref(jacobi_options)) == 0
singular_options = P()
assert solver.cusolverDnCreateGesvdjInfo(ctypes.byref(singular_options)) == 0
# Target of the matrix pointers; it is not read.
buffer = torch.zeros(1 << 20, device="cuda")
A = P(buffer.data_ptr())
# cudaDataType of the letters
TYPES = {"S": 0, "D": 1, "C": 4, "Z": 5}


def real(t):
    return {"S": "S", "C": "S", "D": "D", "Z": "D"}[t]


def cplx(t):
    return {"S": "C", "C": "C", "D": "Z", "Z": "Z"}[t]


def orthogonal(t):
    return "un" if t in "CZ" else "or"


def symmetric(t):
    return "he" if t in "CZ" else "sy"


def size():
    k = rng.random()
    if k < 0.3:
        return int(2 ** rng.uniform(0, 14))
    if k < 0.45:
        return 2 ** rng.randrange(1, 15)
    if k < 0.7:
        return 32 * rng.randrange(1, 257)
    if k < 0.8:
        return 16 * rng.randrange(1, 300)
    return rng.randrange(1, 300) if k < 0.9 else rng.randrange(1, 2100)


def small():
    return rng.randrange(1, 33)


def batch():
    return rng.choice((1, 2, 3, 4, 5, 8, 16, 17, 32, 64, 100, 128, 257, 512))


def rect():
    m, n = (size(), size())
    if rng.random() < 0.3:
        n = m
    return (m, n)


def call(name, *args):
    fn = getattr(solver, name)
    fn.restype = I
    return fn(*args)


def old(name, *args):
    lwork = I(-1)
    out = [ctypes.byref(lwork) if a == "out" else a for a in args]
    rc = call(name, handle, *out)
    return [lwork.value] if rc == 0 else f"rc {rc}"


def new(name, *args):
    d, h = (Z(), Z())
    out = [ctypes.byref(d) if a == "d" else ctypes.byref(h) if a == "h" else a for a in args]
    rc = call(name, handle, *out)
    return [d.value, h.value] if rc == 0 else f"rc {rc}"


def geqrf(t):
    m, n = rect()
    return ((m, n), old(f"cusolverDn{t}geqrf_bufferSize", I(m), I(n), A, I(m), "out"))


def Xgeqrf(t):
    m, n = rect()
    y = I(TYPES[t])
    return ((m, n), new("cusolverDnXgeqrf_bufferSize", params, L(m), L(n), y, A, L(m), y, A, y, "d", "h"))


def orgqr(t):
    m, n = sorted(rect(), reverse=True)
    k = n if rng.random() < 0.5 else rng.randrange(1, n + 1)
    return ((m, n, k), old(f"cusolverDn{t}{orthogonal(t)}gqr_bufferSize", I(m), I(n), I(k), A, I(m), A, "out"))


def ormqr(t):
    m, n = rect()
    side, trans = (rng.randrange(2), rng.randrange(2) * (2 if (t in "CZ") else 1))
    r = m if side == 0 else n
    k = min(m, n, r) if rng.random() < 0.5 else rng.randrange(1, r + 1)
    if rng.random() < 0.2:
        n = 1
        r = m if side == 0 else n
        k = min(k, r)
    return ((side, trans, m, n, k), old(f"cusolverDn{t}{orthogonal(t)}mqr_bufferSize", I(side), I(trans), I(m), I(n), I(k), A, I(r), A, A, I(m), "out"))


def gesvd(t):
    m, n = sorted(rect(), reverse=True)
    return ((m, n), old(f"cusolverDn{t}gesvd_bufferSize", I(m), I(n), "out"))


def gesvdj(t):
    m, n = rect()
    job, econ = (rng.randrange(2), rng.randrange(2))
    return ((job, econ, m, n), old(f"cusolverDn{t}gesvdj_bufferSize", I(job), I(econ), I(m), I(n), A, I(m), A, A, I(m), A, I(n), "out", singular_options))


def gesvdjBatched(t):
    m, n, job, b = (small(), small(), rng.randrange(2), batch())
    return ((job, m, n, b), old(f"cusolverDn{t}gesvdjBatched_bufferSize", I(job), I(m), I(n), A, I(m), A, A, I(m), A, I(n), "out", singular_options, I(b)))


def gesvda(t):
    m, n = sorted(rect(), reverse=True)
    job, b = (rng.randrange(2), batch())
    return ((job, m, n, b), old(f"cusolverDn{t}gesvdaStridedBatched_bufferSize", I(job), I(n), I(m), I(n), A, I(m), L(m * n), A, L(n), A, I(m), L(m * n), A, I(n), L(n * n), "out", I(b)))


def geev(t):
    n = size()
    job = rng.randrange(2)
    y, w = (I(TYPES[t]), I(TYPES[cplx(t)]))
    return ((job, n), new("cusolverDnXgeev_bufferSize", params, I(0), I(job), L(n), y, A, L(n), w, A, y, A, L(n), y, A, L(n), y, "d", "h"))


def Xsyevd(t):
    n = size()
    job, up = (rng.randrange(2), rng.randrange(2))
    y, w = (I(TYPES[t]), I(TYPES[real(t)]))
    return ((job, up, n), new("cusolverDnXsyevd_bufferSize", params, I(job), I(up), L(n), y, A, L(n), w, A, y, "d", "h"))


def XsyevBatched(t):
    n = rng.randrange(1, 600) if rng.random() < 0.7 else size()
    b = batch()
    job, up = (rng.randrange(2), rng.randrange(2))
    y, w = (I(TYPES[t]), I(TYPES[real(t)]))
    return ((job, up, n, b), new("cusolverDnXsyevBatched_bufferSize", params, I(job), I(up), L(n), y, A, L(n), w, A, y, "d", "h", L(b)))


def syevd(t):
    n = size()
    job, up = (rng.randrange(2), rng.randrange(2))
    return ((job, up, n), old(f"cusolverDn{t}{symmetric(t)}evd_bufferSize", I(job), I(up), I(n), A, I(n), A, "out"))


def syevj(t):
    n = size()
    job, up = (rng.randrange(2), rng.randrange(2))
    return ((job, up, n), old(f"cusolverDn{t}{symmetric(t)}evj_bufferSize", I(job), I(up), I(n), A, I(n), A, "out", jacobi_options))


def syevjBatched(t):
    n = small() if rng.random() < 0.7 else size()
    b = batch()
    job, up = (rng.randrange(2), rng.randrange(2))
    return ((job, up, n, b), old(f"cusolverDn{t}{symmetric(t)}evjBatched_bufferSize", I(job), I(up), I(n), A, I(n), A, "out", jacobi_options, I(b)))


def potrf(t):
    n = size()
    up = rng.randrange(2)
    return ((up, n), old(f"cusolverDn{t}potrf_bufferSize", I(up), I(n), A, I(n), "out"))


def Xpotrf(t):
    n = size()
    up = rng.randrange(2)
    y = I(TYPES[t])
    return ((up, n), new("cusolverDnXpotrf_bufferSize", params, I(up), L(n), y, A, L(n), y, "d", "h"))


def getrf(t):
    m, n = rect()
    return ((m, n), old(f"cusolverDn{t}getrf_bufferSize", I(m), I(n), A, I(m), "out"))


def sytrf(t):
    n = size()
    return ((n,), old(f"cusolverDn{t}sytrf_bufferSize", I(n), A, I(n), "out"))


def Xsytrs(t):
    n, k = (size(), rng.choice((1, 2, 8, 31, 32, 100, 1000)))
    up = rng.randrange(2)
    y = I(TYPES[t])
    return ((up, n, k), new("cusolverDnXsytrs_bufferSize", I(up), L(n), L(k), y, A, L(n), A, y, A, L(n), "d", "h"))


def length(most):
    k = rng.random()
    if k < 0.25:
        return 2 ** rng.randrange(1, int(math.log2(most)) + 1)
    if k < 0.55:
        while True:
            n = 2 ** rng.randrange(0, 18) * 3 ** rng.randrange(0, 6) * 5 ** rng.randrange(0, 4) * 7 ** rng.randrange(0, 3)
            if 1 < n <= most:
                return n
    return int(2 ** rng.uniform(1, math.log2(most)))


def cufft(t):
    rank = rng.choice((1, 1, 1, 2, 2, 3))
    kind = rng.choice(("R2C", "C2R", "C2C"))
    lengths = [length({1: 1 << 22, 2: 1 << 11, 3: 1 << 8}[rank]) for _ in range(rank)]
    b = rng.choice((1, 1, 2, 3, 5, 8, 16, 17, 32, 64, 100, 256, 1000))
    while math.prod(lengths) * b > 1 << 26:
        b = (b + 1) // 2 if b > 1 else 1
        lengths = lengths if b > 1 else [min(x, 1 << 26 // rank) for x in lengths]
    r, c = (I(0), I(4)) if t == "S" else (I(1), I(5))
    inp, out = (r if kind == "R2C" else c, r if kind == "C2R" else c)
    strided = rank == 1 and rng.random() < 0.25
    plan, ws = (I(), Z())
    assert fft.cufftCreate(ctypes.byref(plan)) == 0 and fft.cufftSetAutoAllocation(plan, 0) == 0
    n = (L * rank)(*lengths)
    if strided:
        layout = (n, L(b), L(1), inp, n, L(b), L(1), out)
    else:
        layout = (None, L(1), L(1), inp, None, L(1), L(1), out)
    began = time.time()
    rc = fft.cufftXtMakePlanMany(plan, I(rank), n, *layout, L(b), ctypes.byref(ws), c)
    took = time.time() - began
    fft.cufftDestroy(plan)
    return ((kind, lengths, b, int(strided)), [ws.value, round(took * 1000.0, 1)] if rc == 0 else f"rc {rc}")


def main():
    began = time.time()
    for _ in range(options.calls):
        for letter in "SD" if options.routine == "cufft" else "SDCZ":
            if time.time() - began > options.seconds:
                return
            numbers, found = globals()[options.routine](letter)
            print(json.dumps([options.routine, letter, numbers, found]), flush=True)


if __name__ == "__main__":
    main()
