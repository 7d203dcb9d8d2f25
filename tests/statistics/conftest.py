"""Property tests repeat the same examples on every run, and a busy machine does not fail them for being slow."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("evalspec", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("evalspec")
