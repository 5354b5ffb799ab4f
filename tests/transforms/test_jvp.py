"""`jvp`, by itself: on flat values, on jaxprs, against finite differences."""

import numpy as np
import pytest

from functrans.core.aval import Zero, aval_of
from functrans.core.evaluation import evaluate
from functrans.passes.check import check_jaxpr
from functrans.primitives.elementwise.arithmetic import gt_p, mul_p, select_p, stop_gradient_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import sin_p
from functrans.primitives.structure.linear import add_p, reduce_sum_p
from functrans.runtime.config import config
from functrans.testing.finite_difference import directional_derivative
from functrans.transforms.jvp import jvp, jvp_jaxpr
from functrans.transforms.stage import stage

X = np.array([0.3, -1.1, 2.0])
VECTOR = aval_of(X)


Y = np.array([1.5, 0.4, -0.7])


def folded(x, y):
    """A value used three times, and a sum."""
    e = exp_p.bind(mul_p.bind(x, y))
    total = reduce_sum_p.bind(mul_p.bind(e, x), axes=(0,))
    return [add_p.bind(e, mul_p.bind(x, x)), total]


def branched(x, y):
    """A selection between two functions."""
    return [select_p.bind(gt_p.bind(x, y), sin_p.bind(x), mul_p.bind(x, mul_p.bind(y, y)))]


def wave(x, y):
    s = sin_p.bind(x)
    return [mul_p.bind(s, y), s]


def staged(f=wave, *avals):
    return stage(f, avals or (VECTOR, VECTOR), "wave")


def test_jvp_with_symbolic_zeros():
    (_out, _s), (t, ts) = jvp(wave, [X, X], [np.ones(3), Zero(X)])
    np.testing.assert_allclose(t, np.cos(X) * X)
    np.testing.assert_allclose(ts, np.cos(X))
    _, (t, ts) = jvp(wave, [X, X], [Zero(X), np.ones(3)])
    np.testing.assert_allclose(t, np.sin(X))
    assert type(ts) is Zero
    _, (t,) = jvp(lambda x: [stop_gradient_p.bind(x)], [X], [X])
    assert type(t) is Zero


def test_jvp_of_a_jaxpr_is_cached_on_it():
    jaxpr = staged()
    pushed, mask = jvp_jaxpr(jaxpr, (False, True))
    assert mask == (True, False)
    check_jaxpr(pushed)
    np.testing.assert_allclose(evaluate(pushed, [X, X, X])[2], np.sin(X) * X)
    assert jvp_jaxpr(jaxpr, (False, True))[0] is pushed
    with config.patch(strict=not config.strict):  # other options, other programs
        assert jvp_jaxpr(jaxpr, (False, True))[0] is not pushed


@pytest.mark.parametrize("chosen", [(True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("f", [wave, folded, branched], ids=lambda f: f.__name__)
def test_jvp_is_the_directional_derivative(f, chosen):
    directions = [np.cos(3 * X) if c else None for c in chosen]
    _, tangents = jvp(f, [X, Y], [Zero(X) if d is None else d for d in directions])
    slopes, errors = directional_derivative(lambda xs: f(*xs), [X, Y], directions)
    for t, slope, error in zip(tangents, slopes, errors, strict=True):
        t = np.zeros(np.shape(slope)) if type(t) is Zero else t
        np.testing.assert_allclose(t, slope, rtol=1e-7, atol=1e-9 + 10 * np.max(error))


def test_jvp_of_jvp_is_symmetric():
    u, v = np.cos(X), np.sin(2 * X)

    def along(w):
        return lambda x: jvp(lambda x: [reduce_sum_p.bind(folded(x, Y)[0], axes=(0,))], [x], [w])[1]

    _, (uv,) = jvp(along(u), [X], [v])
    _, (vu,) = jvp(along(v), [X], [u])
    np.testing.assert_allclose(uv, vu, rtol=1e-12)
