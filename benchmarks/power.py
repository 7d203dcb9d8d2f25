"""How fast are sample sizes of the exact McNemar test?  A grid of 100 settings, against a direct double sum on some of them."""

from __future__ import annotations

import math
from itertools import product

from benchmarks.measuring import conclude, median_seconds, peak_mib, seconds

DISCORDANCES = (0.05, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5)
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)
BAR = 1.0


def main() -> None:
    """Time the grid and check power at the sizes found by direct summation."""
    from evalspec.statistics.paired_power import questions_needed

    grid = [(discordance, discordance * share) for discordance, share in product(DISCORDANCES, SHARES)]
    sizes = [questions_needed(discordance, difference) for discordance, difference in grid]
    ours = median_seconds(lambda: [questions_needed(discordance, difference) for discordance, difference in grid])
    sampled = [(size, setting) for size, setting in zip(sizes, grid, strict=True) if size.questions <= 400][::6]
    direct = seconds(lambda: [_direct_power(size.questions, *setting) for size, setting in sampled])
    agree = all(abs(_direct_power(size.questions, *setting) - size.power) < 1e-9 for size, setting in sampled)
    figures = {
        "ours_s": round(ours, 3),
        "peer_s": round(direct, 3),
        "peer": f"direct double sum of the power alone, at {len(sampled)} of the sizes",
        "limit_s": BAR,
        "of_limit": round(ours / BAR, 3),
        "peak_mib": peak_mib(),
        "agree": agree,
    }
    conclude("power", "exact McNemar sample size for 100 settings of discordance and difference", figures)


def _direct_power(questions: int, discordance: float, difference: float, alpha: float = 0.05) -> float:
    """Sum over discordant counts and splits, with whole-number binomials."""
    first = (discordance + difference) / (2 * discordance)
    power = 0.0
    for discordant in range(1, questions + 1):
        share = math.comb(questions, discordant) * discordance**discordant * (1 - discordance) ** (questions - discordant)
        tail, limit = 0, -1
        for count in range(discordant // 2 + 1):
            tail += math.comb(discordant, count)
            if min(1.0, 2 * tail / 2**discordant) > alpha:
                break
            limit = count
        rejected = sum(
            math.comb(discordant, count) * (first**count * (1 - first) ** (discordant - count) + (1 - first) ** count * first ** (discordant - count))
            for count in range(limit + 1)
        )
        power += share * rejected
    return power


if __name__ == "__main__":
    main()
