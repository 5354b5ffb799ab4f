"""`BackwardState`: one argument that is empty in the forward pass and read in the backward pass.

In a program it is a number of type `StateAval`; the object stays outside. So a program is the same for every state, and
uses the number to find the object when a hook runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from typing import Any, NoReturn

import numpy as np

from ..errors import BackwardStateError
from ..runtime.context import LivingValues
from .aval import Aval
from .dtypes import INT64
from .trace import Tracer, current_trace, eval_trace
from .values import Param, Value


class StateAval(Aval):
    """The type of a `BackwardState` in a program."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__((), INT64)

    def strong(self) -> StateAval:
        """Itself."""
        return self

    def __eq__(self, other: object) -> bool:
        return type(other) is StateAval

    def __hash__(self) -> int:
        return hash(StateAval)

    def __str__(self) -> str:
        return "backward_state"


#: Whether a hook is running: it may read and set members, even under an outer transformation.
hook_runs: ContextVar[bool] = ContextVar("functrans_hook_runs", default=False)
_numbers = count()
_living: LivingValues[int, BackwardState] = LivingValues()


class BackwardState:
    """An argument that carries hooks: empty in the forward pass, filled afterwards, read in the backward pass.

    Pass one to a function that names hooks with `cotangent_hook` or `register_hook`, and set the hooks as attributes
    after the function has run. A hook is looked up when it runs, so setting another hook, or passing another state,
    compiles nothing.

    Attributes
    ----------
    proxy : Tracer
        The traced value of the state while a function is compiled; otherwise an ``AttributeError``.

    Raises
    ------
    BackwardStateError
        If an attribute is read or set while a function is traced; if the state is computed with, returned, mapped over
        or differentiated; if a function receives two; in the backward pass if a hook that it needs is not set.

    Notes
    -----
    Its cotangent is None. An attribute is a hook, a list of hooks that run in order, or anything that hooks want to
    read. A state may serve many calls; threads that set different hooks need one each.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.jit
    ... def loss(w, state):
    ...     h = ft.cotangent_hook(3.0 * w, state, "on_h")
    ...     return fnp.sum(h * h)
    >>> state = ft.BackwardState()
    >>> value, pull = ft.vjp(loss, fnp.asarray([1.0, 2.0]), state)
    >>> state.on_h = lambda ct: fnp.clip(ct, -10.0, 10.0)  # set after the forward pass
    >>> pull(1.0)
    (Array([18., 30.]), None)
    """

    __slots__ = ("__weakref__", "_members", "_number", "_tracer")
    aval = StateAval()
    shape = ()
    dtype = INT64
    __array_priority__ = 2000.0
    _members: dict[str, Any]
    _number: np.ndarray
    _tracer: Tracer | None

    def __init__(self) -> None:
        number = next(_numbers)
        for name, value in (("_members", {}), ("_number", np.array(number)), ("_tracer", None)):
            object.__setattr__(self, name, value)
        _living[number] = self

    @property
    def proxy(self) -> Tracer:
        """The traced value that stands for the state."""
        if self._tracer is None:  # `__getattr__` raises the error
            raise AttributeError
        return self._tracer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "proxy":
            raise AttributeError(
                "BackwardState.proxy exists only while a function is compiled that takes the state"
            )
        _only_backward(name, "read")
        try:
            return self._members[name]
        except KeyError:
            raise AttributeError(f"BackwardState has no '{name}'; {_listed(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _RESERVED:
            raise BackwardStateError(
                f"BackwardState: '{name}' is reserved and cannot name a hook; choose another name"
            )
        _only_backward(name, "set")
        self._members[name] = value

    def __delattr__(self, name: str) -> None:
        _only_backward(name, "deleted")
        if self._members.pop(name, self) is self:
            raise AttributeError(f"BackwardState has no '{name}'; {_listed(self)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._members]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (dict(self._members),)

    def __repr__(self) -> str:
        return f"BackwardState({', '.join(self._members)})"


_RESERVED = frozenset(("aval", "shape", "dtype", "proxy", *BackwardState.__slots__))


def _only_backward(name: str, done: str) -> None:
    if current_trace.get() is not eval_trace and not hook_runs.get():
        raise BackwardStateError(
            f"BackwardState: '{name}' was {done} in the forward pass, where the state is empty. Name the hook with "
            f"cotangent_hook(x, state, '{name}'), and set state.{name} after the forward pass"
        )


def _restored(members: dict[str, Any]) -> BackwardState:
    state = BackwardState()
    state._members.update(members)
    return state


def _listed(state: BackwardState) -> str:
    return f"set: [{', '.join(state._members)}]"


def _refuse(*args: Value, **kwargs: Param) -> NoReturn:
    raise BackwardStateError(
        "a BackwardState is not a number: only cotangent_hook, register_hook and calls of other functions take it"
    )


_BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
_OTHERS = (
    "neg",
    "pos",
    "abs",
    "invert",
    "lt",
    "le",
    "gt",
    "ge",
    "float",
    "int",
    "complex",
    "index",
    "iter",
    "getitem",
)
_PROTOCOLS = ("array", "array_ufunc", "array_function")
for _name in (*_BINARY, *[f"r{op}" for op in _BINARY], *_OTHERS, *_PROTOCOLS):
    setattr(BackwardState, f"__{_name}__", _refuse)


def stand_in(tracer: Tracer) -> BackwardState:
    """A traced state as a user's function receives it."""
    state = BackwardState()
    object.__setattr__(state, "_tracer", tracer)
    return state


def state_value(state: BackwardState) -> Any:
    """The value that flows through interpreters: for a state its tracer, otherwise the value itself."""
    return state if state._tracer is None else state._tracer


def state_number(state: Any) -> np.ndarray:
    """A state as kernels receive it: its number, in an array of rank 0."""
    return state._number if type(state) is BackwardState else np.asarray(state, INT64)


def state_of(value: Any) -> BackwardState:
    """The state that a value in a program stands for."""
    return value if type(value) is BackwardState else _living[int(value)]


def hooks_of(state: BackwardState, member: str, where: Any) -> list[Callable[..., Any]]:
    """The hooks set under a name.

    Raises
    ------
    BackwardStateError
        If none is set, or one is not callable; located at the line `where`, which names the hook.
    """
    value = state._members.get(member, _living)
    if value is _living:
        raise BackwardStateError(
            f"the backward pass needs '{member}' of the BackwardState, which was never set; {_listed(state)}. Set "
            f"state.{member} to a function, or to [] for no hook, before the backward pass",
            where,
        )
    hooks = list(value) if isinstance(value, list | tuple) else [value]
    for f in hooks:
        if not callable(f):
            raise BackwardStateError(
                f"'{member}' of the BackwardState is {str(f)[:60]!r} of type {type(f).__name__}; expected a function "
                "of the cotangent, or a list of functions",
                where,
            )
    return hooks
