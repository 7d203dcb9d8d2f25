from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
arithmetic = pytest.importorskip("evalspec.scoring.arithmetic")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounded_products_differ_from_torchs_own_by_no_more_than_rare_last_bits(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    hidden, layer = torch.randn(300, 48).to(dtype), torch.nn.Linear(48, 64).to(dtype)
    with torch.inference_mode():
        own = layer(hidden)
        with arithmetic.RoundedProducts():
            rounded = layer(hidden)
    assert rounded.dtype is dtype
    exact = hidden.double() @ layer.weight.double().T + layer.bias.double()
    half_step = torch.finfo(dtype).eps * exact.abs() / 2 + 1e-6
    assert bool(((rounded.double() - exact).abs() <= 2 * half_step).all())
    assert (own != rounded).double().mean() < 0.01


def test_float32_products_and_other_functions_are_left_alone() -> None:
    first, second = torch.randn(5, 5), torch.randn(5, 5)
    with arithmetic.RoundedProducts():
        assert torch.equal(first @ second, torch.mm(first, second))
        assert torch.exp(first).dtype is torch.float32


def test_a_float32_head_tells_logits_apart_that_bfloat16_rounds_together() -> None:
    head = torch.nn.Linear(1, 2, bias=False).bfloat16()
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0], [1.0078125]]))
    hidden = torch.full((1, 1), 1.0078125).bfloat16()
    wide = arithmetic.Float32Head(head)(hidden)[0]
    assert wide[0] < wide[1]
    assert wide.tolist() == [1.0078125, 1.0078125**2]


def test_a_model_that_needs_one_thread_leaves_all_of_them_to_the_next_one() -> None:
    asked = "settle_arithmetic(1); print(threads_in_use()); settle_arithmetic(None); print(threads_in_use())"
    script = f"from evalspec.scoring.arithmetic import settle_arithmetic, threads_in_use; {asked}"
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"OMP_NUM_THREADS": "2"}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2"]


@pytest.mark.skipif(not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs the C library of GNU")
def test_memory_that_is_free_is_given_back_to_the_system() -> None:
    program = """
import torch
from pathlib import Path
from evalspec.scoring.arithmetic import free_memory
def held(): return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
begun = held()
many = [torch.zeros(4000) for _ in range(6000)]
last = torch.zeros(4000)
del many
kept = held()
free_memory()
print(kept - begun, held() - begun)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    kept, after = map(int, done.stdout.split())
    assert kept > 50_000, "the C library gave it back on its own: this proves nothing"
    assert after < 0.2 * kept
