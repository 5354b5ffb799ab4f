"""The processor for which kernels are compiled, as LLVM describes it."""

from __future__ import annotations

import functools
import os
import platform
from dataclasses import dataclass

from ..runtime.libraries import llvm

#: From the x86-64 psABI: the features that each level adds, as far as they matter to kernels.
_ADDED = {
    "x86-64": (),
    "x86-64-v2": ("sse4.2", "popcnt"),
    "x86-64-v3": ("avx", "avx2", "bmi2", "f16c", "fma", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
_NAMES = list(_ADDED)
#: The features of each level.
LEVELS = {
    name: frozenset(f for lower in _NAMES[: i + 1] for f in _ADDED[lower]) for i, name in enumerate(_NAMES)
}

#: What every processor of an architecture has: macOS on ARM reports no features.
_ARM = frozenset(("fp-armv8", "neon"))
_BASE = {"aarch64": _ARM, "arm64": _ARM, "ARM64": _ARM}


@dataclass(frozen=True)
class Processor:
    """A processor.

    Attributes
    ----------
    name : str
        LLVM's name for it, or a level.
    flags : str
        Features to add to or remove from those of the name: ``"+avx2,-avx512f"``.
    features : frozenset of str
        Its known features.
    """

    name: str
    flags: str
    features: frozenset[str]

    @property
    def vector_bits(self) -> int:
        """The best width of vectors; 0 to let LLVM choose."""
        return 512 if "avx512f" in self.features else 0

    @property
    def fma(self) -> bool:
        """Whether it has an instruction for fused multiply-add."""
        return not self.features.isdisjoint(("fma", "neon", "fp-armv8"))

    @property
    def half(self) -> bool:
        """Whether it has instructions that convert float16; without them, LLVM calls functions of the C runtime."""
        return not self.features.isdisjoint(("f16c", "neon", "fp-armv8"))


@functools.cache
def processor(cpu: str = "native") -> Processor:
    """The processor of this name.

    Parameters
    ----------
    cpu : str
        'native' or one of `LEVELS`. LLVM detects the native one; as in Numba, ``NUMBA_CPU_NAME`` and
        ``NUMBA_CPU_FEATURES`` override it.
    """
    if cpu in LEVELS:
        return Processor(cpu, "", LEVELS[cpu])
    name, flags = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if flags is None and name in LEVELS:
        return processor(name)
    if flags is None and name == "generic":
        flags = ""
    native = host()
    flags = native.flags if flags is None else flags
    has = frozenset(f[1:] for f in flags.split(",") if f.startswith("+"))
    return Processor(name or native.name, flags, has)


@functools.cache
def host() -> Processor:
    """The processor of this machine, as detected by LLVM."""
    features = llvm.get_host_cpu_features()
    has = frozenset(name for name, there in features.items() if there) | _BASE.get(
        platform.machine(), frozenset()
    )
    return Processor(llvm.get_host_cpu_name(), features.flatten(), has)
