"""Tidemark inside training frameworks: ``transformers``, ``lightning``, ``accelerate``, and ``plain`` loops.

Each marks steps, epochs and evaluations in the recording, if there is one, and logs the memory as scalars where the framework
logs. Importing this package imports none of them.
"""
