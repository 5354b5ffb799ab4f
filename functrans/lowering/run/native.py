"""An executable as native code that needs no Python: one kernel, and where each of its buffers lies.

The wrapper (`run.wrapper`) runs any executable from Python. Code that Numba compiled for a user runs those of one
kernel that never calls Python by their address.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...core import Atom, TapeAval, Var
from ...core import Literal as LiteralAtom
from ...core.backward_state import StateAval
from ...runtime.context import cached_property
from ...runtime.private.python_names import blake2b
from ...runtime.records import NamedTuple, dataclass
from ..llvm.emit import LLVMKernel, emit_inlined
from ..lower import LoweredKernel
from ..steps import packed_numbers
from .compile import best_backend
from .executable import Executable, KernelUnit
from .wrapper import tidy

#: Scratch memory begins at multiples of this many bytes.
ALIGNMENT = 64


class BufferPlace(NamedTuple):
    """Where a buffer lies.

    Attributes
    ----------
    kind : {'data', 'scratch', 'constant'}
        The memory of an argument or of a result; scratch memory of the call; a constant.
    number : int
        For data, the number of the argument, or that of the result after those of all arguments. For scratch and
        constants, the index in `NativeProgram.scratch` or `.constants`.
    """

    kind: Literal["data", "scratch", "constant"]
    number: int


@dataclass(frozen=True, eq=False)
class NativeProgram:
    """A program of at most one kernel.

    Attributes
    ----------
    address : int
        The kernel's machine code, as `NativeCode.address`; 0 if there is none.
    numbers : bytes
        Its parameter words.
    places : list of BufferPlace
        Of its buffers, in order.
    scratch : list of int
        The sizes of scratch memory; -1 for the header of an empty pool of tapes.
    constants : list of ndarray
    copies : list of (int, BufferPlace, int)
        Results that no kernel writes: which one, what is copied there, and how many bytes.
    keep : object
        The owners of the machine code, and of the functions that it calls.
    """

    address: int
    numbers: bytes
    places: list[BufferPlace]
    scratch: list[int]
    constants: list[np.ndarray]
    copies: list[tuple[int, BufferPlace, int]]
    keep: Any


def native_program(exe: Executable) -> NativeProgram | None:
    """The native form of an executable; None if calls of it need Python."""
    if type(exe) is not Executable or exe.debug_nans:
        return None
    jaxpr = exe.simplified
    if any(
        isinstance(v.aval, TapeAval | StateAval) for v in (*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars)
    ):
        return None
    units = exe.steps
    kernels = [u for u in units if isinstance(u, KernelUnit) and u.route == "llvm" and not u.calls_python]
    return _Places(exe).program(kernels) if len(units) == len(kernels) <= 1 else None


@dataclass(frozen=True, eq=False)
class InlinedProgram:
    """A program that is a piece of straight-line code.

    Attributes
    ----------
    code : LLVMKernel
        A function of the addresses of the arguments, those of the results, and `ints` and `floats`.
    ints, floats : tuples
    """

    code: LLVMKernel
    ints: tuple[int, ...]
    floats: tuple[float, ...]

    @cached_property
    def digest(self) -> int:
        """A word that is the same for equal programs alone, and positive."""
        data = repr((self.code.entry, self.ints, [x.hex() for x in self.floats])).encode()
        return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1 | 1


def inlined_program(exe: Executable) -> InlinedProgram | None:
    """The text of a program of numbers for code that calls it, if it is short; nothing is compiled."""
    if type(exe) is not Executable or exe.debug_nans or len(exe.lowered) != 1:
        return None
    kernel, jaxpr = exe.lowered[0], exe.simplified
    if not isinstance(kernel, LoweredKernel) or kernel.scratch:
        return None
    if exe.options.backend != "llvm" or best_backend().name != "llvm":
        return None
    variables = [kernel.interface[storage][0] for storage in kernel.kernel.storages]
    if variables != [*jaxpr.invars, *jaxpr.outvars]:
        return None
    code = emit_inlined(kernel.kernel, exe.options)
    return None if code is None else InlinedProgram(code, kernel.ints, kernel.floats)


class _Places:
    """The places of a program's values."""

    def __init__(self, exe: Executable):
        self.jaxpr = exe.simplified
        self.constants = [tidy(c, v.aval.dtype) for v, c in zip(self.jaxpr.constvars, self.jaxpr.consts)]
        self.places: dict[Atom, BufferPlace] = {}
        for i, v in enumerate(self.jaxpr.invars):
            self.places[v] = BufferPlace("data", i)
        for i, v in enumerate(self.jaxpr.constvars):
            self.places[v] = BufferPlace("constant", i)

    def program(self, units: list[KernelUnit]) -> NativeProgram:
        """The program of these units, of which there is at most one."""
        first = len(self.jaxpr.invars)
        copies = []
        for j, a in enumerate(self.jaxpr.outvars):
            if a in self.places or isinstance(a, LiteralAtom):
                copies.append((j, self.read(a), a.aval.size * a.aval.dtype.itemsize))
            elif isinstance(a, Var):
                self.places[a] = BufferPlace("data", first + j)
        for unit in units:
            code = unit.code.code
            places = [self.place(unit, p) for p in unit.kernel.storages]
            numbers = packed_numbers(unit.ints, unit.floats)
            scratch = list(unit.scratch.values())
            address, keep = code.address, (code, unit.calls)  # type: ignore[attr-defined]
            return NativeProgram(address, numbers, places, scratch, self.constants, copies, keep)
        return NativeProgram(0, b"", [], [], self.constants, copies, None)

    def place(self, unit: KernelUnit, storage: str) -> BufferPlace:
        if storage in unit.scratch:
            return BufferPlace("scratch", list(unit.scratch).index(storage))
        return self.places[unit.interface[storage][0]]

    def read(self, a: Atom) -> BufferPlace:
        if isinstance(a, LiteralAtom):
            self.constants.append(tidy(a.value, a.aval.dtype))
            return BufferPlace("constant", len(self.constants) - 1)
        return self.places[a]
