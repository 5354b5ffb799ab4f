"""`batch`, by itself: on flat values and jaxprs, against a loop over examples."""

import numpy as np
import pytest

from functrans.core.aval import Zero, aval_of
from functrans.core.evaluation import evaluate
from functrans.passes.check import check_jaxpr
from functrans.primitives.elementwise.arithmetic import gt_p, mul_p, select_p
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.elementwise.trig import sin_p
from functrans.primitives.structure.linear import add_p, reduce_sum_p
from functrans.transforms.batch import batch, batch_jaxpr
from functrans.transforms.jvp import jvp
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


def test_batch_does_not_change_unbatched_values():
    rows = np.stack([X, 2 * X])
    outs, dims = batch(wave, 2, [X, rows], [None, 0])
    np.testing.assert_allclose(outs[0], np.sin(X) * rows)
    assert dims[1] is None
    np.testing.assert_allclose(outs[1], np.sin(X))
    outs, dims = batch(wave, 2, [rows.T, X], [1, None])
    np.testing.assert_allclose(np.moveaxis(outs[0], dims[0], 0), np.sin(rows) * X)


def test_batched_jaxpr():
    jaxpr = staged()
    rows = np.stack([X, 2 * X])
    body, dims = batch_jaxpr(jaxpr, 2, (None, 1))
    check_jaxpr(body)
    assert dims == (0, None)
    np.testing.assert_allclose(evaluate(body, [X, rows.T])[0], np.sin(X) * rows)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("f", [wave, folded, branched], ids=lambda f: f.__name__)
def test_batch_is_a_loop_over_examples(f, dims):
    examples = [np.stack([v, v[::-1], 2 * v, v - 1]) for v in (X, Y)]
    values = [v if d is None else np.moveaxis(rows, 0, d) for v, rows, d in zip((X, Y), examples, dims)]
    outs, places = batch(f, 4, values, list(dims))
    for i in range(4):
        expected = f(*[v if d is None else rows[i] for v, rows, d in zip((X, Y), examples, dims)])
        for out, place, want in zip(outs, places, expected, strict=True):
            got = out if place is None else np.moveaxis(out, place, 0)[i]
            np.testing.assert_allclose(got, want, rtol=1e-14)


def test_batch_of_jvp_is_jvp_of_batch():
    rows, ones = np.stack([X, 2 * X]), np.ones((2, 3))
    push = lambda x, t: jvp(wave, [x, Y], [t, Zero(Y)])[1]
    outs, places = batch(push, 2, [rows, ones], [0, 0])
    _, expected = jvp(lambda x: batch(wave, 2, [x, Y], [0, None])[0], [rows], [ones])
    for out, place, want in zip(outs, places, expected, strict=True):
        np.testing.assert_allclose(np.moveaxis(out, place, 0), want, rtol=1e-14)
