"""How is a number rounded where people read it: in reports, and on the terminal?"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

__all__ = ["MINUS", "MOST_DECIMALS", "not_zero", "rounded", "signed"]

MINUS = "\N{MINUS SIGN}"
MOST_DECIMALS = 4


def not_zero(value: float, power: int, decimals: int) -> str:
    """Return a number times a power of ten with more decimals where it would look like 0 and is not, down to the last that is ever printed.

    >>> not_zero(0.0004, 2, 1), not_zero(-0.02, 2, 1), not_zero(0.0, 2, 1)
    ('0.04', '−2.0', '0.0')
    """
    while value and decimals < MOST_DECIMALS and float(rounded(value, power, decimals)) == 0:
        decimals += 1
    text = rounded(value, power, decimals)
    if float(text) == 0 and value:
        return f"less than +{10**-decimals:.{decimals}f}" if value > 0 else f"above {MINUS}{10**-decimals:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", MINUS)


def signed(value: float, power: int, decimals: int) -> str:
    """Return the same with a plus where the number is greater than 0.

    >>> signed(0.02, 2, 1), signed(-0.02, 2, 1), signed(0.0, 2, 1), signed(1e-9, 2, 1)
    ('+2.0', '−2.0', '0.0', 'less than +0.0001')
    """
    text = not_zero(value, power, decimals)
    return f"+{text}" if value > 0 and text[0] != "l" else text


def rounded(value: float, power: int, decimals: int) -> str:
    """Round as people do: half up, of the number as it is written, so that 23 of 40 are 58 % and not what 57.49999 would be.

    >>> rounded(23 / 40, 2, 0), rounded(0.5745, 2, 1)
    ('58', '57.5')
    """
    return str(Decimal(repr(float(value))).scaleb(power).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))
