"""``odeint``: ordinary differential equations, solved and differentiated as native loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from .. import lax
from .. import numpy as fnp
from ..api.vmap import vmap
from ..arrays.arguments import shown
from ..control.ranks import varying
from ..core import (
    Aval,
    Jaxpr,
    Tracer,
    aval_of,
    boundary,
    concrete,
    dtype_kind,
    is_complex,
    is_float,
    last_line,
)
from ..core.evaluation import evaluate, jaxpr_as_fun
from ..core.named_axes import mesh_in_scope
from ..core.values import ArrayLike, PyTree
from ..custom.closures import Sealed
from ..custom.function import Function
from ..errors import ArgumentError, ArgumentValueError, DtypeError, ShapeError
from ..flatten_util import ravel_pytree
from ..frontend.arguments import flatten_values, given, name_of, value_of
from ..frontend.checked import checked
from ..frontend.pytree import tree_unflatten
from ..frontend.pytree.nodes import keystr
from ..frontend.tree_spec import same_kind
from ..lax.equations.solution import SolutionSpec
from ..passes.toolkit import lift_tracers
from ..primitives import ops
from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.records import dataclass
from ..scipy.solvers.callbacks import is_differentiable
from ..scipy.solvers.flows import OdeSystem, TangentOde
from ..transforms.linearize import linearize
from ..transforms.stage import stage
from ..transforms.transpose import backward
from .dormand_prince import Tolerances, integrate

__all__ = ["odeint"]

#: Systems of up to this many operations have their slopes written one by one.
_UNROLLED = 48


@dataclass(frozen=True, eq=False)
class TracedOde(OdeSystem, Sealed):
    """The user's function, traced: from what it captured and its arguments, a vector, and a time, to a vector."""

    jaxpr: Jaxpr

    def slope(self, t: ArrayLike, y: ArrayLike, operands: Sequence[Any]) -> PyTree:
        """The derivative of `y`."""
        return evaluate(self.jaxpr, [*operands, y, t])[0]


@dataclass(frozen=True, eq=False)
class AdjointOde(OdeSystem, Sealed):
    """A system of `n` equations, followed by the cotangents of `y` and of the marked operands.

    The cotangent ``a`` of ``y(t)`` solves ``da/dt = -a df/dy``. That of what the system reads has slope ``-a df/dc``.
    """

    of: OdeSystem
    n: int
    marked: tuple[bool, ...]

    def slope(self, t: ArrayLike, y: ArrayLike, operands: Sequence[Any]) -> PyTree:
        """The derivative of the whole system."""
        n = self.n
        linear = linearize(lambda x, *cs: [self.of.slope(t, x, cs)], [y[:n], *operands], [True, *self.marked])
        back = backward(linear.tape, linear.tangents, [-y[n : 2 * n]], linear.inputs)
        cts = [ops.instantiate(ct).reshape(-1) for ct, m in zip(back, (True, *self.marked)) if m]
        return fnp.concatenate([linear.outs[0], *cts]).astype(y.dtype)


class Odeint(Function):
    """The solution at several times, with the derivatives of the exact solution: it solves the equations for them."""

    @staticmethod
    def forward(
        system: OdeSystem, unroll: bool, y0: ArrayLike, times: ArrayLike, options: Any, *operands: ArrayLike
    ) -> PyTree:
        """The solution, of shape (m, n)."""
        return integrate(lambda t, y: system.slope(t, y, operands), y0, times, Tolerances(*options), unroll)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: ArrayLike) -> None:
        """Save the values that the rules need."""
        ctx.system, ctx.unroll, ctx.y0, ctx.times, ctx.options, *operands = inputs
        ctx.operands, ctx.ys = tuple(operands), output
        ctx.set_materialize_grads(False)

    @staticmethod
    def jvp(ctx: Any, _: object, __: object, y0: ArrayLike, times: Any, ___: Any, *tangents: Any) -> Any:
        """The tangent solves the variational equation, together with the equation itself."""
        system, operands = ctx.system, ctx.operands
        if all(x is None for x in (y0, times, *tangents)):
            return None
        n = ctx.y0.shape[0]
        start = fnp.zeros_like(ctx.y0) if y0 is None else y0
        if times is not None:
            start = start - times[0] * system.slope(ctx.times[0], ctx.y0, operands)
        push = TangentOde(system, tuple([t is not None for t in tangents]))
        given_tangents = [t for t in tangents if t is not None]
        z0 = fnp.concatenate([ctx.y0, start])
        moved = Odeint.apply(push, False, z0, ctx.times, ctx.options, *operands, *given_tangents)[:, n:]
        if times is None:
            return moved
        slopes = vmap(lambda t, y: system.slope(t, y, operands))(ctx.times, ctx.ys)
        moved = moved + times[:, None] * slopes
        return moved if y0 is None else moved.at[0].set(y0)

    @staticmethod
    def backward(ctx: Any, ct: ArrayLike) -> tuple[Any, ...]:
        """The adjoint equation, solved back from each time to the one before it."""
        system, operands, ys, times = ctx.system, ctx.operands, ctx.ys, ctx.times
        _, _, needs_y0, needs_times, _, *needs = ctx.needs_input_grad
        if ct is None:
            return (None,) * (5 + len(operands))
        ct = ct.conj()
        n = ys.shape[1]
        marked = tuple([m and is_differentiable(x) for m, x in zip(needs, operands)])
        adjoint = AdjointOde(system, n, marked)

        def back(cts: ArrayLike, row: tuple[Any, ...]) -> tuple[Any, None]:
            y, t, before, ct = row
            span = fnp.stack([t, before])
            z0 = fnp.concatenate([y, cts[:n] + ct, cts[n:]])
            return Odeint.apply(adjoint, False, z0, span, ctx.options, *operands)[1, n:], None

        sizes = [aval_of(x).size for x, m in zip(operands, marked) if m]
        cts = fnp.zeros(n + sum(sizes), ys.dtype)
        cts, _ = lax.scan(back, cts, (ys[1:], times[1:], times[:-1], ct[1:]), reverse=True)
        in_times = None
        if needs_times:
            slopes = vmap(lambda t, y: system.slope(t, y, operands))(times, ys)
            in_times = fnp.sum((ct * slopes).real, axis=1).at[0].set(-(cts[:n] @ slopes[0]).real)
        parts = fnp.split(cts[n:], np.cumsum(sizes)[:-1]) if sizes else []
        found = iter(parts)
        in_operands = [_as(next(found), x) if m else None for x, m in zip(operands, marked)]
        return None, None, _as(cts[:n] + ct[0], ctx.y0) if needs_y0 else None, in_times, None, *in_operands


