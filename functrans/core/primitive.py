"""A primitive: one frozen record with every rule in sight.

Interpreters look in the record and nowhere else; there are no tables of rules. What each slot is called with:

============== =========================================================== ======================================
slot           call                                                        returns
============== =========================================================== ======================================
``abstract``   ``(*avals, **params)``                                      Aval (tuple of Avals if `multiple`)
``impl``       ``(*arrays, **params)``, NumPy or Python scalars too        ndarray or NumPy scalar (tuple)
``jvp``        ``(primals, tangents, **params)``, a tangent may be a Zero  ``(out, tangent)`` (tuples if `multiple`)
``transpose``  ``(ct, *args, **params)``, linear args are `Linear`         list: a cotangent or None for each arg
``batch``      ``(size, args, dims, **params)``, dims are int or None      ``(out, dim)`` (tuples if `multiple`)
``kernel``     a rule of `functrans.core.kernel`                           see there
``factors``    each ``(ans, *arrays, **params)``, or None; elementwise     what multiplies that operand's tangent
``linearize``  ``(primals, tangents, **params)``, higher-order only        ``(outs, tangents)``
``stage``      ``(trace, args, params)``, for params that are functions    ``(args, params)`` of the equation
``expand``     ``(*avals, **params)``                                      the Jaxpr that a kernel gets in its place
============== =========================================================== ======================================

`jvp`, `transpose` and `batch` bind primitives (never functions of ``functrans.numpy``); the interpreter has then
already stepped down one level.
"""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .aval import Aval
from .errors import NoRuleError
from .kernel import KernelRule
from .source import Source
from .trace import current_trace


class Effect(enum.Flag):
    """What an equation does besides computing its outputs. Each pass states its rule for each.

    * ``RAISE``: may raise (a bad index, a matrix that is not positive definite). Not removed as dead; may be shared
      with an equal equation; not moved before a guard.
    * ``HOST``: calls Python. Keeps its order among host calls; not removed, not duplicated.
    * ``HOOK``: carries a user's hook. Kept, fires once.
    * ``DONATE``: consumes an operand's buffer.
    * ``COMMUNICATE``: talks to other processes; order kept.
    """

    NONE = 0
    RAISE = enum.auto()
    HOST = enum.auto()
    HOOK = enum.auto()
    DONATE = enum.auto()
    COMMUNICATE = enum.auto()


class Linear:
    """Stands for a linear argument in a transpose rule: only its aval is known.

    `source`, the user's line that computes it, is set where ``config.debug_nans`` may need it; elsewhere it is missing.
    """

    __slots__ = ("aval", "source")
    aval: Aval
    source: Source | None

    def __init__(self, aval: Aval):
        self.aval = aval

    @property
    def dtype(self) -> NoReturn:
        """Refused: a rule asks for it where it wants a value, of which there is none."""
        self._refuse()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refused, for the same reason; NumPy would take it for an object that is true."""
        self._refuse()

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused, for the same reason."""
        self._refuse()

    def __int__(self) -> NoReturn:
        """Refused, for the same reason: it would be the number of a branch."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoRuleError("it multiplies, divides or chooses by values of which both depend on its arguments")

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


def _no_effects(**params: Any) -> Effect:
    return Effect.NONE


def _file_of_caller() -> str:
    """The file the record is written in."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, "<string>"):
        frame = frame.f_back
    return frame.f_code.co_filename


def _in_package(file: str) -> str:
    """A file of this package relative to the folder that the package is in; any other as it is."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.relpath(file, root) if file.startswith(root) else file


@dataclass(frozen=True, eq=False)
class Primitive:
    """One operation with all its rules; see the module's table for how each slot is called."""

    name: str
    abstract: Callable[..., Any]
    impl: Callable[..., Any]
    jvp: Callable[..., Any] | None = None
    transpose: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    kernel: KernelRule | None = None
    factors: tuple[Callable[..., Any] | None, ...] | None = None  # as jvp, which it saves linearize
    linear: bool = False  # in the first operand, for all others fixed: the tangent goes the way of the value
    linearize: Callable[..., Any] | None = None
    stage: Callable[..., Any] | None = None
    expand: Callable[..., Any] | None = None
    effects: Callable[..., Effect] = _no_effects
    multiple: bool = False
    inlined: bool = (
        False  # stands for the equations of its parameter `jaxpr`: a kernel gets these in its place
    )
    ruled: bool = (
        False  # though inlined, with rules of its own: so it stays one equation until there are kernels
    )
    weak: bool = False  # the output is weak (a Python scalar) where every operand is
    show: Callable[..., str] | None = None
    file: str = field(default_factory=_file_of_caller)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current trace."""
        return current_trace.get().process(self, args, params)

    def rule(self, slot: str) -> Callable[..., Any]:
        """The rule in `slot`, or a `NoRuleError` that names the file to open."""
        found = getattr(self, slot)
        if found is None:
            raise NoRuleError(
                f"primitive '{self.name}' has no {slot} rule; write it in its record in {_in_package(self.file)}"
            )
        return found

    def __repr__(self) -> str:
        return self.name
