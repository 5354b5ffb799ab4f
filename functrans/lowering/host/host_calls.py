"""Host calls inside the loops of a kernel: Python evaluates one equation in the middle of native code.

An equation of a body that must run on the host becomes one of `host_p`, whose kernel rule is a single statement of the
loop IR. It identifies the equation by a number passed at run time, so that the kernel's code does not depend on it.
Native code calls `from_kernel` with that number and the addresses of the operands and results; an exception stays
pending, and the kernel leaves its loops and propagates it (`lowering/llvm/c/native_call.py`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from ...control.bodies.building import is_host
from ...control.callbacks.callback import made_before
from ...core import Aval, Block, BlockEmitter, Buffer, Effect, Eqn, Jaxpr, Primitive, Var
from ...runtime.context import LivingValues
from ...runtime.unusual import unusual
from .explain_failure import call_host, call_host_into

_WORD = ctypes.sizeof(ctypes.c_void_p)


class HostEquation:
    """An equation of a kernel that Python evaluates; it must stay alive as long as the kernel runs.

    Attributes
    ----------
    number : int
        The number by which the kernel identifies it.
    counts : bool
        Whether the number of calls matters.
    """

    __slots__ = ("__weakref__", "avals", "counts", "eqn", "number")

    def __init__(self, eqn: Eqn):
        self.eqn = eqn
        self.number = next(_numbers)
        self.avals = [a.aval for a in (*eqn.invars, *eqn.outvars)]
        self.counts = not eqn.effects.shareable
        _entries[self.number] = self

    def run(self, memory: Sequence[np.ndarray]) -> None:
        """Evaluate the equation on the arrays of its operands, which come first, and write those of its results."""
        n = len(self.eqn.invars)
        if self.eqn.primitive.into is not None:
            call_host_into(self.eqn, memory[:n], memory[n:])
        else:
            args = [x.copy() for x in memory[:n]]  # the loop overwrites them later
            outs = call_host(self.eqn, args)
            for target, x in zip(memory[n:], outs, strict=True):
                np.copyto(target, np.reshape(x, target.shape), casting="unsafe")
        log = made_before.get()
        if log is not None and self.counts:
            log.append([x.copy() for x in memory[n:]])


_numbers = count()
_entries: LivingValues[Any, Any] = LivingValues()


def note_native(entry: Any, sizes: Sequence[int]) -> None:
    """Let kernels written in Python call what native ones call by its address, which is its number.

    Its first operand is the array of `sizes`, since functions of arrays of other sizes have the same machine code.
    """
    _entries[entry.number, *sizes] = entry


def from_kernel(number: int, addresses: int) -> None:
    """A call from native code: the equation's number, and the array of addresses of its operands and results."""
    entry = _entries[number]
    words = (ctypes.c_size_t * len(entry.avals)).from_address(addresses)
    memory = [_array(place, aval) for place, aval in zip(words, entry.avals)]
    recorder = unusual.recorder
    if recorder is None:
        entry.run(memory)
    else:
        recorder.host(entry.eqn, number, entry.run, (memory,))


def main_thread() -> int:
    """The thread in which Python runs signal handlers."""
    return threading.main_thread().ident or 0


def from_python(number: int, *memory: Any) -> None:
    """The same from a Python kernel: operands and results are arrays, or pairs of an array and an offset."""
    entry = _entries.get(number) or _entries[number, *_whole(memory[0])[0].reshape(-1)]
    arrays = []
    for x, aval in zip(memory, entry.avals, strict=True):
        whole, offset = _whole(x)
        elements = whole.reshape(-1)[offset : offset + aval.size]
        arrays.append(elements.view(aval.dtype).reshape(aval.shape))
    entry.run(arrays)


def _whole(x: Any) -> tuple[np.ndarray, int]:
    return x if isinstance(x, tuple) else (x, 0)


def _array(address: int, aval: Aval) -> np.ndarray:
    """The memory at an address."""
    nbytes = aval.size * aval.dtype.itemsize
    if not nbytes:
        return np.empty(aval.shape, aval.dtype)
    memory = (ctypes.c_char * nbytes).from_address(address)
    return np.frombuffer(memory, aval.dtype).reshape(aval.shape)


# --- equations ----------------------------------------------------------------------------------------------


def _host_kernel(k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, eqn: Eqn) -> None:
    k.host_call(HostEquation(eqn), [*operands, *results[: len(eqn.outvars)]], len(operands))


def _silent_kernel(
    k: BlockEmitter, operands: Sequence[Buffer], results: Sequence[Buffer], *, eqn: Eqn
) -> None:
    rule = eqn.primitive.kernel
    assert isinstance(rule, Block)
    rule.emit(k, operands, [], **eqn.params)


def _abstract(*avals: Aval, eqn: Eqn) -> tuple[Aval, ...]:
    return tuple([v.aval for v in eqn.outvars])


def _effects(*, eqn: Eqn) -> Effect:
    return eqn.effects


def _impl(*args: Any, eqn: Eqn) -> tuple[Any, ...]:
    return call_host(eqn, args)


#: An equation that Python evaluates from inside a kernel.
host_p = Primitive(
    "host", _abstract, _impl, kernel=Block(_host_kernel), effects=_effects, multiple_results=True
)
#: A loop or a branch without results, whose body contains host calls.
silent_p = Primitive(
    "silent", _abstract, _impl, kernel=Block(_silent_kernel), effects=_effects, multiple_results=True
)


def with_host_calls(jaxpr: Jaxpr) -> Jaxpr:
    """An equivalent jaxpr whose equations all have kernel rules and results."""
    eqns = [_with_rule(e) for e in jaxpr.eqns]
    if all(a is b for a, b in zip(eqns, jaxpr.eqns)):
        return jaxpr
    return jaxpr.replace(eqns=eqns)


def _with_rule(eqn: Eqn) -> Eqn:
    host = is_host(eqn)
    if eqn.outvars and not host:
        return eqn
    nothing = Var(Aval((), np.dtype(bool)))
    return eqn.replace(
        primitive=host_p if host else silent_p, outvars=eqn.outvars or (nothing,), params={"eqn": eqn}
    )
