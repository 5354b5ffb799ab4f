"""The processor for which kernels are compiled, as LLVM describes it."""

from __future__ import annotations

import functools
import os
import platform
import re
import sys

from ..errors import ConfigError
from ..runtime.libraries import llvm, subprocess
from ..runtime.records import dataclass

#: The levels of each architecture: the features that each adds to the one before, as far as they matter to kernels.
#: Every processor has the first. Those of x86-64 are from its psABI; all Apple processors of macOS have ARM's last.
_X86: dict[str, tuple[str, ...]] = {
    "x86-64": (),
    "x86-64-v2": ("sse4.2", "popcnt"),
    "x86-64-v3": ("avx", "avx2", "bmi2", "f16c", "fma", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
_ARM: dict[str, tuple[str, ...]] = {
    "armv8.0": ("fp-armv8", "neon"),
    "armv8.2": ("crc", "lse"),
    "apple-m1": ("dotprod", "fullfp16"),
}
_LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": _X86,
    "AMD64": _X86,
    "aarch64": _ARM,
    "arm64": _ARM,
    "ARM64": _ARM,
}
#: How LLVM is told of a level that is no name of a processor there.
_AS_FLAGS = {"armv8.0": ("generic", ""), "armv8.2": ("generic", "+v8.2a")}
#: The names of all levels, of whatever architecture.
ALL_LEVELS = (*_X86, *_ARM)


def levels_of(machine: str) -> dict[str, frozenset[str]]:
    """The levels of an architecture, as `platform.machine` names it, with the features of each; none if unknown."""
    added = _LEVELS.get(machine, {})
    names = list(added)
    return {
        name: frozenset(f for lower in names[: i + 1] for f in added[lower]) for i, name in enumerate(names)
    }


#: Those of this machine.
LEVELS = levels_of(platform.machine())


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
    def gathers(self) -> bool:
        """Whether it has an instruction that loads the elements of a vector from different places."""
        return not self.features.isdisjoint(("avx2", "avx512f"))

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

    Raises
    ------
    ConfigError
        If ``NUMBA_CPU_NAME`` is no processor of this architecture.
    """
    if cpu in LEVELS:
        name, flags = _AS_FLAGS.get(cpu, (cpu, ""))
        return Processor(name, flags, LEVELS[cpu])
    told, given = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if given is None and told in LEVELS:
        return processor(told)
    native = host()
    if given is None and told in (None, native.name):
        return native
    if told not in (None, native.name, "generic", *LEVELS) and not _is_known(told):
        raise ConfigError(
            f"NUMBA_CPU_NAME: LLVM knows no processor {told!r} of the architecture {platform.machine()}. Unset it, or "
            f"set it to one of {', '.join(LEVELS)}"
        )
    if given is None and told == "generic":
        given = ""
    name, more = _AS_FLAGS.get(told or "", (told or native.name, ""))
    flags = native.flags if given is None else ",".join(filter(None, (more, given)))
    has = {f[1:] for f in flags.split(",") if f.startswith("+")} | _base()
    return Processor(name, flags, frozenset(has))


def _base() -> frozenset[str]:
    """What every processor of this architecture has."""
    return next(iter(levels_of(platform.machine()).values()), frozenset())


@functools.cache
def host() -> Processor:
    """The processor of this machine, as detected by LLVM.

    On macOS on ARM it detects a name and no features. What the name and the architecture imply is added: kernels would
    otherwise do without fused multiply-add and without vectors of mathematical functions.
    """
    name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    has = {feature for feature, there in features.items() if there}
    has |= levels_of(platform.machine())["apple-m1"] if name.startswith("apple-m") else _base()
    return Processor(name, features.flatten(), frozenset(has))


#: Prints the names of processors that LLVM knows for this system, to the channel of errors.
_LIST = """import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu="help")"""


def _is_known(name: str | None) -> bool:
    """Whether LLVM knows a processor. Of an unknown one it would say so on the terminal, and compile for none."""
    done = subprocess.run([sys.executable, "-c", _LIST], capture_output=True, text=True, check=False)
    known = re.findall(r"^ +(\S+) +- Select the", done.stderr, re.MULTILINE)
    return name in known if known else True
