"""How far may a log-probability move when a question is scored again from the same weights, on another machine or in another batch?"""

from __future__ import annotations

from evalspec.artifacts.protocol import CheckpointIdentity, ProtocolModel, system_of
from evalspec.artifacts.responses import SelfCheck

FLOAT32 = 1e-3
"""Nats. Sums in another order move a float32 log-probability by some 1e-5; this leaves two powers of ten."""

LEAST, MOST = 0.1, 0.5
"""Nats, for 16-bit arithmetic: processors that round elsewhere move log-probabilities by some hundredths, also where the self-check, on one
processor, found nothing; and no recorded bound may excuse any difference."""

WIDE = ("float32", "float64")


def computes_wide(model: ProtocolModel) -> bool:
    """Return whether a model computes in 32 bits or more."""
    system = system_of(model.identity)
    return model.precision == "float32" or (isinstance(system, CheckpointIdentity) and system.stored_dtype in WIDE)


def tolerance_of(model: ProtocolModel, self_check: SelfCheck | None) -> float:
    """Return the largest difference in nats that counts as the same: for 16 bits the self-check's 99.9 % bound, within `LEAST` and `MOST`."""
    if computes_wide(model):
        return FLOAT32
    return min(MOST, max(LEAST, self_check.p999_difference if self_check else LEAST))
