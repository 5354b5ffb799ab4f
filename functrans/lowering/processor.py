"""The processor that kernels are compiled for, in LLVM's words."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

#: Of the x86-64 psABI: what each level adds to the one before, as far as it matters to kernels.
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


@dataclass(frozen=True)
class Processor:
    """A processor.

    Attributes
    ----------
    name : str
        LLVM's name of it, or of a level.
    flags : str
        Features that LLVM is to take or leave apart from those of the name: ``"+avx2,-avx512f"``.
    features : frozenset of str
        What it has, as far as known.
    """

    name: str
    flags: str
    features: frozenset[str]

    @property
    def vector_bits(self) -> int:
        """The width of vectors that pays; 0 for LLVM's own choice."""
        return 512 if "avx512f" in self.features else 0

    @property
    def fma(self) -> bool:
        """Whether a fused multiply-add is an instruction."""
        return not self.features.isdisjoint(("fma", "neon", "fp-armv8"))


@functools.cache
def processor(cpu: str = "native") -> Processor:
    """The processor of that name.

    Parameters
    ----------
    cpu : str
        'native' or one of `LEVELS`. The native one is what LLVM finds; as in Numba, ``NUMBA_CPU_NAME`` and
        ``NUMBA_CPU_FEATURES`` replace it.
    """
    if cpu in LEVELS:
        return Processor(cpu, "", LEVELS[cpu])
    name, flags = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if flags is None and name in LEVELS:
        return processor(name)
    if flags is None and name == "generic":
        flags = ""
    found = host()
    flags = found.flags if flags is None else flags
    has = frozenset(f[1:] for f in flags.split(",") if f.startswith("+"))
    return Processor(name or found.name, flags, has)


@functools.cache
def host() -> Processor:
    """The processor of this machine, as LLVM finds it."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    has = frozenset(name for name, there in features.items() if there)
    return Processor(llvm.get_host_cpu_name(), features.flatten(), has)
