"""A program without torch: there is nothing to record."""

import hashlib

print(hashlib.sha256(b"tidemark" * 1000).hexdigest())
