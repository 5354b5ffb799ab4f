"""Simplification: which equations go, and that what is left computes the same."""

import numpy as np
import pytest

from functrans.control.call import call_p
from functrans.core.aval import aval_of
from functrans.core.ir import Eqn, Jaxpr, Literal, Var
from functrans.core.primitive import Effect, Primitive
from functrans.lowering.host.explain_failure import evaluate_on_host
from functrans.lowering.jaxpr.simplify import simplify
from functrans.primitives.elementwise.arithmetic import (
    convert_element_type_p,
    div_p,
    mul_p,
    neg_p,
    select_p,
    sub_p,
)
from functrans.primitives.elementwise.exp_log import exp_p
from functrans.primitives.indexing.gather_scatter import gather_p
from functrans.primitives.products.dot import dot_general_p
from functrans.primitives.structure.linear import (
    add_p,
    broadcast_in_dim_p,
    reduce_sum_p,
    reshape_p,
    transpose_p,
)
from functrans.primitives.structure.shape import pad_p

X = np.linspace(-2, 3, 12).reshape(3, 4)
F8, F4, I8 = np.dtype("f8"), np.dtype("f4"), np.dtype("i8")


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def check(stage, f, *args, left):
    """Simplify, compare the values bit for bit, and compare the primitives that are left."""
    jaxpr = stage(f, *args)
    simple = simplify(jaxpr)
    for a, b in zip(evaluate_on_host(simple, args), evaluate_on_host(jaxpr, args), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.all(np.signbit(a) == np.signbit(b)) if np.asarray(a).dtype.kind == "f" else True
    assert names(simple) == left
    return simple


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mul_p.bind(x, 1.0),
        lambda x: mul_p.bind(1.0, x),
        lambda x: div_p.bind(x, 1.0),
        lambda x: sub_p.bind(x, 0.0),
        lambda x: add_p.bind(x, -0.0),
        lambda x: neg_p.bind(neg_p.bind(x)),
        lambda x: convert_element_type_p.bind(x, dtype=F8),
        lambda x: reshape_p.bind(reshape_p.bind(x, shape=(12,)), shape=(3, 4)),
        lambda x: transpose_p.bind(transpose_p.bind(x, permutation=(1, 0)), permutation=(1, 0)),
        lambda x: broadcast_in_dim_p.bind(x, shape=(3, 4), broadcast_dimensions=(0, 1)),
        lambda x: mul_p.bind(x, broadcast_in_dim_p.bind(1.0, shape=(3, 4), broadcast_dimensions=())),
        lambda x: select_p.bind(np.True_, x, x),
        lambda x: pad_p.bind(x, 0.0, padding_config=((0, 0, 0), (0, 0, 0))),
    ],
)
def test_identities_vanish(stage, f):
    x = X.copy()
    x[0, :3] = 0.0, -0.0, np.inf
    check(stage, f, x, left=[])


@pytest.mark.parametrize("f", [lambda x: add_p.bind(x, 0.0), lambda x: sub_p.bind(x, -0.0)])
def test_rewrites_preserve_the_sign_of_zero(stage, f):
    x = np.array([-0.0, 0.0, 1.0])
    assert len(check(stage, f, x, left=[f.__code__.co_names[0][:-2]]).eqns) == 1


def test_broadcasting_operand_of_one_is_not_an_identity(stage):
    x, one = np.arange(3.0), np.ones((2, 1))
    ones = {"shape": (2, 3), "broadcast_dimensions": ()}
    check(
        stage,
        lambda x: mul_p.bind(x, broadcast_in_dim_p.bind(1.0, **ones)),
        x,
        left=["broadcast_in_dim", "mul"],
    )
    check(stage, lambda x, y: mul_p.bind(x, y), x, one, left=["mul"])


def test_equal_equations_are_shared_and_dead_ones_removed(stage):
    def f(x):
        exp_p.bind(neg_p.bind(x))
        return add_p.bind(exp_p.bind(x), exp_p.bind(x))

    check(stage, f, X, left=["exp", "add"])


def test_literals_fold_but_their_sign_counts(stage):
    check(stage, lambda x: mul_p.bind(x, add_p.bind(1.5, 2.0)), X, left=["mul"])
    simple = simplify(stage(lambda x: (mul_p.bind(x, 0.0), mul_p.bind(x, -0.0)), X))
    assert names(simple) == ["mul", "mul"]


def test_casts_through_a_wider_dtype(stage):
    def through(first, last):
        return lambda x: convert_element_type_p.bind(convert_element_type_p.bind(x, dtype=first), dtype=last)

    check(stage, through(F8, F4), X.astype(F4), left=[])
    big = np.array([2**53 + 1, -(2**63)])
    check(stage, through(F8, I8), big, left=["convert_element_type"] * 2)
    check(stage, through(F4, F8), X, left=["convert_element_type"] * 2)


