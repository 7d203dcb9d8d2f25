"""How can hidden questions be held to later?  Each is committed to by a salted hash, and any one can be opened alone.

The salt of a question is HMAC-SHA-256(secret, benchmark and id): without the secret nobody can test guesses at the wording, and an
opening, which shows one salt, says nothing about another question.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from evalspec.artifacts.base import canonical_json

SHORTEST_SECRET = 32


@dataclass(frozen=True, slots=True)
class Opening:
    """What the keeper of the secret hands out so that others can check one commitment."""

    salt: str
    content: bytes


def commit(secret: bytes, benchmark: str, question_id: str, content: bytes) -> str:
    """Return the commitment to `content`: SHA-256(salt, content) in hexadecimal; raises ValueError on a secret under 32 bytes."""
    return hashlib.sha256(_salt(secret, benchmark, question_id) + content).hexdigest()


def opening(secret: bytes, benchmark: str, question_id: str, content: bytes) -> Opening:
    """Return what opens the commitment to `content`; raises ValueError on a secret under 32 bytes."""
    return Opening(_salt(secret, benchmark, question_id).hex(), content)


def check_opening(commitment: str, salt: str, content: bytes) -> bool:
    """Say whether `salt` (hexadecimal) and `content` open the commitment."""
    try:
        raw = bytes.fromhex(salt)
    except ValueError:
        return False
    # A salt of any other length could move bytes between salt and content.
    return len(raw) == hashlib.sha256().digest_size and hmac.compare_digest(hashlib.sha256(raw + content).hexdigest(), commitment)


def _salt(secret: bytes, benchmark: str, question_id: str) -> bytes:
    if len(secret) < SHORTEST_SECRET:
        raise ValueError(f"the secret has {len(secret)} bytes; at least {SHORTEST_SECRET} random ones are needed")
    return hmac.digest(secret, canonical_json([benchmark, question_id]), "sha256")
