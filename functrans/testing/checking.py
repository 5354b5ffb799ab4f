"""`check`: all laws for a function at a point, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..api.derivatives import jvp, vjp
from ..core.values import Params, PyTree, Value
from ..errors import ArgumentValueError
from ..frontend.arguments import name_of
from ..frontend.checked import checked
from . import laws as _laws
from .given_derivative import derivative_is_right
from .precision import single_precision_agrees
from .setting import Wrt, proving, sharing

#: The laws by name, in the order in which `check` tests them.
LAWS: dict[str, Callable[..., None]] = {
    law.__name__: law
    for law in (
        _laws.jvp_is_slope,
        _laws.vjp_is_slope,
        _laws.vjp_is_adjoint,
        _laws.derivatives_are_linear,
        _laws.gradients_keep_types,
        _laws.hessian_is_symmetric,
        single_precision_agrees,
        _laws.vmap_is_loop,
        _laws.jit_is_eager,
        _laws.jit_and_grad_commute,
        _laws.inputs_stay,
    )
}
#: Exact ones, and that of single precision: `rtol` and `atol` of `check` are not for them.
_OWN_TOLERANCES = {"gradients_keep_types", "inputs_stay", "single_precision_agrees"}
_FORWARD = {"jvp_is_slope"}
_REVERSE = {
    "vjp_is_slope",
    "vjp_is_adjoint",
    "jit_and_grad_commute",
    "inputs_stay",
    "single_precision_agrees",
}
_BOTH = {"derivatives_are_linear", "gradients_keep_types", "hessian_is_symmetric"}


@checked
def check(
    f: Callable[..., Any],
    *args: PyTree,
    order: int = 2,
    modes: Iterable[str] = ("fwd", "rev"),
    laws: str | Iterable[str] = "all",
    wrt: Wrt = None,
    rng: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    derivative: Callable[..., Any] | None = None,
) -> None:
    """Test every law of transformations on a function at a point, or a derivative from elsewhere.

    Parameters
    ----------
    f : callable
        Takes and returns arrays or pytrees of arrays.
    *args
        The point; preferably a generic one, without zeros or ties.
    order : int
        The highest order of derivatives to test (0: none).
    modes : iterable of {'fwd', 'rev'}
        Forward mode, reverse mode, or both.
    laws : 'all' or iterable of str
        Names of laws: keys of `functrans.testing.LAWS`.
    wrt : int, sequence of int or None
        Positions of the arguments to differentiate; None for all float and complex leaves.
    rng : int
        Seed of the random directions.
    rtol, atol : float, optional
        Tolerances that replace those of each law.
    derivative : callable, optional
        A derivative of `f` from anywhere: a paper, SymPy, another library, C++. It takes the arguments of `f`, and
        returns the gradient of a number, or the Jacobian, of shape ``output.shape + argument.shape``; a tuple for
        several arguments (those of `wrt`). Only it is tested then: see `derivative_is_right`.

    Raises
    ------
    LawViolation
        An `AssertionError` whose message names the law and the largest error, and has a line that reproduces it.
        A point where `f` has a kink is reported as "non-differentiable (kink)", not as a wrong gradient.
    ArgumentValueError
        If a mode or law does not exist.

    Notes
    -----
    Derivatives of order `k` are compared with finite differences of those of order `k` - 1, up to `order`. The laws
    of `jit` need a function that can be traced. Exclude them (``laws=``) for functions with Python control flow on
    values.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.testing import check
    >>> check(lambda x: fnp.sum(fnp.sin(x) * x), fnp.asarray([0.3, -1.2]))

    The derivative of a function of the standard library, which cannot be traced:

    >>> import math
    >>> check(math.lgamma, 2.5, derivative=lambda x: math.log(x) - 1 / (2 * x))
    Traceback (most recent call last):
    ...
    functrans.testing.report.LawViolation: lgamma: the law 'the derivative is that of the function' does not hold
      where: the derivative in argument 0 ('x'), against finite differences...
    """
    if derivative is not None:
        derivative_is_right(f, *args, derivative=derivative, rng=rng, wrt=wrt, rtol=rtol, atol=atol)
        return
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    chosen = [laws] if isinstance(laws, str) else list(laws)
    if chosen == ["all"]:  # with forward mode, the adjoint of what agrees with finite differences does
        chosen = [name for name in LAWS if name != "vjp_is_slope" or "fwd" not in modes]
    for what, value, known in (("mode", modes, ("fwd", "rev")), ("law", chosen, LAWS)):
        for name in value:
            if name not in known:
                raise ArgumentValueError(f"check: unknown {what} {name!r}; choose from {', '.join(known)}")
    options = {"rng": rng, "rtol": rtol, "atol": atol}
    sharing(f, args, rng, wrt, lambda: _check_laws(f, args, order, modes, chosen, wrt, options))


def _check_laws(
    f: Callable[..., Any],
    args: tuple[Value, ...],
    order: int,
    modes: tuple[str, ...],
    chosen: list[str],
    wrt: Wrt,
    options: Params,
) -> None:
    """Test the chosen laws, then those of derivatives for the derivative."""
    rng = options["rng"]
    with proving("the function can be called", "check", f, args, rng, wrt) as setting:
        differentiable = bool(setting.active) and bool(setting.values)
    if differentiable and order > 0:
        _laws.is_smooth(f, *args, rng=rng, wrt=wrt)
    for name in chosen:
        law = LAWS[name]
        if name not in _FORWARD | _REVERSE | _BOTH:
            law(f, *args, **options)
        elif differentiable and _applies(name, order, modes):
            own = {"rng": rng} if name in _OWN_TOLERANCES else options
            law(f, *args, wrt=wrt, **own)
    if differentiable and order > 1:
        _check_derivatives(f, args, order, modes, set(chosen), wrt, options)


def _applies(name: str, order: int, modes: tuple[str, ...]) -> bool:
    if name == "hessian_is_symmetric":
        return order > 1 and len(modes) == 2
    if name in _FORWARD:
        return order > 0 and "fwd" in modes
    if name in _REVERSE:
        return order > 0 and "rev" in modes
    return order > 0 and len(modes) == 2


def _check_derivatives(
    f: Callable[..., Any],
    args: tuple[Value, ...],
    order: int,
    modes: tuple[str, ...],
    chosen: set[str],
    wrt: Wrt,
    options: Params,
) -> None:
    """The derivative laws for the derivative, as a function of the point."""
    with proving("the derivative can be called", "check", f, args, options["rng"], wrt) as s:
        direction = tuple(s.like(s.primals))
        weights = tuple(s.like(s.values))
        primals = s.primals

    def pushed(*xs: Value) -> Any:
        return jvp(s.smooth, xs, direction)[1]

    def pulled(*xs: Value) -> Any:
        return vjp(s.smooth, *xs)[1](weights)

    for mode, derivative, word in (("fwd", pushed, "jvp"), ("rev", pulled, "vjp")):
        if mode in modes:
            derivative.__name__ = f"{word} of {name_of(f)}"
            below = [
                name for name in LAWS if name in chosen & {"jvp_is_slope", "vjp_is_slope", "vjp_is_adjoint"}
            ]
            check(derivative, *primals, order=order - 1, modes=modes, laws=below, **options)
