"""`gradcheck` and `gradgradcheck`: gradients against finite differences, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.derivatives import jvp, vjp
from ..api.vmap import vmap
from ..core.values import Value
from ..errors import ArgumentValueError
from ..frontend.arguments import check_function, name_of
from ..frontend.checked import checked
from . import laws as _laws
from .custom_rules import cotangents_count, rules_repeat
from .finite_difference import jacobian
from .report import LawViolation, Margin
from .setting import CONVENTION, Setting, proving

_EXAMPLES = 3


@checked
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
    rng: int = 0,
) -> bool:
    """Whether the gradients of a function equal finite differences, as in ``torch.autograd.gradcheck``.

    Parameters
    ----------
    func : callable
        A function of arrays and pytrees of arrays.
    inputs : tuple, or one array
        Its arguments. All float and complex arrays in them are differentiated.
    eps : float, optional
        Accepted, without effect: steps are chosen by their estimated error.
    atol, rtol : float, optional
        Tolerances: 1e-5 and 1e-3; with float16 or bfloat16 at least 16 units in the last place.
    raise_exception : bool
        Whether a wrong gradient raises, instead of making the result False.
    nondet_tol : float
        The largest difference allowed between two calls.
    check_undefined_grad : bool
        Whether to check that missing cotangents count as zero, and that zero cotangents give zero gradients.
    check_grad_dtypes : bool
        Whether to check that derivatives have the dtypes of their primals.
    check_batched_grad : bool
        Whether to check that `vmap` over cotangents equals a loop.
    check_batched_forward_grad : bool
        Whether to check that `vmap` over tangents equals a loop.
    check_forward_ad, check_backward_ad : bool
        Which modes to check.
    fast_mode : bool
        Whether to compare the Jacobian only in a random direction, instead of element by element.
    masked : bool, optional
        Accepted, without effect: there are no sparse arrays.
    rng : int
        Seed of random numbers.

    Returns
    -------
    bool
        True; False for a wrong gradient if `raise_exception` is False.

    Raises
    ------
    LawViolation
        An `AssertionError` that names the largest error.
    ArgumentValueError
        If no argument or no output is float or complex. A `ValueError`.

    See Also
    --------
    check : more laws, and sharper tolerances.
    check_custom_rule : laws of functions with custom rules.

    Examples
    --------
    >>> import numpy as np, functrans.numpy as fnp
    >>> from functrans.testing import gradcheck
    >>> gradcheck(lambda x, y: fnp.sin(x) * y, (np.array([0.3, 0.7]), np.array(2.0)))
    True
    """
    del eps, masked
    check_function("gradcheck", func)
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    with proving("the function can be called", "gradcheck", func, args, rng) as s:
        active = bool(s.active) and bool(s.values)
        rtol = s.at_least(1e-3) if rtol is None else rtol
        atol = s.at_least(1e-5) if atol is None else atol
    options: dict[str, Any] = {"rng": rng, "rtol": rtol, "atol": atol}
    if not active:
        raise ArgumentValueError(
            f"gradcheck of {name_of(func)}: no argument or no output is float or complex, so it has no gradient"
        )
    try:
        if check_backward_ad:
            if fast_mode:
                _laws.vjp_is_slope(func, *args, **options)
            else:
                with proving("gradients = finite differences", "gradcheck", func, args, rng) as s:
                    _check_jacobian(s, Margin(rtol, atol))
        if check_forward_ad:
            _laws.jvp_is_slope(func, *args, **options)
        rules_repeat(func, *args, rng=rng, nondet_tol=nondet_tol)
        if check_undefined_grad and check_backward_ad:
            cotangents_count(func, *args, **options)
        if check_grad_dtypes:
            _laws.gradients_keep_types(func, *args, rng=rng)
        if check_batched_grad and check_backward_ad:
            _check_batched(func, args, rng, Margin(rtol, atol))
        if check_batched_forward_grad:
            _check_batched_forward(func, args, rng, Margin(rtol, atol))
    except LawViolation:
        if raise_exception:
            raise
        return False
    return True


@checked
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    rng: int = 0,
    **options: Any,
) -> bool:
    """Whether second derivatives equal finite differences of the gradient.

    Parameters
    ----------
    func : callable
    inputs : tuple, or one array
        As for `gradcheck`.
    grad_outputs : array, sequence of arrays, optional
        One cotangent per float or complex output; random ones by default. The gradient is differentiated in these too.
    gen_non_contig_grad_outputs : bool
        Whether the random cotangents are arrays that are not contiguous.
    rng : int
        Seed of random numbers.
    **options
        As for `gradcheck`.

    Returns
    -------
    bool

    Raises
    ------
    LawViolation, ArgumentValueError
        As `gradcheck`.

    Examples
    --------
    >>> import numpy as np, functrans.numpy as fnp
    >>> from functrans.testing import gradgradcheck
    >>> gradgradcheck(lambda x: fnp.sin(x) ** 2, np.array([0.3, 0.7]))
    True
    """
    check_function("gradgradcheck", func)
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    with proving("the gradient can be called", "gradgradcheck", func, args, rng) as s:
        cotangents = s.like(s.values)
        primals = s.primals
    if grad_outputs is not None:
        weights = grad_outputs if isinstance(grad_outputs, tuple | list) else (grad_outputs,)
        cotangents = [np.array(x) for x in weights]
    elif gen_non_contig_grad_outputs:
        cotangents = [np.stack([x, x], axis=-1)[..., 0] for x in cotangents]

    def gradient(xs: Any, cts: Any) -> Any:
        return vjp(s.smooth, *xs)[1](tuple(cts))

    gradient.__name__ = f"gradient of {name_of(func)}"
    return gradcheck(gradient, (tuple(primals), tuple(cotangents)), rng=rng, **options)


# --- parts --------------------------------------------------------------------------------------------------------


def _check_jacobian(s: Setting, tolerance: Margin) -> None:
    """Every element of the Jacobian."""
    slopes, errors = jacobian(s.evaluate, s.primals)
    outs, pull = vjp(s.smooth, *s.primals)
    for k, y in enumerate(outs):
        complex_output = np.dtype(y.dtype).kind == "c"
        for unit in (1.0, -1j) if complex_output else (1.0,):
            for e in np.ndindex(y.shape):
                cts = [np.zeros(o.shape, o.dtype) for o in outs]
                cts[k][e] = unit
                for i, (x, ct) in enumerate(zip(s.primals, pull(tuple(cts)))):
                    expected, error = slopes[k][i][e], errors[k][i][e]
                    gradient = np.asarray(ct)
                    if x.dtype.kind == "c":  # slopes in the real and in the imaginary part
                        gradient = np.stack([gradient.real, -gradient.imag], axis=-1)
                    where = f"gradient of output {k}, element {e}, in {s.names[s.active[i]]}"
                    with s.kinks_told(where, s.like(s.primals)):
                        s.report.close(
                            where,
                            gradient,
                            expected.real if unit == 1.0 else expected.imag,
                            tolerance,
                            estimated=error,
                            names=("the gradient is", "finite differences give"),
                            hint=CONVENTION if x.dtype.kind == "c" else "",
                        )


def _check_batched(func: Callable[..., Any], args: tuple[Any, ...], rng: int, tolerance: Margin) -> None:
    with proving("vmap of the gradient = loop", "gradcheck", func, args, rng) as s:
        outs, pull = vjp(s.smooth, *s.primals)
        many = [s.like(outs) for _ in range(_EXAMPLES)]
        rows = vmap(lambda *cts: pull(cts))(*[np.stack(column) for column in zip(*many)])
        for n, cts in enumerate(many):
            for i, (row, ct) in enumerate(zip(rows, pull(tuple(cts)))):
                where = f"cotangent {n}, gradient in {s.names[s.active[i]]}"
                s.report.close(where, row[n], ct, tolerance, names=("vmap gives", "alone it is"))


def _check_batched_forward(
    func: Callable[..., Any], args: tuple[Any, ...], rng: int, tolerance: Margin
) -> None:
    with proving("vmap of the tangent = loop", "gradcheck", func, args, rng) as s:
        primals = tuple(s.primals)

        def push(*tangents: Value) -> Any:
            return jvp(s.smooth, primals, tangents)[1]

        many = [s.like(primals) for _ in range(_EXAMPLES)]
        rows = vmap(push)(*[np.stack(column) for column in zip(*many)])
        for n, tangents in enumerate(many):
            for k, (row, tangent) in enumerate(zip(rows, push(*tangents))):
                where = f"tangent {n}, output {k}"
                s.report.close(where, row[n], tangent, tolerance, names=("vmap gives", "alone it is"))
