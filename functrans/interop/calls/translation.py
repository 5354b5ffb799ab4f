"""A jitted function as a function of traced values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import typeof
from numba.extending import typeof_impl

from ...core import Tracer, aval_of
from ...numpy.scalar_types import ScalarType
from ...primitives import ops
from ...primitives.checks import check_p
from ...runtime.failures import Failure
from ...runtime.private.numba_names import from_dtype, types
from ...runtime.records import dataclass
from ..numba_parts import Dispatcher, TargetContext
from .machine import Machine
from .state import STATUS, Flag, flag_value
from .typed_ir import typed_function
from .values import LengthUnknown


@dataclass(frozen=True, eq=False)
class Raised:
    """Makes the exception that a ``raise`` of a jitted function raised, from the values of a run."""

    kinds: tuple[tuple[type[BaseException], tuple[Any, ...]], ...]
    flags: tuple[Flag, ...]

    def __call__(self, values: Sequence[Any]) -> BaseException:
        """The exception for the values of a run: the number of the failure, then those of its arguments."""
        number = int(values[0])
        kind, args = self.kinds[number - 1]
        known = dict(zip(self.flags, [v.item() for v in values[1:]], strict=True))
        return kind(*[known[a] if isinstance(a, tuple) and a in known else a for a in args])


@typeof_impl.register(ScalarType)
def _type_of_scalar_type(x: Any, context: TargetContext) -> Any:
    """``fnp.float32`` in code that Numba compiles, as Numba types ``np.float32``."""
    return types.NumberClass(from_dtype(x.dtype))


def numba_type(x: Any) -> Any:
    """Numba's type of a value, traced or not."""
    if isinstance(x, tuple):
        parts = [numba_type(v) for v in x]
        return types.BaseTuple.from_types(parts, type(x) if hasattr(x, "_fields") else None)
    if not isinstance(x, (Tracer, np.ndarray)):
        return typeof(x)
    aval = aval_of(x)
    dtype = from_dtype(np.dtype(aval.dtype))
    return types.Array(dtype, len(aval.shape), "C") if aval.shape else dtype


def translate(dispatcher: Dispatcher, args: Sequence[Any]) -> Any:
    """The result of a jitted function for traced arguments, computed by operations of functrans.

    Parameters
    ----------
    dispatcher : numba.core.dispatcher.Dispatcher
    args : sequence
        One for each parameter: traced values, numbers, arrays, None, tuples of these.

    Raises
    ------
    NumbaTranslationError
        If the function uses what has no translation.
    numba.core.errors.NumbaError
        What Numba raises for the function itself.
    """
    function = typed_function(dispatcher, tuple([numba_type(a) for a in args]))
    check_function(function)
    machine = Machine()
    machine.path = ((id(dispatcher), ""),)
    names = function.ir.arg_names
    values = [_value(machine, a, f"the argument '{n}'") for a, n in zip(args, names, strict=True)]
    try:
        result = machine.content(machine.run_function(function, values))
    except LengthUnknown:
        raise machine.unsupported(
            "this use of a slice whose length depends on the run", "loop over its elements, or reduce it"
        ) from None
    if machine.failures and STATUS in machine.state.flags:
        _raise_failures(machine)
    return result


def _value(machine: Machine, x: Any, name: str) -> Any:
    if isinstance(x, tuple):
        parts = [_value(machine, v, name) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if isinstance(x, (Tracer, np.ndarray)):
        aval = aval_of(x)
        x = ops.strong(x, aval.dtype)
        return machine.fresh(x, name) if aval.shape else x
    return x


def check_function(function: Any) -> None:
    """Refuse what is seen without running anything: generators, object mode."""
    machine = Machine()
    machine.state.frame.function = function
    if function.ir.is_generator:
        machine.here = function.ir.loc
        raise machine.unsupported("a generator")


def _raise_failures(machine: Machine) -> None:
    kinds = tuple([(kind, args) for _, kind, args in sorted(machine.failures.values(), key=lambda f: f[0])])
    flags = tuple([f for f in machine.state.flags if f != STATUS])
    status = flag_value(machine.state, STATUS)
    values = [flag_value(machine.state, f) for f in flags]
    failure = Failure("user", "a jitted function raised", exception=Raised(kinds, flags))
    check_p.bind(status == 0, status, *values, check=failure, debug=False)
