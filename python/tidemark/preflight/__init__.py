"""``python -m tidemark preflight [OPTIONS] -- PROGRAM``: runs a program with the longest batches of its data loaders first.

``inside`` is what runs in the program, put there by ``startup/sitecustomize.py``; ``report`` what is printed of it.
"""
