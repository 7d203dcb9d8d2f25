"""How fast are letters scored on real models?  64 MMLU questions against lm-evaluation-harness."""

from __future__ import annotations

from benchmarks.scoring_peer import Comparison, compare


def main() -> None:
    """Compare, and print the one line."""
    bars = {"smollm2-135m-instruct": 1.4, "gemma-3-270m": 2.3}
    compare(Comparison("scoring_letter", "letter", questions=64, ratio_bars=bars, tolerance=1e-4))


if __name__ == "__main__":
    main()