def _as(ct: ArrayLike, x: ArrayLike) -> Any:
    """A cotangent in the form of its operand, as `Function` has them."""
    aval = aval_of(x)
    part = ct.conj() if is_complex(aval.dtype) else ct.real
    return part.reshape(aval.shape).astype(aval.dtype)


@boundary
@checked
def odeint(
    func: Callable[..., PyTree],
    y0: ArrayLike,
    t: ArrayLike,
    *args: PyTree,
    rtol: ArrayLike = 1.4e-8,
    atol: ArrayLike = 1.4e-8,
    mxstep: Any = np.inf,
    hmax: Any = np.inf,
    gradient: Literal["adjoint", "direct"] = "adjoint",
) -> PyTree:
    r"""Solve ``dy/dt = func(y, t, *args)`` from an initial value, by Dormand-Prince steps of adaptive size.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)`` returns the derivative, a tree like `y0`: for an array also a list of its
        elements. It may read values from its closure that are
        being differentiated or mapped.
    y0 : array or pytree of arrays
        The initial value at ``t[0]``: float or complex. Integers become float64.
    t : array_like, shape (m,)
        The times of the solution, ascending or descending. It is computed between steps where a time falls there.
    *args : arrays or pytrees of arrays
        Further arguments of `func`.
    rtol, atol : float
        A step is accepted if its error is at most ``atol + rtol * max(abs(y))`` in the mean over all elements of the
        tree.
    mxstep : int
        The maximum number of steps from one time to the next, rejected ones included.
    hmax : float
        The maximum size of a step.
    gradient : {'adjoint', 'direct'}
        How derivatives are computed; see the notes.

    Returns
    -------
    array or pytree of Array
        Like `y0`, with a leading axis of length m. **NaN at all times that were not reached**: if `mxstep` steps were
        not enough, as for a stiff equation, or the solution left the range of floats.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        If `func` returns a tree of another structure, or of other shapes, than `y0`; if an argument is of the wrong
        kind.
    ArgumentValueError
        If the times are not monotone; if a tolerance or a bound is negative.

    See Also
    --------
    functrans.scipy.integrate.solve_ivp : SciPy's solvers, which include those for stiff equations.

    Notes
    -----
    The solver is one native loop, also under `jit`. Under `vmap` the steps of each example are independent. The
    arguments `rtol`, `atol`, `mxstep` and `hmax` may be traced. They have no derivative.

    ``gradient="adjoint"`` computes the derivatives of the exact solution by solving the differential equations for them
    within the same tolerances: forward mode the variational equation, reverse mode the adjoint equation [3]_

    .. math:: \dot a = -a\,\partial f/\partial y, \qquad \dot{\bar c} = -a\,\partial f/\partial c

    from each time back to the one before it, where it starts again from the stored solution. Reverse mode so needs no
    memory for steps. But it solves `y` backward, which is unstable if solutions approach each other quickly between
    two times.

    ``gradient="direct"`` differentiates the steps that were taken, with their sizes as constants. It is often faster,
    and stable, since it follows the computed solution. Reverse mode stores each step (`config.tape_limit` bounds the
    memory).

    Both support both modes and any order. JAX has the first one in reverse mode only; beyond `mxstep` steps, it
    extrapolates without notice.

    References
    ----------
    .. [1] J. R. Dormand & P. J. Prince: A family of embedded Runge-Kutta formulae. J. Comp. Appl. Math. 6, 19-26, 1980.
    .. [2] L. F. Shampine: Some practical Runge-Kutta formulas. Math. Comp. 46, 135-150, 1986.
    .. [3] R. T. Q. Chen, Y. Rubanova, J. Bettencourt & D. Duvenaud: Neural ordinary differential equations. NeurIPS
       2018, appendices B and C.

    Examples
    --------
    Logistic growth, whose solution is known:

    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.experimental.ode import odeint
    >>> def grow(y, t, rate):
    ...     return rate * y * (1.0 - y)
    >>> t = fnp.linspace(0.0, 2.0, 3)
    >>> odeint(grow, 0.5, t, 1.0).round(6)  # 1 / (1 + exp(-t))
    Array([0.5     , 0.731059, 0.880797])
    >>> ft.jit(ft.grad(lambda rate: odeint(grow, 0.5, t, rate)[1]))(1.0).round(6)  # y (1 - y) t
    Array(0.196612)
    """
    spec, leaves = SolutionSpec.of("odeint", "y0", y0)
    flat, unravel = ravel_pytree(spec.filled(leaves))
    times = _times(t)
    values, tree = flatten_values(args, lambda path: f"odeint: args{keystr(path)}")
    options = _options(rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)

    def slope(*values: PyTree) -> list[Any]:
        *cs, y, now = values
        out = func(unravel(y), given(now), *tree_unflatten(tree, [given(c) for c in cs]))
        out = spec.leaves(_in_form_of(y0, out), f"func ({name_of(func)})", last_line(func), same_kind)
        return [fnp.asarray(ravel_pytree(spec.filled(out))[0]).astype(flat.dtype)]

    avals = [*map(aval_of, values), aval_of(flat), Aval((), times.dtype)]
    jaxpr, captured = lift_tracers(stage(slope, avals, name_of(func)))
    operands = [*captured, *values]
    if mesh_in_scope.get() is not None:
        # Ranks take different steps, between which they must not wait for each other.
        flat, times, *operands = varying.alike([flat, times, *operands])
        avals = [*map(aval_of, operands), aval_of(flat), aval_of(times).with_shape(())]
        jaxpr = stage(jaxpr_as_fun(jaxpr), avals, jaxpr.name)
    solve = Odeint.apply if gradient == "adjoint" else Odeint.forward
    ys = solve(TracedOde(jaxpr), len(jaxpr.eqns) <= _UNROLLED, flat, times, options, *operands)
    return vmap(unravel)(ys)


