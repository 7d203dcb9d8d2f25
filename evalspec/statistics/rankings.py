"""How stable is a ranking of many models when the questions are drawn again?

Assumption: questions are independent draws; whole rows are redrawn, so models stay paired. These are frequencies of a
simulation with their Monte Carlo error: they show stability, and are no confidence, least of all among models that nearly tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalspec.statistics.arguments import FloatArray, IntArray, require_count
from evalspec.statistics.redraws import SplitHalves
from evalspec.statistics.redrawn_totals import RedrawPlan, contenders, draw_without_replacement, redrawn_totals
from evalspec.statistics.fast_draws import Urn
from evalspec.statistics.response_patterns import ResponsePatterns
