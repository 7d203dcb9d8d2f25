"""What does reading the common beginning once give?  32 MMLU questions behind five solved ones, against reading it every time."""

from __future__ import annotations

from benchmarks.scoring_peer import Comparison, compare


def main() -> None:
    """Compare, and print the one line."""
    compare(Comparison("scoring_prefix", "letter", questions=32, ratio_bars={"smollm2-135m-instruct": 3.0}, tolerance=1e-4, shots=5))


if __name__ == "__main__":
    main()
