"""Arithmetic, comparison, selection and casts, element by element.

Rules of the other families mostly use these records. Division with remainder and rounding are in ``rounding.py``, bits
and integer functions in ``bits.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...arrays.casts import cast
from ...core import (
    BOOL,
    KEY,
    WEAK_KEYS,
    Atom,
    Aval,
    Eqn,
    Linear,
    Pointwise,
    Primitive,
    Zero,
    aval_of,
    dtype_kind,
    has_jax_semantics,
    is_inexact,
    refused_keys,
)
from ...core.kernel import IndexEmitter, ScalarEmitter
from ...core.values import ArrayLike, Params, Tangent, Value
from ...errors import DtypeError
from ...passes.rewriter import Hole, Rewriter, Yields, identity, inverse_pair
from ..axes import MOVED, broadcast_shapes, same_dtype
from ..families import elementwise, literal
from ..families import mul_p as mul_p
from ..series import of_jointly_linear
from ..structure.linear import (
    Rule,
    add_p,
    added,
    broadcast_to,
    dtype_of,
    elementwise_batch,
    shape_of,
    unbroadcast,
)

# --- arithmetic ---------------------------------------------------------------------------------------------


neg_p: Primitive = elementwise(
    "neg",
    np.negative,
    linear=True,
    transposes=(lambda ct, x: neg_p.bind(ct),),
    kernel=lambda k, x: -x,
    kinds="iufc",
    simplify=inverse_pair,
)

sub_p: Primitive = elementwise(
    "sub",
    np.subtract,
    terms=(lambda t, ans, x, y: t, lambda t, ans, x, y: neg_p.bind(t)),
    transposes=(lambda ct, x, y: ct, lambda ct, x, y: neg_p.bind(ct)),
    taylor=of_jointly_linear,
    kernel=lambda k, x, y: x - y,
    kinds="iufc",
    simplify=Yields(Hole("x"), 0.0),
)


def divides(categories: Sequence[str], args: Sequence[Any], params: Params) -> tuple[Any, Any]:
    """The slot ``guard`` of divisions: the divisor may be zero."""
    if "div" not in categories:
        return [], params
    return [("div", ne_p.bind(args[1], literal(0, args[1])), "division by zero", [])], params


def _div_taylor(
    prim: Primitive, out: Sequence[Any], operands: Sequence[Any], params: Params
) -> Iterator[Any]:
    """``v w = u`` gives ``v[k] = (u[k] - v[0] w[k] - ... - v[k-1] w[1]) / w[0]``."""
    u, w = operands
    for k in count(1):
        moved: Any = Zero(out[0])
        for j in range(1, k + 1):
            if type(w[j]) is not Zero and type(out[k - j]) is not Zero:
                moved = added(moved, mul_p.bind(out[k - j], w[j]))
        if type(moved) is Zero:
            yield Zero(out[0]) if type(u[k]) is Zero else div_p.bind(u[k], w[0])
        else:
            rest = neg_p.bind(moved) if type(u[k]) is Zero else sub_p.bind(u[k], moved)
            yield div_p.bind(rest, w[0])


div_p: Primitive = elementwise(
    "div",
    np.true_divide,
    terms=(
        lambda t, ans, x, y: div_p.bind(t, y),
        # Its transpose divides the cotangent by y, as that of the other operand does: a gradient divides once.
        lambda t, ans, x, y: div_p.bind(mul_p.bind(neg_p.bind(t), ans), y),
    ),
    transposes=(lambda ct, x, y: div_p.bind(ct, y), None),
    taylor=_div_taylor,
    guard=divides,
    kernel=lambda k, x, y: x / y,
    kinds="fc",
    simplify=Yields(Hole("x"), 1),
)


def _share_impl(x: Value, y: Value) -> Value:
    # Both comparisons with NaN are false.
    twice = np.add(np.greater(x, y), np.greater_equal(x, y), dtype=np.result_type(x, y))
    return np.multiply(twice, literal(0.5, twice))


def _share_kernel(k: IndexEmitter, x: Any, y: Any) -> Any:
    one, half, none = (k.const(number, x.dtype) for number in (1, 0.5, 0))
    return k.where(_at_least(k, x, y, strict=True), one, k.where(x.eq(y), half, none))


# The derivative of ``maximum(x, y)`` in `x`: 1 where `x` is larger, 1/2 at a tie, else 0.
share_p: Primitive = elementwise(
    "share", _share_impl, kernel=_share_kernel, kinds="fc", weak=False, moves_data=True
)


def _max_kernel(k: ScalarEmitter, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return k.call("max", x, y)
    return k.where(_is_nan_kernel(x) | _at_least(k, x, y, strict=False), x, y)


def _min_kernel(k: ScalarEmitter, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return k.call("min", x, y)
    return k.where(_is_nan_kernel(x) | _at_least(k, y, x, strict=False), x, y)


def _is_nan_kernel(x: Any) -> Any:
    return x.ne(x)


max_p: Primitive = elementwise(
    "max",
    np.maximum,
    factors=(lambda ans, x, y: share_p.bind(x, y), lambda ans, x, y: share_p.bind(y, x)),
    kernel=_max_kernel,
    commutes=True,
)

min_p: Primitive = elementwise(
    "min",
    np.minimum,
    factors=(lambda ans, x, y: share_p.bind(y, x), lambda ans, x, y: share_p.bind(x, y)),
    kernel=_min_kernel,
    commutes=True,
)


def _first_extreme(
    name: str, beyond: np.ufunc, kernel: Callable[..., Any], share: Callable[..., Any]
) -> Primitive:
    def impl(x: Value, y: Value) -> Any:
        return np.where(beyond(y, x), y, x)[()]

    return elementwise(
        name,
        impl,
        factors=(
            lambda ans, x, y: sub_p.bind(literal(1.0, x), share(x, y)),
            lambda ans, x, y: share(x, y),
        ),
        kernel=kernel,
        kinds="biuf",
    )


#: Python's ``max`` and ``min``: the first operand, unless the second is beyond it. So a NaN counts only as the first.
#: Ties are shared, as those of `maximum`.
first_max_p: Primitive = _first_extreme(
    "first_max",
    np.greater,
    lambda k, x, y: k.where(y > x, y, x),
    lambda x, y: share_p.bind(y, x),
)
first_min_p: Primitive = _first_extreme(
    "first_min",
    np.less,
    lambda k, x, y: k.where(y < x, y, x),
    lambda x, y: share_p.bind(x, y),
)

Pair = tuple[Any, Any]
"""A value and its tangent."""


def dual_product(x: Pair, y: Pair) -> Pair:
    """Multiply two values with tangents."""
    (a, s), (b, t) = x, y
    return mul_p.bind(a, b), add_p.bind(mul_p.bind(s, b), mul_p.bind(a, t))


# --- comparison ---------------------------------------------------------------------------------------------


def _at_least(k: ScalarEmitter, x: Any, y: Any, *, strict: bool) -> Any:
    """``x >= y`` (``x > y`` if `strict`); complex numbers compare in NumPy's lexicographic order."""
    if x.dtype.kind != "c":
        return x > y if strict else x >= y
    a, b, c, d = k.call("real", x), k.call("imag", x), k.call("real", y), k.call("imag", y)
    ordered = (a > c) & b.eq(b) & d.eq(d)
    return ordered | (a.eq(c) & (b > d if strict else b >= d))


