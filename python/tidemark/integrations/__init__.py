"""Tidemark inside training frameworks: ``transformers``, ``lightning``, ``accelerate``, and ``plain`` loops.

Each marks steps, epochs and evaluations in the recording, if there is one, and logs the memory as scalars with the framework's
own logging. Importing this package imports none of the frameworks.
"""
