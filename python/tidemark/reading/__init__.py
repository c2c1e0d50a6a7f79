"""Recordings and snapshots read from Python: ``tidemark.read()``, the analyses as typed objects, and tables as Arrow."""