def _comparison(name: str, impl: Rule, kernel: Rule, **slots: Any) -> Primitive:
    return elementwise(name, impl, kernel=kernel, out=lambda dtype: BOOL, weak=False, **slots)


eq_p = _comparison("eq", np.equal, lambda k, x, y: x.eq(y), tests_equality=True, commutes=True)
ne_p = _comparison("ne", np.not_equal, lambda k, x, y: x.ne(y), tests_equality=True, commutes=True)
gt_p = _comparison("gt", np.greater, lambda k, x, y: _at_least(k, x, y, strict=True))
lt_p = _comparison("lt", np.less, lambda k, x, y: _at_least(k, y, x, strict=True))
ge_p = _comparison("ge", np.greater_equal, lambda k, x, y: _at_least(k, x, y, strict=False))
le_p = _comparison("le", np.less_equal, lambda k, x, y: _at_least(k, y, x, strict=False))

# --- select -------------------------------------------------------------------------------------------------


def _select_abstract(pred: Aval, on_true: Aval, on_false: Aval) -> Aval:
    if pred.dtype != BOOL:
        raise DtypeError(
            f"select: the predicate has dtype {pred.dtype}, expected bool; use a comparison, such as x != 0"
        )
    shape = pred.shape
    if on_true.dtype is on_false.dtype and on_true.shape in (shape, ()) and on_false.shape in (shape, ()):
        return Aval(shape, on_true.dtype)
    dtype = same_dtype("select", (on_true, on_false), MOVED)
    return Aval(broadcast_shapes("select", pred.shape, on_true.shape, on_false.shape), dtype)


