"""In which arithmetic does torch compute, and is it the same from run to run?"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_PRODUCTS: frozenset[Callable[..., Any]] = frozenset(
    {nn.functional.linear, torch.addmm, torch.matmul, torch.bmm, torch.baddbmm, Tensor.matmul, Tensor.__matmul__}
)

_OWN_THREADS = torch.get_num_threads()
_NO_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory", "std::bad_alloc", "could not create a memory")


class Float32Head(nn.Module):
    """A linear head whose product is taken in float32, whatever the body's precision.

    Bfloat16 logits have steps of 0.125 between 16 and 32, so that different answers often tie by rounding alone.
    """

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = nn.Parameter(head.weight.detach().float(), requires_grad=False)
        self.bias = None if head.bias is None else nn.Parameter(head.bias.detach().float(), requires_grad=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return float32 logits."""
        return nn.functional.linear(hidden.to(self.weight.device).float(), self.weight, self.bias)


class RoundedProducts(TorchFunctionMode):
    """Within it, products of 16-bit matrices are summed in float32 and rounded once, as processors with 16-bit matrix units do.

    Without such units torch multiplies 16-bit matrices about ten times more slowly than float32 ones, to the same results but for rare last bits.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Widen the operands of a product, and round its result back; leave every other function alone."""
        del types
        given = dict(kwargs or {})
        if func not in _PRODUCTS or not isinstance(args[0], Tensor) or args[0].dtype not in (torch.bfloat16, torch.float16):
            return func(*args, **given)
        return func(*map(_widened, args), **{name: _widened(value) for name, value in given.items()}).to(args[0].dtype)


def products(model: nn.Module, dtype: torch.dtype) -> AbstractContextManager[object]:
    """Return the context in which a model on this dtype multiplies at a bearable speed."""
    return RoundedProducts() if _lacks_units(next(model.parameters()).device, dtype) else nullcontext()


def describe(model: nn.Module, dtype: torch.dtype) -> str:
    """Return the arithmetic in words: the precision, and whether products are taken in float32."""
    name = str(dtype).removeprefix("torch.")
    return f"{name}, products summed in float32 and rounded" if _lacks_units(next(model.parameters()).device, dtype) else name


def settle_arithmetic(threads: int | None) -> None:
    """Ask torch for the same bits from run to run: deterministic kernels, no TF32, a fixed number of threads, torch's own where None is given."""
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.set_num_threads(threads or _OWN_THREADS)


def memory_ran_out(error: BaseException) -> bool:
    """Return whether an error says that memory could not be had; on processors torch and its libraries raise a plain RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(words in str(error) for words in _NO_MEMORY)


def free_memory() -> None:
    """Give back what is kept for later: by torch of the memory of accelerators, by the C library, where it is GNU's, of this machine's."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def forget_peak(device: str) -> None:
    """Begin anew to observe how much memory is in use at most; where the system cannot, it is that since the process began."""
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc(5): resets the peak of the resident set


def peak_bytes(device: str) -> int | None:
    """Return how much memory was in use at most; None where the system does not tell, as on several devices together."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_reserved(device)
    if device != "cpu":
        return None
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)
    return None


def threads_in_use() -> int:
    """Return how many threads torch computes with."""
    return torch.get_num_threads()


def _lacks_units(device: torch.device, dtype: torch.dtype) -> bool:
    if device.type != "cpu" or dtype not in (torch.bfloat16, torch.float16):
        return False
    supported = torch.ops.mkldnn._is_mkldnn_bf16_supported if dtype is torch.bfloat16 else torch.ops.mkldnn._is_mkldnn_fp16_supported  # noqa: SLF001 - torch offers no public question for it
    return not supported()


def _widened(value: Any) -> Any:  # Any: an argument of a torch function
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value