def test_transposes_go_into_products(stage):
    def f(x, y):
        numbers = (((1,), (0,)), ((), ()))
        product = dot_general_p.bind(transpose_p.bind(x, permutation=(1, 0)), y, dimension_numbers=numbers)
        return transpose_p.bind(product, permutation=(1, 0))

    y = np.random.default_rng(0).normal(size=(3, 5))
    simple = simplify(stage(f, X, y))
    assert names(simple) == ["dot_general"]
    np.testing.assert_allclose(evaluate_on_host(simple, (X, y))[0], (X.T @ y).T, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize(
    ("x", "y", "numbers"),
    [
        ((3, 1), (1, 4), (((1,), (0,)), ((), ()))),
        ((3,), (4,), (((), ()), ((), ()))),
        ((1,), (1,), (((0,), (0,)), ((), ()))),
        ((0, 1), (1, 2), (((1,), (0,)), ((), ()))),
        ((2, 1, 5, 3, 1), (1, 3, 4, 1, 5), (((1, 4), (3, 0)), ((3, 2), (1, 4)))),
    ],
)
def test_products_that_sum_one_term_are_elementwise(stage, x, y, numbers, dtype):
    """Bit for bit NumPy's sums, which start from zero: no -0.0."""
    random = np.random.default_rng(3)
    x, y = (random.integers(-2, 3, shape).astype(dtype) for shape in (x, y))

    def f(x, y):
        return dot_general_p.bind(x, y, dimension_numbers=numbers)

    jaxpr = stage(f, x, y)
    simple = simplify(jaxpr)
    assert "dot_general" not in names(simple)
    (got,), (want,) = evaluate_on_host(simple, (x, y)), evaluate_on_host(jaxpr, (x, y))
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype
    assert not np.any(np.signbit(got[got == 0]))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("numbers", ["bij,bjk->bik", "bj,bjk->bk", "bij,bj->bi", "bcij,bcj->bci", "bj,bj->b"])
def test_an_operand_that_a_batch_shares_is_multiplied_once(stage, numbers, side):
    """What `vmap` of weights with a hook gives: one product, however the batch axis lies in the result."""
    inputs = numbers.split("->")[0]
    size = {"b": 5, "c": 2, "i": 3, "j": 4, "k": 6}
    names_of = inputs.split(",")
    shapes = [tuple([size[c] for c in own]) for own in names_of]
    batch = [c for c in "bc" if c in names_of[0] and c in names_of[1]]
    dims = (
        tuple([(own.index("j"),) for own in names_of]),
        tuple([tuple([own.index(c) for c in batch]) for own in names_of]),
    )
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in shapes]
    values[side] = values[side][0]

    def f(x, y):
        pair = [x, y]
        axes = tuple(range(1, len(shapes[side])))
        pair[side] = broadcast_in_dim_p.bind(pair[side], shape=shapes[side], broadcast_dimensions=axes)
        return dot_general_p.bind(*pair, dimension_numbers=dims)

    simple = simplify(stage(f, *values))
    whole = [np.broadcast_to(x, shape) for x, shape in zip(values, shapes)]
    np.testing.assert_allclose(evaluate_on_host(simple, values)[0], np.einsum(numbers, *whole), rtol=1e-12)
    assert "broadcast_in_dim" not in names(simple)


def test_reduction_of_a_transpose(stage):
    x = np.arange(24.0).reshape(2, 3, 4)

    def f(x):
        return reduce_sum_p.bind(transpose_p.bind(x, permutation=(2, 0, 1)), axes=(0, 2))

    check(stage, f, x, left=["reduce_sum"])
    check(stage, lambda x: reduce_sum_p.bind(x, axes=(0,)), x[:1], left=["reshape"])


def test_reshapes_rise_to_the_inputs(stage):
    def f(x, y):
        product = mul_p.bind(exp_p.bind(x), y)
        return neg_p.bind(reshape_p.bind(product, shape=(12,)))

    check(
        stage,
        f,
        X,
        X + 1,
        left=["reshape", "reshape", "exp", "mul", "neg"],
    )


def test_small_captured_arrays_become_literals(stage):
    simple = simplify(stage(lambda x: mul_p.bind(x, np.array(2.5)), X))
    assert not simple.consts
    assert [type(a) for a in simple.eqns[0].invars] == [Var, Literal]


def test_operations_that_may_raise_are_shared_but_not_removed(stage):
    index = np.array([0, 7])

    def f(x, i):
        for _ in range(2):
            gather_p.bind(x, i, axes=(0,), mode="raise")
        return neg_p.bind(x)

    assert sorted(names(simplify(stage(f, X, index)))) == ["gather", "neg"]


def test_host_calls_are_neither_removed_nor_shared_nor_reordered(stage):
    called = []
    tell = Primitive(
        "tell", lambda x, *, n: x, lambda x, *, n: called.append(n) or x, effects=lambda n: Effect.HOST
    )

    def f(x):
        for n in (1, 1, 2):
            tell.bind(x, n=n)
        return x

    simple = simplify(stage(f, X))
    evaluate_on_host(simple, (X,))
    assert called == [1, 1, 2]


def test_calls_are_inlined(stage):
    inner = stage(lambda x, y: mul_p.bind(exp_p.bind(x), add_p.bind(y, X)), X, X)
    a, b = Var(aval_of(X)), Var(aval_of(X))
    outs = [Var(aval_of(X)), Var(aval_of(X))]
    eqns = [
        Eqn(call_p, [a, b], outs[:1], {"jaxpr": inner}),
        Eqn(call_p, [a, outs[0]], outs[1:], {"jaxpr": inner}),
    ]
    simple = simplify(Jaxpr([a, b], eqns, outs))
    assert names(simple) == ["exp", "add", "mul", "add", "mul"]
    assert len(simple.consts) == 1
    first = np.exp(X) * (X + X)
    results = evaluate_on_host(simple, (X, X))
    np.testing.assert_array_equal(results[0], first)
    np.testing.assert_array_equal(results[1], np.exp(X) * (first + X))
