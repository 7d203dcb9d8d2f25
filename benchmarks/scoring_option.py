"""How fast are the texts of the choices scored on real models?  64 MMLU questions against lm-evaluation-harness."""

from __future__ import annotations

from benchmarks.scoring_peer import Comparison, compare


def main() -> None:
    """Compare, and print the one line."""
    compare(Comparison("scoring_option", "option", questions=64, ratio_bars={"smollm2-135m-instruct": 3.5}, tolerance=5e-4))


if __name__ == "__main__":
    main()
