"""``autocast``: products in low precision, delicate operations in high precision, by a list of operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from ..arrays.autocast import ambient, ambient_scope, autocasting
from ..arrays.autocast_rules import AutocastScope, checked_rules, target
from ..core.dtypes import FLOAT32
from ..core.values import DTypeLike
from ..errors import ArgumentError
from ..frontend.checked import checked
from ..runtime.config import Patch, config
from ..runtime.context import Override
from ..runtime.unusual import unusual

F = TypeVar("F", bound=Callable[..., Any])


def patch_of(
    dtype: np.dtype, enabled: bool, rules: Iterable[tuple[str, str]], cached: bool, outer: Patch | None
) -> Patch:
    """The overrides of a block within the blocks that `outer` stands for."""
    autocasting.used = unusual.used = True
    around = None if outer is None else outer.overrides.get("autocast_scope")
    scope = AutocastScope(dtype, rules, cached, around)
    return Patch({"autocast": scope.state() if enabled else None, "autocast_scope": scope}, outer)


class AutocastBlock(Override):
    """What `autocast` returns: a context manager, and a decorator."""

    __slots__ = ()

    def __call__(self, f: F) -> F:
        """The function, under autocast during its calls."""
        if inspect.isgeneratorfunction(f) or inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f):
            raise ArgumentError(
                f"autocast cannot decorate {f.__qualname__}: a generator or coroutine runs after its call has "
                "returned. Write `with functrans.autocast(...):` around the operations inside of it"
            )
        return super().__call__(f)


@checked
def autocast(
    dtype: DTypeLike = "float32",
    *,
    enabled: bool = True,
    cache_casts: bool = True,
    rules: Mapping[str, str] | None = None,
) -> AutocastBlock:
    """Run matrix products in a narrower dtype and sensitive operations in float64, in a block or during calls.

    Products of matrices, and convolutions, cast their operands to `dtype`; exponentials, logarithms, powers, sums,
    norms, decompositions and Fourier transforms cast theirs to float64; what joins arrays uses the widest operand's
    dtype. All other operations take what they get. Each is listed in the documentation, under Autocast.

    Parameters
    ----------
    dtype : dtype-like
        The target: only real floating-point operands that are wider are cast to it. Integers, booleans, complex
        numbers and Python's numbers are never cast.
    enabled : bool
        False turns autocast off, as an island within another block.
    cache_casts : bool
        Whether an array that several operations use is cast once in the outermost block, not at each use.
    rules : mapping of str to {'low', 'wide', 'promote', 'none'}, optional
        What to do otherwise than by the list, by the name of the operation: ``{"exp": "none"}``. The rules of an
        enclosing block that it does not name stay.

    Returns
    -------
    context manager and decorator
        May be nested and reused. The previous state returns however the block ends.

    Raises
    ------
    ArgumentValueError
        If `dtype` is no floating-point dtype, or `rules` names no operation or no policy.

    Notes
    -----
    It applies to functions of functrans, and to operators, methods and NumPy's functions on instances of `Array`
    and traced values; what NumPy does with plain ndarrays, it cannot see. Casts are part of the program:
    derivatives follow them, and the gradient of a parameter has its dtype. What `jit` traced under autocast is cached
    separately.

    A thread started inside the block does not see it.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> w, x = fnp.ones((3, 3)), fnp.ones(3)
    >>> def loss(w):
    ...     h = w @ x
    ...     return fnp.sum(fnp.exp(h)), h.dtype
    >>> with ft.autocast("float32"):
    ...     gradient, used = ft.grad(loss, has_aux=True)(w)
    >>> used, gradient.dtype
    (dtype('float32'), dtype('float64'))
    """
    to = target(dtype)
    own = checked_rules(rules)
    return AutocastBlock(config._store.patch, partial(patch_of, to, enabled, own, cache_casts))


#: The public modules that hold operations; most load at the first use.
_ROOMS = (
    "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "ops", "image", "scipy.linalg", "scipy.fft",
    "scipy.special", "scipy.signal", "scipy.ndimage", "scipy.integrate", "scipy.interpolate", "scipy.stats",
)  # fmt: skip


def _rooms() -> list[ModuleType]:
    return [import_module(f"functrans.{name}") for name in _ROOMS]


def own_name(name: str) -> str | None:
    """The name of the function that a public module has under this name; None if there is none."""
    for room in _rooms():
        function = getattr(room, name, None) if name in dir(room) else None
        if callable(function):
            return function.__name__
    return None


def names() -> list[str]:
    """The names of all operations."""
    return [name for room in _rooms() for name in dir(room) if callable(getattr(room, name))]


def is_autocast_enabled() -> bool:
    """Whether autocast is on at this point of the program.

    Examples
    --------
    >>> import functrans as ft
    >>> with ft.autocast():
    ...     ft.is_autocast_enabled()
    True
    """
    return ambient() is not None


def get_autocast_dtype() -> Any:
    """The target of the innermost block of autocast; float32 outside.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.get_autocast_dtype()
    dtype('float32')
    """
    scope = ambient_scope()
    return FLOAT32 if scope is None else scope.dtype
