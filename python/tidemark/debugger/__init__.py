"""The debugger: what memory is in use, by whom, and how it changes between checkpoints, stages and configurations."""
