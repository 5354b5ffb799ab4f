"""A jaxpr as a callable: kernels and host calls in sequence, called through a fast wrapper."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...control.bodies.cache import interned
from ...control.callbacks.callback import Replay, made_before
from ...control.hooks.traced_hooks import Form, TracedHooks, sites, specialized, state_among
from ...core import (
    Eqn,
    Jaxpr,
    Source,
    StateAval,
    Tape,
    TapeAval,
    has_subjaxprs,
    new_lock,
    run_with,
    subjaxprs,
)
from ...core.debug_nans import looks_for_faults
from ...frontend.pytree import PyTreeDef
from ...passes.toolkit import eliminate_dead_code
from ...primitives.checks import check_p
from ...primitives.tape import tape_is_full
from ...runtime.config import config
from ...runtime.module_getattr import lazy_import
from ...runtime.passes import OF_CODE
from ...runtime.unusual import awaited, recorded
from ..backend import Options, Origin
from ..host.debug_nans import look
from ..host.explain_failure import call_host, evaluate_on_host, inputs
from ..jaxpr.simplify import inlined
from ..llvm.c.native_call import matcher
from ..loops import ir
from ..loops.show import show
from ..lower import LoweredKernel, lower
from ..steps import HostStep, Step
from ..undisturbed import undisturbed
from .cache import kernels
from .compile import CompiledKernel
from .memory import MemoryAnalysis, bytes_accessed, memory_analysis
from .unit import KernelUnit
from .wrapper import Public, write_wrapper

texts = lazy_import("functrans.lowering.run.texts")
_log = logging.getLogger("functrans")


def compile_jaxpr(
    jaxpr: Jaxpr,
    donated: tuple[int, ...] = (),
    timed: bool = False,
    compiled: Callable[[Executable], None] | None = None,
) -> Executable:
    """The jaxpr as an `Executable`; kernels are compiled at its first call, or by `Executable.compile`.

    A call takes the memory of `donated` inputs: it may overwrite them, and return them. The kernels of a `timed` one
    count their time. `compiled` is called with the executable once it is compiled.

    Options are read from `config` now. Outside `jit`, whose functions count compilations, equal equations share one
    executable: those of an eager loop are traced at each call, with new user-defined rules.
    """
    if sites(jaxpr):
        return GuardedExecutable(jaxpr, timed)
    if jaxpr.stats is not None:
        return Executable(jaxpr, donated, timed=timed, compiled=compiled)
    plain = interned(inlined(jaxpr))
    return plain.derive(("executable", donated, timed), lambda: Executable(plain, donated, timed=timed))


class Executable:
    """``exe(*arrays) -> list of ndarray``.

    Parameters
    ----------
    jaxpr : Jaxpr
    donated : tuple of int
        See `compile_jaxpr`.
    cpu : str
        See `Options`.
    timed : bool
        See `Options`.
    compiled : callable, optional
        See `compile_jaxpr`.

    Attributes
    ----------
    call : callable
        The same as calling the object, slightly faster after the first call (read it again then).
    kernels : list of KernelUnit
        The compiled kernels; reading them compiles if necessary.
    lowered : list
        The kernels before they are compiled, host calls and views, in the order of execution.
    options : Options
    debug_nans : bool
        Whether each call looks for NaNs, or infinities, in the results.
    overwrites_last : bool
        Whether donated inputs are intact until the last step runs, which overwrites them only if it cannot fail.

    Notes
    -----
    Arguments are ndarrays, NumPy or Python scalars of the shapes and dtypes of ``jaxpr.in_avals``, with any
    strides; they are not modified, but donated ones, which must be writable and C-contiguous. Results are ndarrays that
    alias neither the other arguments nor each other.
    Several threads may call at once.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        donated: tuple[int, ...] = (),
        cpu: str = "native",
        timed: bool = False,
        compiled: Callable[[Executable], None] | None = None,
    ):
        # Not the jaxpr itself: it keeps this object, and a cycle would keep its arrays alive.
        self._stats = jaxpr.stats
        self.options = Options(
            config.strict,
            config.backend,
            config.checked,
            config.specialize_below,
            cpu,
            config.without & OF_CODE,
            timed,
        )
        self._donated = donated
        self._on_compiled = compiled
        # Locating the origin of a NaN or an infinity needs the inputs.
        program = recorded("lower", lower, jaxpr, self.options, () if looks_for_faults() else donated)
        self.simplified = program.jaxpr
        self.overwrites_last = not any(s.updates for s in program.steps[:-1] if isinstance(s, LoweredKernel))
        self.debug_nans = looks_for_faults()
        self.lowered = program.steps
        self._steps: list[Step] | None = None
        self._lock = new_lock()

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the steps."""
        return self.call(*arrays)

    def call(self, *arrays: Any) -> list[np.ndarray]:
        """Run the steps; the first call compiles them and replaces this method by the wrapper."""
        return self.compile().call(*arrays)

    def compile(self) -> Executable:
        """Compile what is not compiled yet; returns the executable itself."""
        with awaited(self._lock):
            if self._steps is None:
                start = time.perf_counter()
                steps = [self._compiled(s) if isinstance(s, LoweredKernel) else s for s in self.lowered]
                call = self._wrapper(steps)
                if config.log_compiles:
                    types = ", ".join(map(str, self.simplified.in_avals))
                    seconds = time.perf_counter() - start
                    _log.warning("Compiled %s for (%s) in %.3f s", self.simplified.name, types, seconds)
                # In one call of C: after an interrupt, or a fork, between the two the program called itself for ever.
                vars(self).update(call=call, _steps=steps)
        then, self._on_compiled = self._on_compiled, None
        if then is not None:
            undisturbed(then, self)
        return self

    def _wrapper(self, steps: Sequence[Step], public: Public | None = None) -> Callable[..., Any]:
        on_failure = partial(failed, self.simplified)
        seek = partial(look, self.simplified) if self.debug_nans else None
        return write_wrapper(self.simplified, steps, on_failure, seek, self._donated, public)

    def fast_call(
        self, leaves: Sequence[Any], out_tree: PyTreeDef, weak: Sequence[bool]
    ) -> tuple[Callable[[tuple[Any, ...]], bool], Callable[..., Any]] | None:
        """The quickest way to run the program on arguments like these, each an array or a number.

        Returns
        -------
        tuple of callables, or None
            ``match(leaves)``, whether a tuple is like the arguments; and ``call(*leaves)``, the result for a user: a
            tree `out_tree` of `Array`, or of `WeakArray` where `weak` is set. None where there is no such way.
        """
        self.compile()
        if self.debug_nans or self.options.backend == "python":
            return None
        if any(
            isinstance(v.aval, TapeAval | StateAval)
            for v in (*self.simplified.invars, *self.simplified.outvars)
        ):
            return None
        match = matcher(leaves)
        if match is None:
            return None
        return match, self._wrapper(self.steps, Public(tuple(map(type, leaves)), out_tree, tuple(weak)))

    def _compiled(self, lowered: LoweredKernel) -> KernelUnit:
        code, origin = recorded(_kind_of, kernels.get, lowered.kernel, self.options)
        if self._stats is not None:
            self._stats.count_kernel(code.route, origin)
        return KernelUnit(**vars(lowered), code=code)

    @property
    def steps(self) -> list[Step]:
        """The kernels, and the host calls and views between them, in the order of execution."""
        self.compile()
        assert self._steps is not None
        return self._steps

    @property
    def form(self) -> Executable:
        """The program whose steps run: this one."""
        return self

    @property
    def kernels(self) -> list[KernelUnit]:
        """The compiled kernels, in the order of execution."""
        return [step for step in self.steps if isinstance(step, KernelUnit)]

    def as_text(self, dialect: str = "python") -> str:
        """The kernels and host calls in a form of `texts`."""
        text: str = texts.text_of(self.simplified, self.lowered, self.options, dialect)
        return text

    def kernel_numbers(self) -> dict[Eqn, int]:
        """The number of the kernel that computes each equation of the simplified program; -1 for a host call."""
        numbers = dict.fromkeys([step.eqn for step in self.lowered if isinstance(step, HostStep)], -1)
        kernels = [step for step in self.lowered if isinstance(step, LoweredKernel)]
        return numbers | {e: i for i, step in enumerate(kernels) for e in step.eqns}

    def is_lowered_as(self, other: Executable) -> bool:
        """Whether the kernels of another one, of the same jaxpr, have the same loops and numbers."""
        mine, others = (
            [(show(s.kernel), s.ints, s.scratch, s.large) for s in e.lowered if isinstance(s, LoweredKernel)]
            for e in (self, other)
        )
        return mine == others

    def memory_analysis(self) -> MemoryAnalysis:
        """The memory that a call takes."""
        return memory_analysis(self.simplified, self.steps, self._donated)

    def bytes_accessed(self) -> int:
        """The bytes that steps read and write, each array of a step once."""
        return bytes_accessed(self.lowered)


#: The most forms of one program in the cache; beyond it, all are dropped.
MOST_FORMS = 64


class GuardedExecutable(Executable):
    """A program with inline hooks: each call traces them, and compiles the program for those that are new."""

    def __init__(self, jaxpr: Jaxpr, timed: bool = False):
        # Not the jaxpr itself, which keeps this object.
        self._jaxpr = jaxpr.replace()
        self._timed = timed
        self._hooks = TracedHooks(sites(jaxpr), inlined)
        self._forms: list[tuple[Form, Executable]] = []
        self._lock = new_lock()
        self.overwrites_last = True  # it overwrites nothing

    def call(self, *arrays: Any) -> list[np.ndarray]:
        """Run the program with the hooks that are set now."""
        form = self._hooks.form(state_among(self._jaxpr, arrays))
        program = self._compiled_earlier(form)
        if program is None:
            program = Executable(specialized(self._jaxpr, form.bodies()), timed=self._timed)
            with self._lock:
                if len(self._forms) >= MOST_FORMS:
                    self._forms.clear()
                self._forms.insert(0, (form, program))
        return program.call(*arrays)

    def _compiled_earlier(self, form: Form) -> Executable | None:
        return next((program for known, program in tuple(self._forms) if known == form), None)

    def compile(self) -> Executable:
        """None yet: the hooks are known only when it is called."""
        return self

    def fast_call(
        self, leaves: Sequence[Any], out_tree: PyTreeDef, weak: Sequence[bool]
    ) -> tuple[Callable[[tuple[Any, ...]], bool], Callable[..., Any]] | None:
        """None: each call checks the hooks."""
        return None

    @property
    def steps(self) -> list[Step]:
        """Those of the compiled forms."""
        return [step for _, program in self._forms for step in program.steps]

    @property
    def form(self) -> Executable:
        """The form that ran last; before the first call, the program with its hooks as host calls."""
        return self._forms[0][1] if self._forms else Executable(self._jaxpr)

    def as_text(self, dialect: str = "python") -> str:
        """The compiled forms; before the first call, the program with its hooks as host calls."""
        return "\n\n".join([p.as_text(dialect) for _, p in self._forms] or [self.form.as_text(dialect)])


def _kind_of(made: tuple[CompiledKernel, Origin]) -> str:
    """What the time belongs to in which a kernel was found or compiled."""
    return "llvm" if made[1] == "compiled" else "cache"


def failed(
    jaxpr: Jaxpr,
    status: int,
    arrays: tuple[Any, ...],
    known: Mapping[Eqn, Sequence[Any]],
    made: Sequence[Any] = (),
) -> list[Any]:
    """The result of a call whose kernel reported failure: NumPy's error, or NumPy's results if it has none.

    `known` holds the results of earlier host calls, `made` those of host calls inside kernels, in order.
    """
    if status & ir.TAPE_FULL:
        raise tape_is_full(config.tape_limit, next(_tape_writers(jaxpr), None))
    if not known and not made:
        _run_checks(jaxpr, arrays)
    outs = run_with(made_before, Replay(made), evaluate_on_host, jaxpr, arrays, known)
    return [
        x if isinstance(x, Tape) else np.array(x, v.aval.dtype, order="C")
        for x, v in zip(outs, jaxpr.outvars)
    ]


def _run_checks(jaxpr: Jaxpr, arrays: tuple[Any, ...]) -> None:
    """Raise what a check of a program with loops raises, if nothing else in it can fail.

    A kernel computes the operands of the check: NumPy would take thousands of times as long for a loop.
    """
    failing = [e for e in jaxpr.eqns if e.effects.may_raise]
    if any(e.primitive is not check_p for e in failing):
        return
    if not any(has_subjaxprs(e.params) for e in jaxpr.eqns):
        return
    rest = [e for e in jaxpr.eqns if e not in failing]
    for e in failing:
        plain = eliminate_dead_code(jaxpr.replace(eqns=rest, outvars=list(e.invars)))
        operands = jaxpr.derive(("operands", e), partial(Executable, plain))
        call_host(e, operands(*inputs(jaxpr, arrays)))


def _tape_writers(jaxpr: Jaxpr) -> Iterator[Source]:
    """The lines where the user wrote loops that make tapes, inner loops first."""
    for e in jaxpr.eqns:
        for body in subjaxprs(e.params):
            yield from _tape_writers(body)
        if e.source is not None and any(isinstance(v.aval, TapeAval) for v in e.outvars):
            yield e.source
