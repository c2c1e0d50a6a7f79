"""Python runs this file when it starts a program of a test. While PyTorch is imported, the garbage collector looks through what the
imported modules have made again and again, which is a fifth of the time of a start. It looks less often here.
"""

import gc

gc.set_threshold(100_000)
