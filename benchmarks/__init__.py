"""What does speed mean here?  `python -m benchmarks.NAME` runs one; each prints one JSON line last, in CPU seconds, medians of several runs."""
