"""What equations cost, in additions of one float64."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.passes.costs import ITERATIONS, CountingEmitter, cost, is_arithmetic, total_cost
from functrans.passes.scalar_functions import COSTS

X = np.ones((4, 6))


def last(f, *args):
    """The last equation of a program; those before prepare its operands."""
    return ft.make_jaxpr(f)(*args).eqns[-1]


@pytest.mark.parametrize(
    ("f", "x", "additions"),
    [
        (lambda x: x + x, X, 24),
        (lambda x: x + x, X.astype(np.float32), 12),
        (lambda x: x + x, np.ones(3, np.float32), 2),  # half of three, rounded up
        (fnp.sin, X, 24 * COSTS["sin"]),
        (lambda x: x.reshape(24), X, 0),
        (fnp.sum, X, 6),
    ],
)
def test_elementwise_equations_cost_their_elements(f, x, additions):
    assert total_cost(ft.make_jaxpr(f)(x)) == additions


def test_loops_cost_their_bodies():
    def loop(n):
        return last(lambda x: lax.scan(lambda c, _: (c + x, None), x, None, length=n)[0], X)

    assert cost(loop(7)) == 7 * 24
    assert cost(loop(1)) == 24
    while_loop = last(lambda x: lax.while_loop(lambda c: c < 3.0, lambda c: c + c, x), np.float64(1))
    assert cost(while_loop) == ITERATIONS * 2  # a comparison and an addition
    called = last(lambda x: ft.jit(lambda x: x + x)(x), X)
    assert cost(called) == 24
    branches = last(lambda p, x: lax.cond(p, lambda x: x + x, lambda x: x * x, x), True, X)
    assert cost(branches) == 48


def test_arithmetic_takes_a_few_additions_for_each_element():
    assert is_arithmetic(last(lambda x: x * x, X))
    assert is_arithmetic(last(fnp.transpose, X))
    assert not is_arithmetic(last(fnp.sin, X))
    assert not is_arithmetic(last(fnp.sum, X))
    assert not is_arithmetic(last(fnp.sort, X))


def test_functions_of_another_number_of_operands_are_refused():
    emitter = CountingEmitter()
    x = emitter.const(1.0, np.dtype(float))
    assert emitter.call("sin", x).dtype == np.float64
    with pytest.raises(TypeError, match="'sin' is not a function of 2 operands"):
        emitter.call("sin", x, x)
    with pytest.raises(TypeError, match="'nothing' is not a function of 1 operands"):
        emitter.call("nothing", x)
