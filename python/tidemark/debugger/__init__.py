"""The debugger: memory in use, its owners, and its changes between checkpoints, stages and configurations."""
