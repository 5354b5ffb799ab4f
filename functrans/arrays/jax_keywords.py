"""Keyword arguments of JAX's functions that have no effect on one CPU: the values they may have, and the functions.

`checked` adds them to the functions, so that a program written for JAX runs unchanged. They are not in the signatures,
which are NumPy's. A keyword argument that has an effect is a parameter of its function instead.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from .arguments import FLAG, ArgumentKind, Unfit, kind_of


def _one_of(description: str, fits: Callable[[Any], bool]) -> ArgumentKind:
    def take(x: Any) -> Any:
        if x is not None and not fits(x):
            raise Unfit
        return x

    return ArgumentKind(f"{description} or None", take)


def _is_precision(x: Any) -> bool:
    return isinstance(x, str | enum.Enum) or (
        isinstance(x, tuple) and len(x) == 2 and all(map(_is_precision, x))
    )


def _is_place(x: Any) -> bool:
    """Whether it is the CPU, or a sharding over a mesh whose ranks have the whole array."""
    check_whole = getattr(x, "check_whole", None)
    if check_whole is not None:
        check_whole("sharding")
        return True
    return isinstance(x, str) and x == "cpu"


def _are_places(x: Any) -> bool:
    if isinstance(x, tuple | list):
        return all(map(_are_places, x))
    if isinstance(x, dict):
        return all(map(_are_places, x.values()))
    return x is None or _is_place(x)


DEVICE = _one_of("'cpu', the only device,", _is_place)
_PLACES = _one_of("'cpu', the only device, tuples or dicts of such", _are_places)
_PRECISION = _one_of("a string, a lax.Precision, a pair of them", _is_precision)
_ACCURACY = _one_of(
    "a lax.Tolerance, a lax.AccuracyMode", lambda x: not isinstance(x, str | int | float | list)
)
_CHOICE = _one_of("a string, a member of an enumeration", lambda x: isinstance(x, str | enum.Enum))
_EMPTY = _one_of(
    "() (to sum gradients over an axis, use lax.psum)", lambda x: isinstance(x, tuple | list) and not x
)
_OPTIONS = _one_of("a dict", lambda x: isinstance(x, dict))
_NUMBER = kind_of(float | None)
_SIZE = kind_of(int | None)

#: (keyword arguments, what they may be, functions by their public names)
_ROWS: list[tuple[str, Any, str]] = [
    (
        "out_sharding",
        DEVICE,
        """numpy.arange numpy.array numpy.asarray numpy.bincount numpy.broadcast_to numpy.dot numpy.empty numpy.full
        numpy.full_like numpy.ones numpy.ones_like numpy.percentile numpy.quantile numpy.ravel numpy.repeat
        numpy.reshape numpy.tensordot numpy.zeros numpy.zeros_like numpy.einsum numpy.matmul lax.broadcast
        lax.broadcast_in_dim lax.broadcasted_iota lax.dot lax.dot_general lax.empty lax.reduce_sum lax.reshape""",
    ),
    ("sharding", DEVICE, "lax.full lax.full_like"),
    ("in_shardings out_shardings", _PLACES, "jit"),
    ("device backend", DEVICE, "jit"),
    ("inline keep_unused", FLAG, "jit"),
    ("compiler_options", _OPTIONS, "jit"),
    ("device", DEVICE, "numpy.array"),
    ("reduce_axes", _EMPTY, "grad value_and_grad vjp linear_transpose"),
    ("concrete", FLAG, "checkpoint remat"),
    ("_split_transpose", FLAG, "lax.scan"),
    (
        "precision",
        _PRECISION,
        """numpy.convolve numpy.correlate numpy.dot numpy.inner numpy.tensordot numpy.vdot numpy.einsum numpy.matmul
        numpy.vecdot numpy.linalg.multi_dot""",
    ),
    (
        "accuracy",
        _ACCURACY,
        "lax.cbrt lax.cos lax.exp lax.exp2 lax.expm1 lax.log lax.log1p lax.logistic lax.rsqrt lax.sin lax.sqrt "
        "lax.tan lax.tanh",
    ),
    ("assume_unique_indices", FLAG, "numpy.delete"),
    ("unique_indices indices_are_sorted", FLAG, "numpy.take"),
    ("unroll", _SIZE, "numpy.polyval"),
    ("method", _CHOICE, "numpy.linalg.slogdet scipy.linalg.polar scipy.linalg.solve_sylvester"),
    ("implementation", _CHOICE, "lax.linalg.eig lax.linalg.eigh"),
    ("algorithm", _CHOICE, "lax.linalg.svd"),
    ("enable_eigvec_derivs use_magma", FLAG, "lax.linalg.eig"),
    ("turbo", FLAG, "scipy.linalg.eigh"),
    ("debug", FLAG, "scipy.linalg.solve scipy.linalg.solve_triangular"),
    ("lapack_driver", _CHOICE, "scipy.linalg.svd"),
    ("upper_triangular", FLAG, "scipy.linalg.expm"),
    ("max_squarings", _SIZE, "scipy.linalg.expm"),
    ("eps tol", _NUMBER, "scipy.linalg.polar scipy.linalg.solve_sylvester"),
    ("max_iterations", _SIZE, "scipy.linalg.polar"),
    ("blocksize", _SIZE, "scipy.linalg.sqrtm"),
]


def _by_function() -> dict[str, dict[str, ArgumentKind]]:
    table: dict[str, dict[str, ArgumentKind]] = {}
    for keywords, kind, functions in _ROWS:
        for function in functions.split():
            table.setdefault(function, {}).update(dict.fromkeys(keywords.split(), kind))
    return table


#: Public name of a function -> its further keyword arguments and their kinds.
WITHOUT_EFFECT = _by_function()
#: The same by namespace and name, without the namespaces between.
_BY_NAME = {
    (path[: path.find(".") + 1], path.rpartition(".")[2]): kinds for path, kinds in WITHOUT_EFFECT.items()
}


def take_keywords(function: str, options: dict[str, Any]) -> None:
    """Check and remove those that `function` takes, for a function without a signature."""
    for name, kind in WITHOUT_EFFECT.get(function, {}).items():
        value = options.pop(name, None)
        if value is not None:
            kind.check(value, function.rpartition(".")[2], name)


def keywords_of(function: Callable[..., Any]) -> dict[str, ArgumentKind]:
    """The keyword arguments without effect that a public function takes, and what they may be."""
    room, name = function.__module__.split(".")[1], function.__qualname__
    namespace = f"{room}." if room in ("numpy", "lax", "scipy") else ""
    return _BY_NAME.get((namespace, name), {})
