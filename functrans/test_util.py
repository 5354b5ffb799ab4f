"""``functrans.test_util``: derivatives against finite differences, under the names of ``jax.test_util``.

`functrans.testing` has more, and sharper, checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .arrays.arguments import one_of
from .core import finfo, is_inexact, is_low
from .core.values import PyTree
from .frontend.checked import checked
from .runtime.module_getattr import module_attributes as _module_attributes
from .testing import check
from .testing.finite_difference import directional_derivative
from .testing.report import LawViolation
from .tree_util import tree_flatten, tree_unflatten

__all__ = ["check_grads", "check_jvp", "check_vjp"]
__getattr__, __dir__ = _module_attributes("functrans.test_util", globals())

_ABSENT: Any = object()


@checked
def check_grads(
    f: Callable[..., Any],
    args: Any = _ABSENT,
    order: int = 2,
    modes: Any = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> Any:
    """Check the derivatives of a function up to an order.

    Parameters
    ----------
    f : callable
        A function of arrays and pytrees of arrays.
    args : tuple
        Its arguments. Without them, or with modes in their place, the result is a function of them, as that of
        ``autograd.test_util.check_grads`` is.
    order : int
        The highest order.
    modes : iterable of {'fwd', 'rev'}
    atol, rtol : float, optional
        Tolerances; by default those of `functrans.testing.check`.
    eps
        Accepted, without effect: steps are chosen from the size of the arguments.

    Raises
    ------
    LawViolation
        An `AssertionError`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.test_util import check_grads
    >>> check_grads(lambda x: fnp.sin(x) * x, (fnp.asarray([0.3, -1.2]),), order=2)
    >>> check_grads(fnp.sin, ["rev"], order=1)(0.3)
    """
    if _are_modes(args):  # autograd's order of arguments: check_grads(f, modes, order)(*args)
        args, modes = _ABSENT, args
    if args is _ABSENT:
        return lambda *args: check_grads(f, args, order, modes, atol, rtol)
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in chosen:
        one_of(mode, ("fwd", "rev"), "check_grads: modes")
    reverse = "vjp_is_adjoint" if "fwd" in chosen else "vjp_is_slope"
    laws = [law for mode, law in (("fwd", "jvp_is_slope"), ("rev", reverse)) if mode in chosen]
    check(f, *_tuple(args), order=order, modes=chosen, laws=laws, rtol=rtol, atol=atol)
    return None


@checked
def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[[Any, Any], Any],
    args: Any,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a function that computes values and tangents: ``f_jvp(primals, tangents)``.

    Parameters
    ----------
    f, f_jvp : callable
    args : tuple
        The arguments of `f`.
    atol, rtol : float, optional
        Tolerances, by default 1e-6 (1e-2 in single precision).
    eps
        Accepted, without effect.
    err_msg : str
        What the message begins with.

    Raises
    ------
    LawViolation
        If values or tangents are wrong.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.test_util import check_jvp
    >>> check_jvp(fnp.sin, lambda x, t: ft.jvp(fnp.sin, x, t), (fnp.asarray([0.3]),))
    """
    given = _tuple(args)
    primals, tree = tree_flatten(given)
    tangents = _directions(primals)
    out, tangent = f_jvp(given, tree_unflatten(tree, tangents))
    expected, slopes = _values_and_slopes(f, primals, tree, tangents)
    _compare("check_jvp: values", _leaves(out), expected, atol, rtol, err_msg)
    _compare("check_jvp: tangents", _leaves(tangent), slopes, atol, rtol, err_msg)


@checked
def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Any,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a function that computes values and returns their pullback: ``f_vjp(*primals) -> (out, vjp)``.

    Parameters are those of `check_jvp`.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.test_util import check_vjp
    >>> check_vjp(fnp.sin, lambda x: ft.vjp(fnp.sin, x), (fnp.asarray([0.3]),))
    """
    given = _tuple(args)
    primals, tree = tree_flatten(given)
    tangents = _directions(primals)
    out, pullback = f_vjp(*given)
    expected, slopes = _values_and_slopes(f, primals, tree, tangents)
    _compare("check_vjp: values", _leaves(out), expected, atol, rtol, err_msg)
    leaves, out_tree = tree_flatten(out)
    cotangents = _directions(leaves)
    pulled = _leaves(pullback(tree_unflatten(out_tree, cotangents)))
    forward, backward = (np.asarray(_paired(*pair)) for pair in ((slopes, cotangents), (tangents, pulled)))
    _compare("check_vjp: <ct, J t> and <J^T ct, t>", [backward], [forward], atol, rtol, err_msg)


def _are_modes(args: Any) -> bool:
    names = args if isinstance(args, tuple | list) else (args,)
    return bool(names) and all(isinstance(name, str) for name in names)


def _tuple(args: Any) -> tuple[Any, ...]:
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


def _leaves(tree: PyTree) -> list[np.ndarray]:
    return [np.asarray(x) for x in tree_flatten(tree)[0]]


def _directions(values: Iterable[Any]) -> list[np.ndarray]:
    """Random tangents of the types of values."""
    random = np.random.default_rng(0)
    out = []
    for value in values:
        x = np.asarray(value)
        t = random.standard_normal(x.shape)
        if x.dtype.kind == "c":
            t = t + 1j * random.standard_normal(x.shape)
        out.append(np.asarray(t).astype(x.dtype if is_inexact(x.dtype) else float))
    return out


def _values_and_slopes(f: Callable[..., Any], primals: Any, tree: PyTree, tangents: Any) -> tuple[Any, Any]:
    def flat(values: Any) -> list[np.ndarray]:
        return _leaves(f(*tree_unflatten(tree, values)))

    values = [np.asarray(x) for x in primals]
    return flat(values), directional_derivative(flat, values, tangents)[0]


def _paired(xs: Iterable[Any], ys: Iterable[Any]) -> float:
    return sum(float(np.sum(np.asarray(x) * np.asarray(y)).real) for x, y in zip(xs, ys))


def _compare(what: str, got: Any, expected: Any, atol: Any, rtol: Any, err_msg: str) -> None:
    start = f"{err_msg}: " if err_msg else ""
    if len(got) != len(expected):
        raise LawViolation(f"{start}{what}: expected {len(expected)} arrays, got {len(got)}", what, 0)
    for i, (x, y) in enumerate(zip(got, expected)):
        dtype = np.asarray(x).dtype
        usual = 1e-2 if dtype in (np.float32, np.complex64) else 1e-6
        usual = 16 * float(finfo(dtype).eps) if is_low(dtype) else usual
        a, r = usual if atol is None else atol, usual if rtol is None else rtol
        if np.shape(x) != np.shape(y) or not np.allclose(x, y, rtol=r, atol=a, equal_nan=True):
            raise LawViolation(f"{start}{what} {i} are {np.asarray(x)}, expected {np.asarray(y)}", what, 0)
