"""Sparse matrices: makes the calls of FILE, of ../../data/phantom, and prints the requests of each.

Then products of two sparse matrices, whose results depend on the places of the nonzeros.
"""

import json
import sys
from pathlib import Path

import torch
from requested import requests_of


def matrix(rows, columns, nonzeros, dtype):
    """A matrix of coordinates and the same one with compressed rows."""
    place = torch.arange(nonzeros)
    indices = torch.stack((place // columns, place % columns))
    coordinates = torch.sparse_coo_tensor(indices, torch.ones(nonzeros, dtype=dtype), (rows, columns), is_coalesced=True).cuda()
    return coordinates, coordinates.to_sparse_csr()


def calls_of(known):
    dtype = getattr(torch, known["type"])
    rows, inner, columns = known["rows"], known["inner"], known["columns"]
    coordinates, compressed = matrix(rows, inner, known["left"], dtype)
    _, square = matrix(rows, rows, known["square"], dtype)
    dense = torch.ones(inner, columns, dtype=dtype, device="cuda")
    other = torch.ones(rows, columns, dtype=dtype, device="cuda")
    calls = {
        "compressed_by_dense": lambda: compressed @ dense,
        "compressed_by_vector": lambda: compressed @ dense[:, 0],
        "coordinates_by_dense": lambda: coordinates @ dense,
        "product_at_places": lambda: torch.sparse.sampled_addmm(compressed, other, dense.t()),
        "solution": lambda: torch.triangular_solve(other, square),
    }
    return {name: requests_of(calls[name]) for name in known["requests"]}


def sparse_products():
    """Nonzeros of the results of both layouts."""
    coordinates, compressed = matrix(3000, 2000, 30000, torch.float32)
    other_coordinates, other_compressed = matrix(2000, 1000, 20000, torch.float32)
    return [torch.sparse.mm(coordinates, other_coordinates)._nnz(), (compressed @ other_compressed)._nnz()]


def main():
    found = [calls_of(known) for known in json.loads(Path(sys.argv[1]).read_text())["calls"]]
    print(json.dumps({"calls": found, "products": sparse_products()}), file=sys.stderr)


if __name__ == "__main__":
    main()
