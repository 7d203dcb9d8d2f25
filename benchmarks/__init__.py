"""What does speed mean here?  `python -m benchmarks.NAME` runs one; each prints one JSON line last, in CPU seconds, medians of several runs."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: CPU seconds of spinning threads measure nothing
