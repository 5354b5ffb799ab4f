"""A jaxpr as a callable: kernels and host calls in sequence, behind a wrapper that costs little."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...control.callback import Replay, made_before
from ...control.interned import interned
from ...core.config import config, trace_key
from ...core.context import run_with
from ...core.ir import Eqn, Jaxpr, Var, subjaxprs
from ...core.locks import new_lock
from ...core.passes import extract
from ...core.printing import show
from ...core.source import Source
from ...core.tape import Tape, TapeAval
from ...primitives.tape import tape_is_full
from ..jaxpr.partition import HostStep, KernelStep, split
from ..jaxpr.simplify import inlined, simplify
from ..llvm.interrupts import has_long_loops
from ..loops import ir
from ..loops.blocked import with_blocks
from ..loops.build_loops import build
from ..loops.check import verify
from ..loops.collapse import collapse
from ..loops.outline import outline
from ..loops.plan import plan, scratch_bytes
from ..python.emit import emit_python
from ..python.runtime import NAMES
from .cache import kernels
from .compile import CompiledKernel, Options
from .debug_nans import look
from .explain_failure import evaluate_on_host
from .host_calls import Entry
from .wrapper import write_wrapper

#: Kernels that touch at least this many elements release the GIL.
LARGE = 20_000


def compile_jaxpr(jaxpr: Jaxpr) -> Executable:
    """The jaxpr as an `Executable`; kernels are compiled at its first call, or by `Executable.compile`.

    Options are read now, from `config`. Outside `jit`, whose functions count what is compiled for them, equal
    equations have one executable: those of an eager loop are traced at each call, with new rules of the user's.
    """
    if jaxpr.stats is not None:
        return Executable(jaxpr)
    plain = interned(inlined(jaxpr))
    return plain.derive(("executable", trace_key()), lambda: Executable(plain))


@dataclass(eq=False)
class KernelUnit:
    """One kernel of an executable.

    Attributes
    ----------
    kernel : Kernel
        Outlined.
    code : CompiledKernel
        May be shared with other executables.
    compiled_now : bool
        False where the cache had it.
    """

    kernel: ir.Kernel
    ints: tuple[int, ...]
    floats: tuple[float, ...]
    interface: dict[str, tuple[Var, int]]
    scratch: dict[str, int]
    large: bool
    code: CompiledKernel
    compiled_now: bool
    calls: tuple[Entry, ...] = ()

    @property
    def python_source(self) -> str:
        """The readable Python form, with this program's names."""
        return emit_python(self.kernel)

    @property
    def llvm(self) -> str:
        """The LLVM text given to Numba; empty on other routes."""
        return self.code.llvm

    @property
    def route(self) -> str:
        """How the kernel was made: 'intrinsic', 'njit' or 'python'."""
        return self.code.route


class Executable:
    """``exe(*arrays) -> list of ndarray``.

    Parameters
    ----------
    jaxpr : Jaxpr

    Attributes
    ----------
    call : callable
        The same as calling the object, a little quicker after the first call (ask for it anew then).
    kernels : list of KernelUnit
        Compiles if that has not happened yet.

    Notes
    -----
    Arguments are ndarrays, NumPy or Python scalars of the shapes and dtypes of ``jaxpr.in_avals``, with any
    strides; they are not modified. Results are new ndarrays that alias neither arguments nor each other.
    Several threads may call at once.
    """

    def __init__(self, jaxpr: Jaxpr):
        # Not the jaxpr itself: it keeps this object, and a cycle would keep its arrays alive.
        self._name = jaxpr.name
        self._stats = jaxpr.stats
        self._options = Options(config.strict, config.backend, config.checked)
        self.simplified = simplify(jaxpr, strict=config.strict)
        self.steps = split(self.simplified)
        self._specialize_below = config.specialize_below
        self._debug_nans = config.debug_nans
        self._units: dict[KernelStep, KernelUnit] | None = None
        self._lock = new_lock()

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the steps."""
        return self.call(*arrays)

    def call(self, *arrays: Any) -> list[np.ndarray]:
        """Run the steps; the first call compiles them and puts the wrapper in the place of this method."""
        return self.compile().call(*arrays)

    def compile(self) -> Executable:
        """Compile now what is not compiled; returns the executable itself."""
        with self._lock:
            if self._units is None:
                units = {s: self._build(s) for s in self.steps if isinstance(s, KernelStep)}
                failed = partial(_failed, self.simplified)
                seek = partial(look, self.simplified) if self._debug_nans else None
                wrapper = write_wrapper(self.simplified, self.steps, units, failed, seek)
                self.__dict__["call"] = wrapper
                self._units = units
        return self

    def _build(self, step: KernelStep) -> KernelUnit:
        nests = build(step.jaxpr, strict=self._options.strict)
        kernel = plan(_verified(with_blocks(collapse(_verified(nests.kernel)))), self._specialize_below)
        kernel.name = _identifier(self._name)
        work = sum(b.size for b in kernel.buffers)
        outlined, ints = outline(_verified(kernel), self._specialize_below)
        _verified(outlined)
        code, now = kernels.get(outlined, self._options)
        if self._stats is not None:
            self._stats.count_kernel(code.route, now)
        scratch = scratch_bytes(kernel)
        large = bool(work >= LARGE) or has_long_loops(outlined)
        return KernelUnit(
            outlined, ints, nests.floats, nests.interface, scratch, large, code, now, nests.calls
        )

    @property
    def kernels(self) -> list[KernelUnit]:
        """The compiled kernels, in the order of execution."""
        self.compile()
        assert self._units is not None
        return list(self._units.values())

    def as_text(self) -> str:
        """The program as readable Python kernels and host calls."""
        self.compile()
        assert self._units is not None
        parts = []
        for step in self.steps:
            if isinstance(step, HostStep):
                eqn = step.eqn
                text = show(extract(self.simplified, [eqn], eqn.outvars))
                parts.append(f"# host call:{text.splitlines()[1]}")
            else:
                parts.append(self._units[step].python_source)
        return "\n\n".join(parts) + "\n"


def _verified(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel itself, checked first where ``config.verify`` is set."""
    if config.verify:
        verify(kernel)
    return kernel


def _failed(
    jaxpr: Jaxpr,
    status: int,
    arrays: tuple[Any, ...],
    known: Mapping[Eqn, Sequence[Any]],
    made: Sequence[Any] = (),
) -> list[Any]:
    """What a call gives whose kernel reported failure: NumPy's error, or its results where it has none.

    `known` are the outputs of the host calls that were made before, `made` those of calls that kernels made, in order.
    """
    if status & ir.TAPE_FULL:
        raise tape_is_full(config.tape_limit, next(_tape_writers(jaxpr), None))
    outs = run_with(made_before, Replay(made), evaluate_on_host, jaxpr, arrays, known)
    return [
        x if isinstance(x, Tape) else np.array(x, v.aval.dtype, order="C")
        for x, v in zip(outs, jaxpr.outvars)
    ]


def _tape_writers(jaxpr: Jaxpr) -> Iterator[Source]:
    """Where the user wrote the loops that make tapes, those inside others first."""
    for e in jaxpr.eqns:
        for body in subjaxprs(e.params):
            yield from _tape_writers(body)
        if e.source is not None and any(isinstance(v.aval, TapeAval) for v in e.outvars):
            yield e.source


def _identifier(name: str) -> str:
    """A name for the kernel's Python form, in which functions like ``log`` keep theirs."""
    found = re.sub(r"\W", "_", name)
    if not found.isascii():
        return "kernel"
    return found if found.isidentifier() and found not in NAMES else f"kernel_{found}"
