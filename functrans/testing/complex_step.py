"""Complex steps: slopes to full precision, of functions that are analytic and can be traced.

For an analytic ``f`` that is real on real numbers, ``imag(f(x + i h v)) / h`` is the slope up to ``O(h**2)``, without
the difference of two close numbers. So `h` can be 1e-20, and the error is that of rounding alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..api.compiled.stages import make_jaxpr
from ..arrays.array import unwrap
from ..control.call import call_p
from ..core import Primitive, evaluate, finfo, is_inexact, run_quietly
from ..core.ir import Atom, Eqn, Jaxpr, has_subjaxprs, subjaxprs
from ..custom.custom_call import custom_call_p
from ..frontend.structs import ShapeDtypeStruct
from ..primitives import ops
from ..runtime.context import cached_property
from ..runtime.records import NamedTuple
from .finite_difference import directional_derivative

#: Primitives whose values are analytic functions of their complex operands, but for poles.
_SMOOTH = frozenset(
    {
        ops.add_p,
        ops.arcsinh_p,
        ops.arctan_p,
        ops.barrier_p,
        ops.broadcast_in_dim_p,
        call_p,
        ops.concatenate_p,
        ops.convert_element_type_p,
        ops.cos_p,
        ops.cosh_p,
        ops.cofactors_p,
        ops.cumprod_p,
        ops.cumsum_p,
        custom_call_p,
        ops.det_p,
        ops.div_p,
        ops.dot_general_p,
        ops.dynamic_slice_p,
        ops.dynamic_update_slice_p,
        ops.exp_p,
        ops.exp2_p,
        ops.expm1_p,
        ops.fft_p,
        ops.gather_p,
        ops.getitem_p,
        ops.integer_pow_p,
        ops.lu_solve_p,
        ops.mul_p,
        ops.name_p,
        ops.neg_p,
        ops.one_minus_square_p,
        ops.others_p,
        ops.pad_p,
        ops.place_p,
        ops.putitem_p,
        ops.reduce_prod_p,
        ops.reduce_sum_p,
        ops.reshape_p,
        ops.rev_p,
        ops.scatter_p,
        ops.scatter_add_p,
        ops.scatter_mul_p,
        ops.select_p,
        ops.sin_p,
        ops.sinh_p,
        ops.slice_p,
        ops.solve_p,
        ops.sub_p,
        ops.tan_p,
        ops.tanh_p,
        ops.transpose_p,
        ops.triangular_solve_p,
    }
)
#: And those that have branch points on the real axis, as the square root at 0.
_ANALYTIC = _SMOOTH | {
    ops.arccos_p,
    ops.arccosh_p,
    ops.arcsin_p,
    ops.arctanh_p,
    ops.log_p,
    ops.log10_p,
    ops.log1p_p,
    ops.log2_p,
    ops.pow_p,
    ops.sqrt_p,
}
#: These are as analytic as what they call.
_CALLS = call_p, custom_call_p
#: Step for double and for single precision: its square is far below rounding, and numbers stay normal.
_STEPS = {"float64": 1e-20, "float32": 1e-12}
#: How closely values at the complex point agree with those at the real one, in units in the last place.
_CLOSE = 64


class Steps(NamedTuple):
    """Whether complex steps apply to a function, and whether it has no kinks."""

    apply: bool
    smooth: bool


class Traces(NamedTuple):
    """The programs of a function of real arrays, and of the same function of complex ones; None where a trace fails."""

    real: Jaxpr | None
    complex: Jaxpr | None

    @classmethod
    def of(cls, f: Callable[..., Any], x: Sequence[np.ndarray]) -> Traces:
        """The traces at the shapes and dtypes of `x`; the complex one only if all of the real one is real."""
        try:
            real = make_jaxpr(f)(*x)
        except Exception:  # whatever a function that cannot be traced raises
            return cls(None, None)
        # Where a real argument meets complex numbers, gradients are cut to their real part: not so for a complex one.
        if any(a.dtype.name not in _STEPS for a in x) or not _is_real(real):
            return cls(real, None)
        shapes = [ShapeDtypeStruct(a.shape, np.result_type(a.dtype, np.complex64)) for a in x]
        try:
            return cls(real, make_jaxpr(f)(*shapes))
        except Exception:  # whatever a function that takes no complex numbers raises
            return cls(real, None)

    @property
    def steps(self) -> Steps:
        """Complex steps apply if the function can be traced, has no complex numbers within, and all that depends on
        arguments is computed by analytic primitives.
        """  # fmt: skip
        program = self.complex
        if program is None or not all(a.dtype.kind == "c" for a in program.out_avals):
            return Steps(False, False)
        return Steps(_made_of(program, _ANALYTIC), _made_of(program, _SMOOTH))


def _is_real(jaxpr: Jaxpr) -> bool:
    return all(
        all(v.aval.dtype.kind != "c" for v in (*eqn.invars, *eqn.outvars))
        and all(map(_is_real, subjaxprs(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _made_of(jaxpr: Jaxpr, primitives: frozenset[Primitive]) -> bool:
    """Whether only these primitives have complex operands, where results depend on them."""
    return all(
        eqn.primitive in primitives
        and not any(value for name, value in eqn.params.items() if name.startswith("conjugate"))
        and all(v.aval.dtype.kind == "c" for v in eqn.outvars)
        and all(_made_of(body, primitives) for body in subjaxprs(eqn.params))
        and (eqn.primitive not in _CALLS or has_subjaxprs(eqn.params))
        for eqn in _needed(jaxpr)
        if any(v.aval.dtype.kind == "c" for v in eqn.invars)
    )


def _needed(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations that results depend on. The solution of a system does not depend on how its matrix was factored."""
    needed: set[Atom] = {*jaxpr.outvars}
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            needed.update(eqn.invars[::3] if eqn.primitive is ops.lu_solve_p else eqn.invars)
            yield eqn