def _select_jvp(primals: Sequence[Any], tangents: Sequence[Tangent]) -> tuple[Any, Any]:
    pred, x, y = primals
    _, s, t = tangents
    ans = select_p.bind(pred, x, y)
    if type(s) is Zero and type(t) is Zero:
        return ans, Zero(ans)
    zero = literal(0.0, ans)
    out = select_p.bind(pred, zero if type(s) is Zero else s, zero if type(t) is Zero else t)
    return ans, broadcast_to(out, shape_of(ans))


def _select_transpose(ct: Any, pred: Any, x: Any, y: Any) -> list[Any]:
    zero = literal(0.0, ct)
    return [
        None,
        unbroadcast(select_p.bind(pred, ct, zero), x.aval) if type(x) is Linear else None,
        unbroadcast(select_p.bind(pred, zero, ct), y.aval) if type(y) is Linear else None,
    ]


select_p: Primitive = Primitive(
    "select",
    _select_abstract,
    np.where,
    jvp=_select_jvp,
    taylor=of_jointly_linear,
    transpose=_select_transpose,
    batch=lambda size, args, dims: elementwise_batch(select_p, args, dims),
    kernel=Pointwise(lambda k, pred, x, y: k.where(pred, x, y)),
    moves_data=True,
    simplify=Yields(Hole("choice"), Hole("x"), Hole("x")),
)

# --- clamp --------------------------------------------------------------------------------------------------


def _inside(t: Value, low: Any, x: Value, high: Any) -> Value:
    """Return `t` where `x` lies strictly between the bounds, else zero."""
    zero = literal(0.0, t)
    return select_p.bind(gt_p.bind(x, low), select_p.bind(lt_p.bind(x, high), t, zero), zero)


def _clipped(low: ArrayLike, x: Value, high: ArrayLike) -> Value:
    return np.minimum(np.maximum(x, low), high)


clamp_p: Primitive = elementwise(
    "clamp",
    _clipped,
    terms=(
        lambda t, ans, low, x, high: select_p.bind(
            gt_p.bind(low, x), select_p.bind(gt_p.bind(high, low), t, literal(0.0, t)), literal(0.0, t)
        ),
        lambda t, ans, low, x, high: _inside(t, low, x, high),
        lambda t, ans, low, x, high: select_p.bind(lt_p.bind(high, max_p.bind(x, low)), t, literal(0.0, t)),
    ),
    kernel=lambda k, low, x, high: _min_kernel(k, _max_kernel(k, x, low), high),
)


# Like clamp, but with the derivatives of the maximum and minimum it consists of, which ties share.
clip_p: Primitive = elementwise(
    "clip",
    _clipped,
    factors=(
        lambda ans, low, x, high: mul_p.bind(share_p.bind(low, x), share_p.bind(high, max_p.bind(x, low))),
        lambda ans, low, x, high: mul_p.bind(share_p.bind(x, low), share_p.bind(high, x)),
        lambda ans, low, x, high: share_p.bind(max_p.bind(x, low), high),
    ),
    kernel=lambda k, low, x, high: _min_kernel(k, _max_kernel(k, x, low), high),
)

# --- casts --------------------------------------------------------------------------------------------------


