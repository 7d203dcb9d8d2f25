"""What do the forms that the grammar asks of texts mean in plain words?"""

from __future__ import annotations

PATTERNS = {
    r"^[0-9a-f]{64}$": "a SHA-256: 64 hexadecimal digits in lower case",
    r"^[0-9a-f]{40}$": "a full commit: 40 hexadecimal digits in lower case",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": "a short name: letters, digits and . _ - only, a letter or digit first, at most 64 characters",
    r"^[\w.-]+/[\w.-]+$": "a name on the hub: owner/name",
    r"^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?$": "an address: https://host/v1, with nothing after it",
    r"^[A-Z][A-Z0-9_]*_API_KEY$": "the name of an environment variable: capital letters, digits and _, _API_KEY at its end",
    r"^SHA256:[A-Za-z0-9+/]{43}=$": "the fingerprint of a key: SHA256: and 44 characters, the last of them =",
    r"^[A-Z]{3}$": "a currency: three capital letters, such as USD",
}
PATTERN_HINTS = {
    r"^[0-9a-f]{64}$": "sha256sum FILE prints it",
    r"^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?$": "names, passwords and keys stand in no address",
    r"^[A-Z][A-Z0-9_]*_API_KEY$": "a study names the variable; the key itself stands in no file",
    r"^[0-9a-f]{40}$": "a branch or a tag can move: write the commit that it stands for now, as the hub shows it in the history of the files",
}