def complex_slopes(
    f: Callable[..., Any],
    x: Sequence[np.ndarray],
    v: Sequence[np.ndarray | None],
    values: Sequence[np.ndarray],
) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """Slopes and their errors by a complex step, or None if the values there are not those at the real point."""
    h = max(_STEPS[a.dtype.name] for a in x)
    moved = [
        (a + (0.0 if d is None else 1j * h * d)).astype(np.result_type(a.dtype, np.complex64))
        for a, d in zip(x, v)
    ]
    try:
        outs = [np.asarray(unwrap(y)) for y in run_quietly(f, *moved)]
    except Exception:  # a branch on numbers that no trace has seen
        return None
    if not all(y.dtype.kind == "c" for y in outs):  # nor a function that drops small imaginary parts
        return None
    slopes, errors = [], []
    for y, real in zip(outs, values):
        eps = np.finfo(real.dtype).eps
        if not np.isfinite(real).all() or not np.allclose(
            y.real, real, rtol=_CLOSE * eps, atol=_CLOSE * eps * np.abs(real).max(initial=0)
        ):
            return None
        slope = y.imag.astype(float) / h
        slopes.append(slope)
        errors.append(_CLOSE * float(eps) * np.maximum(np.abs(slope), np.abs(slope).max(initial=0)))
    return slopes, errors


class Numerical:
    """A function of arrays near a point, by its values alone: they come from its trace, where that computes the same.

    Parameters
    ----------
    f : callable
        Takes arrays and returns a sequence of arrays.
    x : sequence of ndarray
        The point.

    Notes
    -----
    A derivative as the function is transformed once, not for each of its values.
    """

    def __init__(self, f: Callable[..., Any], x: Sequence[np.ndarray]):
        self._f, self._x = f, [np.array(a) for a in x]
        self._slopes: dict[Any, tuple[list[np.ndarray], list[np.ndarray]]] = {}

    @cached_property
    def values(self) -> list[np.ndarray]:
        """The values at the point, which the function computes itself."""
        return _arrays(run_quietly(self._f, *[np.array(a) for a in self._x]))

    @cached_property
    def steps(self) -> Steps:
        """Whether complex steps apply, and whether the function has no kinks."""
        real = all(y.dtype.kind == "f" for y in self.values)
        return self._traces.steps if real else Steps(False, False)

    @cached_property
    def _traces(self) -> Traces:
        return Traces.of(self._f, self._x)

    @cached_property
    def _near(self) -> Callable[..., Any]:
        """The trace as a function, or the function where that has other values at the point."""
        program = self._traces.real
        if program is None:
            return self._f
        traced = partial(evaluate, program)
        try:
            found = _arrays(run_quietly(traced, self._x))
        except Exception:  # an operation that has to be compiled
            return self._f
        same = len(found) == len(self.values) and all(map(_close, found, self.values))
        return (lambda *xs: traced(xs)) if same else self._f

    def evaluate(self, xs: Sequence[Any]) -> list[np.ndarray]:
        """The values at another point."""
        return _arrays(run_quietly(self._near, *xs))

    def slopes(self, v: Sequence[np.ndarray | None]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The slopes of the results in a direction and their errors: by a complex step if it applies."""
        key = direction_key(v)
        if key not in self._slopes:
            self._slopes[key] = self._new_slopes(v)
        return self._slopes[key]

    def _new_slopes(self, v: Sequence[np.ndarray | None]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        if self.steps.apply and self._traces.complex is not None:
            traced = partial(evaluate, self._traces.complex)
            found = complex_slopes(lambda *xs: traced(xs), self._x, v, self.values)
            if found is not None:
                return found
        return directional_derivative(self.evaluate, self._x, list(v))


def direction_key(v: Sequence[np.ndarray | None]) -> tuple[bytes | None, ...]:
    """A direction, hashable."""
    return tuple(None if d is None else d.tobytes() for d in v)


def _arrays(values: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(unwrap(y)) for y in values]


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two results are the same but for rounding."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not is_inexact(a.dtype):
        return bool((a == b).all())
    eps = float(finfo(a.dtype).eps)
    a, b = a.astype(complex), b.astype(complex)
    size = np.abs(b[np.isfinite(b)]).max(initial=0)
    return np.allclose(a, b, rtol=0, atol=_CLOSE * eps * size, equal_nan=True)