def _in_form_of(y0: ArrayLike, out: ArrayLike) -> Any:
    """A list or tuple of derivatives as an array, where `y0` is one; an array, list or tuple in the form of another."""
    if isinstance(out, list | tuple) and isinstance(y0, np.ndarray | Tracer):
        return fnp.asarray(out)
    if type(y0) not in (list, tuple):
        return out
    if type(out) in (list, tuple) or (isinstance(out, np.ndarray | Tracer) and out.ndim):
        return type(y0)(out)
    return out


def _times(t: ArrayLike) -> Any:
    """The times, as floats."""
    times = fnp.asarray(value_of(fnp.asarray(t), lambda: "odeint: t"))
    if dtype_kind(times.dtype) not in "iuf":
        raise DtypeError(f"odeint: t must hold real numbers, got {times.dtype}")
    if times.ndim != 1 or not times.size:
        raise ShapeError(
            f"odeint: t must be a vector of times, the first one that of y0, got an array of shape {times.shape}"
        )
    known = concrete(times)
    if known is not None:
        steps = np.diff(known)
        if not (np.all(steps >= 0) or np.all(steps <= 0)):
            raise ArgumentValueError(f"odeint: t must be ascending or descending, got {np.asarray(known)}")
    return times if is_float(times.dtype) else times.astype(float)


def _options(**numbers: Any) -> list[Any]:
    """The tolerances and bounds, as arrays."""
    found = []
    for name, x in numbers.items():
        value = value_of(x, lambda name=name: f"odeint: {name}")  # type: ignore[misc]
        aval, known = aval_of(value), concrete(value)
        if aval.shape or dtype_kind(aval.dtype) not in "iuf":
            raise ArgumentError(f"odeint: {name} must be a real number, got {shown(x)}")
        least = "positive" if name in ("mxstep", "hmax") else "zero or positive"
        if known is not None and not (known > 0 or (known == 0 and least != "positive")):
            raise ArgumentValueError(f"odeint: {name} must be {least}, got {shown(x)}")
        found.append(fnp.asarray(value).astype(float))
    if all(concrete(x) == 0 for x in found[:2]):
        raise ArgumentValueError("odeint: rtol or atol must be positive: no step has an error of zero")
    return found


__getattr__, __dir__ = _module_attributes("functrans.experimental.ode", globals())