def _cast(x: ArrayLike, *, dtype: np.dtype, weak: bool = False) -> Any:
    if not isinstance(x, np.ndarray | np.generic):
        x = np.asarray(x)[()]
    if x.dtype.kind == "V" or dtype.kind == "V":
        _cast_abstract(Aval(x.shape, x.dtype), dtype=dtype)
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    out = cast(x, dtype)
    return out.item() if weak and not out.ndim else out


def _cast_abstract(x: Aval, *, dtype: np.dtype, weak: bool = False) -> Aval:
    if KEY in (x.dtype, dtype) and x.dtype != dtype:
        raise refused_keys("astype")
    return Aval(x.shape, dtype, weak)


def _cast_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, dtype: np.dtype, weak: bool = False
) -> tuple[Any, Any]:
    ans = convert_element_type_p.bind(*primals, dtype=dtype, weak=weak)
    (t,) = tangents
    if type(t) is Zero or not is_inexact(dtype):
        return ans, Zero(ans)
    return ans, t if dtype_of(t) == dtype else convert_element_type_p.bind(t, dtype=dtype, weak=False)


def _convert_simplify(rw: Rewriter, eqn: Eqn) -> Atom | Eqn | None:
    x, to = eqn.invars[0], eqn.outvars[0].aval.dtype
    if x.aval.dtype == to:
        return x
    inner = rw.made_by(x, eqn.primitive)
    if inner is None or not _holds_all(inner.invars[0].aval.dtype, x.aval.dtype):
        return None
    # If the first cast loses nothing, the second one alone decides the result.
    source = inner.invars[0]
    if source.aval.dtype == to:
        return source
    return eqn.replace(invars=[source]) if dtype_kind(source.aval.dtype) == dtype_kind(to) else None


def _holds_all(source: np.dtype, target: np.dtype) -> bool:
    """Return whether `target` represents every value of `source`. NumPy wrongly calls int64 to float64 a safe cast."""
    wide = source.kind in "iu" and source.itemsize == 8 and is_inexact(target)
    return source.kind != "b" and not wide and np.can_cast(source, target, "safe")


convert_element_type_p: Primitive = Primitive(
    "convert_element_type",
    _cast_abstract,
    _cast,
    jvp=_cast_jvp,
    linear=True,
    transpose=lambda ct, x, *, dtype, weak=False: [convert(ct, x.aval.dtype)],
    batch=lambda size, args, dims, **params: elementwise_batch(convert_element_type_p, args, dims, **params),
    kernel=Pointwise(lambda k, x, *, dtype, weak=False: k.cast(x, dtype)),
    moves_data=True,
    simplify=_convert_simplify,
)


def weakly(x: Value) -> Value:
    """Return a 0-d value as a weak one."""
    aval = aval_of(x)
    if aval.weak or aval.shape or dtype_kind(aval.dtype) not in WEAK_KEYS:
        return x
    return convert_element_type_p.bind(x, dtype=aval.dtype, weak=True)


def weakly_as(x: Value, *operands: Value) -> Value:
    """With ``config.jax_semantics`` a result of weak operands alone is weak; else it is returned as it is."""
    if has_jax_semantics() and all(aval_of(operand).weak for operand in operands):
        return weakly(x)
    return x


def convert(x: ArrayLike, dtype: np.dtype) -> Any:
    """Cast `x` to a dtype; return it unchanged (weak or not) if it has that dtype."""
    return x if dtype_of(x) == dtype else convert_element_type_p.bind(x, dtype=dtype, weak=False)


# --- stop_gradient ------------------------------------------------------------------------------------------


def _stop_gradient_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    ans = stop_gradient_p.bind(*primals)
    return ans, Zero(ans)


stop_gradient_p: Primitive = Primitive(
    "stop_gradient",
    lambda x: x,
    lambda x: x if isinstance(x, np.ndarray) else np.asarray(x)[()],
    jvp=_stop_gradient_jvp,
    batch=lambda size, args, dims: (stop_gradient_p.bind(*args), dims[0]),
    kernel=Pointwise(lambda k, x: x),
    weak=True,
    moves_data=True,
    simplify=identity,
)
