"""Kernels of elementwise primitives at the edges: zeros of both signs, infinities, NaN, ends of the integers.

What follows from the records is tested in ``test_derived_elementwise.py``.
"""

import warnings

import numpy as np
import pytest

from functrans.core.aval import aval_of
from functrans.core.ir import Eqn, Jaxpr, Var
from functrans.lowering.run.executable import compile_jaxpr
from functrans.primitives.elementwise import (
    arithmetic as elementwise,
)
from functrans.primitives.elementwise import bits, complexes, exp_log, rounding, trig
from functrans.primitives.elementwise import trig as sigmoid
from functrans.primitives.special import functions as special
from functrans.primitives.structure import linear

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e300, -1e300, 5e-324, 2.0, 1e-8]
)
COMPARISONS = [getattr(elementwise, f"{name}_p") for name in ("eq", "ne", "lt", "le", "gt", "ge")]
# Operands, primitive, parameters.
OF_BOTH = [
    (2, linear.add_p), (2, elementwise.sub_p), (2, elementwise.mul_p), (2, elementwise.max_p), (2, elementwise.min_p),
    (2, elementwise.first_max_p), (2, elementwise.first_min_p),
    (1, elementwise.neg_p), (3, elementwise.clamp_p), (3, elementwise.clip_p), (1, complexes.abs_p),
    (2, rounding.floor_divide_p), (2, rounding.remainder_p), (2, rounding.fmod_p), (1, rounding.sign_p),
    (1, rounding.floor_p), (1, rounding.ceil_p), (1, rounding.trunc_p), *[(2, p) for p in COMPARISONS],
    *[(1, exp_log.integer_pow_p, {"y": y}) for y in (0, 1, 2, 3, 5)],
]  # fmt: skip
OF_FLOATS = [
    *OF_BOTH, (2, elementwise.div_p), (2, elementwise.share_p), (1, rounding.rint_p), (1, rounding.signbit_p),
    (2, rounding.copysign_p), (2, rounding.nextafter_p), (1, rounding.is_finite_p), (1, rounding.is_inf_p),
    (1, rounding.is_nan_p), (2, sigmoid.logaddexp_p), (2, sigmoid.logaddexp2_p), (2, exp_log.pow_p),
    *[(1, getattr(exp_log, f"{f}_p"))
      for f in ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt"]],
    *[(1, exp_log.integer_pow_p, {"y": y}) for y in (-1, -2, -3)],
    *[(1, getattr(trig, f"{f}_p"))
      for f in ["sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh"]],
    *[(1, getattr(trig, f"{f}_p")) for f in ["arcsinh", "arccosh", "arctanh"]],
    *[(1, getattr(sigmoid, f"{f}_p")) for f in ["tanh", "logistic", "logistic_slope", "logit"]],
    (1, trig.one_minus_square_p), (2, trig.reciprocal_part_p), (2, trig.direction_p), (2, trig.inverse_hypot_p),
    (2, trig.arctan2_p), (2, trig.hypot_p), (2, special.xlogy_p), (2, special.xlog1py_p), (2, special.xdivy_p),
    *[(1, getattr(special, f"{f}_p")) for f in ["erf", "erfc", "lgamma", "digamma", "entr"]],
    *[(1, special.polygamma_p, {"m": m}) for m in (1, 2, 5)], *[(1, special.bell_p, {"m": m}) for m in (0, 1, 4)],
    (2, special.betaln_p),
]  # fmt: skip
OF_INTEGERS = [
    *OF_BOTH, (2, bits.and_p), (2, bits.or_p), (2, bits.xor_p), (1, bits.not_p), (2, bits.shift_left_p),
    (2, bits.shift_right_p), (2, bits.gcd_p), (2, bits.lcm_p), (2, exp_log.pow_p),
]  # fmt: skip
# NumPy says nothing of the sign of max(0., -0.).
UNSIGNED = (elementwise.max_p, elementwise.min_p, elementwise.clamp_p, elementwise.clip_p)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def cases(entries):
    found = [(n, prim, params[0] if params else {}) for n, prim, *params in entries]
    return [pytest.param(*e, id="-".join([e[1].name, *map(str, e[2].values())])) for e in found]


def both(prim, args, params):
    """What the primitive alone computes as a compiled program, and what NumPy does."""
    invars = [Var(aval_of(a)) for a in args]
    out = Var(prim.abstract(*[v.aval for v in invars], **params))
    (ours,) = compile_jaxpr(Jaxpr(invars, [Eqn(prim, invars, [out], params)], [out]))(*args)
    theirs = prim.impl(*args, **params)
    assert ours.dtype == theirs.dtype
    return ours, theirs


@pytest.mark.parametrize(("n", "prim", "params"), cases(OF_FLOATS))
def test_floats(n, prim, params):
    ours, theirs = both(prim, [SPECIAL, SPECIAL[:, None], SPECIAL[:, None, None]][:n], params)
    np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-300)
    if ours.dtype.kind == "f" and prim not in UNSIGNED:
        zeros = theirs == 0
        assert np.array_equal(np.signbit(ours[zeros]), np.signbit(theirs[zeros]))


@pytest.mark.wide(3)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("n", "prim", "params"), cases(OF_INTEGERS))
def test_integers(n, prim, params, dtype):
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
    if info.min < 0:
        edges = np.append(edges, np.array([-1, -2], dtype))
    args = [edges, edges[:, None], edges[:, None, None]][:n]
    if prim is exp_log.pow_p:
        args[1] = np.array([[0], [1], [2], [7]], dtype)
    ours, theirs = both(prim, args, params)
    assert np.array_equal(ours, theirs)


def test_integers_to_negative_powers_truncate_in_kernels():
    x, y = np.array([-2, -1, 0, 1, 3]), np.array([[-1], [-2]])
    jaxpr_args = [x, y]
    invars = [Var(aval_of(a)) for a in jaxpr_args]
    out = Var(exp_log.pow_p.abstract(*[v.aval for v in invars]))
    (found,) = compile_jaxpr(Jaxpr(invars, [Eqn(exp_log.pow_p, invars, [out], {})], [out]))(*jaxpr_args)
    assert found.tolist() == [[0, -1, 0, 1, 0], [0, 1, 0, 1, 0]]
