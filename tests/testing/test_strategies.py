import dataclasses

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings

import functrans.numpy as fnp
from functrans.errors import ArgumentValueError
from functrans.primitives.structure import linear
from functrans.testing import Interval, LawViolation, arrays, given_op, jvp_is_slope, operands, vjp_is_adjoint


@given_op(fnp.arctan2, shapes=2)
def test_arctan2(y, x):
    jvp_is_slope(fnp.arctan2, y, x)
    vjp_is_adjoint(fnp.arctan2, y, x)


@given_op(lambda x, y: x @ y, shapes=[(2, 3), (3, 4)], dtype=np.complex128, max_examples=10)
def test_matmul(x, y):
    vjp_is_adjoint(lambda x, y: x @ y, x, y)


@given_op(fnp.log, domain=Interval(0.1, 3.0), dtype=np.float32)
def test_domain_and_dtype(x):
    assert x.dtype == np.float32
    assert ((x >= 0.1) & (x <= 3.0)).all()
    jvp_is_slope(fnp.log, x)


def test_kinks_are_left_out():
    seen = []

    @given_op(lambda x: fnp.abs(x - 1.0), domain=Interval(0.0, 2.0, avoid=()))
    def run(x):
        seen.append(x)

    run()
    assert seen
    assert all((np.abs(x - 1.0) > 1e-7).all() for x in seen)


def test_exceptions_are_not_kinks():
    def f(x):
        raise ZeroDivisionError

    @given_op(f)
    def run(x):
        pass

    with pytest.raises(LawViolation, match="ZeroDivisionError"):
        run()


def test_points_to_avoid():
    x = hypothesis.find(arrays((4,), domain=Interval(-1.0, 1.0)), lambda x: bool((x > 0).all()))
    assert (np.abs(x) >= 0.01).all()


@pytest.mark.slow
def test_a_broken_broadcast_shrinks_to_a_small_shape():
    # The cotangent of the second operand is not summed over the axes along which it was broadcast.
    broken = dataclasses.replace(
        linear.add_p,
        transpose=lambda ct, x, y: [ct if hasattr(a, "aval") else None for a in (x, y)],
        jvp=lambda ps, ts: (linear.add_p.bind(*ps), broken.bind(*map(linear.instantiate, ts))),
    )
    f = lambda x, y: broken.bind(np.asarray(x) if isinstance(x, np.ndarray) else x, y)

    def fails(args):
        try:
            vjp_is_adjoint(f, *args)
        except LawViolation:
            return True
        return False

    x, y = hypothesis.find(operands(2), fails, settings=hypothesis.settings(max_examples=500))
    assert max(x.size, y.size) <= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_numbers_keep_away_from_points_without_discarding(dtype):
    """No example is thrown away, whatever constants Hypothesis tries."""
    tried = []

    @settings(max_examples=200, database=None)
    @given(arrays((3, 4), domain=Interval(-2.0, 2.0, avoid=(-1.0, 0.0, 0.005, 1.0, 5.0)), dtype=dtype))
    def run(x):
        for part in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
            low, high, avoid = (
                (-1.6, 1.6, (-1.0, 0.0, 1.0)) if x.dtype.kind == "c" else (-2.0, 2.0, (-1.0, 0.0, 0.005, 1.0))
            )
            assert ((part >= low) & (part <= high)).all()
            assert all((np.abs(part - p) >= 0.01 * (1 - 1e-6)).all() for p in avoid)
        tried.append(x)

    run()
    assert len(tried) >= 200


def test_an_interval_with_nothing_left_is_refused():
    with pytest.raises(ArgumentValueError, match="nothing is left"):
        arrays((3,), domain=Interval(-0.005, 0.005))
