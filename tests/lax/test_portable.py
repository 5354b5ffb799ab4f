"""What JAX's compiler is told: code for platforms, named operations, shardings; and the generator of the process."""

from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.distributed import run_threads
from functrans.errors import (
    ArgumentError,
    ArgumentValueError,
    ArrayTooLargeError,
    CallbackError,
    DtypeError,
    NoRuleError,
    PytreeError,
    ShapeError,
    ShardingError,
    UnexpectedTracerError,
)
from functrans.sharding import NamedSharding
from functrans.testing import check

X = np.linspace(0.2, 1.4, 6).reshape(2, 3)
RUNS = [lambda f: f, ft.jit]


# --- platform_dependent -------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_the_function_for_the_cpu(run):
    called = []
    other = lambda x: called.append(x)
    square = lambda x: x * x
    for named in ({"cpu": square, "cuda": other}, {"tpu": other, "default": square}, {"default": square}):
        np.testing.assert_array_equal(run(lambda x, n=named: lax.platform_dependent(x, **n))(X), X * X)
    got = run(lambda x: lax.platform_dependent(x, {"a": x}, cpu=lambda x, tree: (tree["a"] - x, tree)))(X)
    np.testing.assert_array_equal(got[0], 0 * X)
    assert not called
    check(lambda x: lax.platform_dependent(x, cpu=fnp.sin, default=other), X)


def test_functions_for_platforms_that_there_are_not():
    with pytest.raises(
        NotImplementedError, match="no function for the platform cpu, nor a default; got cuda="
    ) as e:
        lax.platform_dependent(X, cuda=fnp.sin)
    assert isinstance(e.value, NoRuleError)
    with pytest.raises(NoRuleError, match="got none"):
        ft.jit(lax.platform_dependent)(X)
    with pytest.raises(ArgumentValueError, match="'cuda' and 'rocm', not 'gpu'"):
        lax.platform_dependent(X, gpu=fnp.sin, cpu=fnp.sin)
    with pytest.raises(
        ArgumentError, match="platform_dependent: tpu: the argument must be a function, got '3'"
    ):
        lax.platform_dependent(X, tpu=3, cpu=fnp.sin)
    with pytest.raises(ArgumentError, match="expected a function for default, got 3"):
        lax.platform_dependent(X, cpu=fnp.sin, default=3)


# --- composite ----------------------------------------------------------------------------------------------


@partial(lax.composite, name="my.scaled")
def scaled(tree, /, *, by, power=None):
    """Scale."""
    x = fnp.sin(tree["x"]) * by
    return {"y": x if power is None else x**power}


@pytest.mark.parametrize("run", RUNS)
def test_composite(run):
    got = run(lambda x: scaled({"x": x}, by=2.0, power=None))(X)
    np.testing.assert_allclose(got["y"], 2 * np.sin(X))
    np.testing.assert_allclose(run(lambda x: scaled({"x": x}, by=X, power=2)["y"])(X), (np.sin(X) * X) ** 2)
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale.")
    check(lambda x: scaled({"x": x}, by=3.0, power=2)["y"], X)


def test_a_composite_is_in_the_program_as_its_operations():
    program = ft.make_jaxpr(lax.composite(lambda x: fnp.sin(x) / fnp.cos(x), "my.tangent", version=2))(X)
    assert [e.primitive.name for e in program.eqns] == ["sin", "cos", "div"]


def test_results_of_composites_are_arrays_of_their_own():
    x = np.ones(2)
    same = lax.composite(lambda x: x, "my.same")(x)
    x[0] = 5.0
    assert same.tolist() == [1.0, 1.0]
    assert isinstance(lax.composite(lambda: 3, "my.three")(), ft.Array)


def test_bad_composites():
    with pytest.raises(UnexpectedTracerError, match=r"composite of 'my\.scaled': an attribute is traced"):
        ft.jit(lambda x: scaled({"x": X}, by={"in": x}))(2.0)
    with pytest.raises(ArgumentError, match=r"composite of 'my\.scaled': argument\[0\]\['x'\] is 'text'"):
        scaled({"x": "text"}, by=2.0)
    with pytest.raises(ArgumentError, match="the result of <lambda> is 'text'"):
        lax.composite(lambda x: "text", "my.text")(X)
    with pytest.raises(ArgumentError, match="name must be a string"):
        lax.composite(fnp.sin, 3)
    with pytest.raises(ArgumentError, match="expected a function for decomposition"):
        lax.composite(3, "my.three")


# --- with_sharding_constraint -------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_sharding_constraints_change_nothing(run):
    rows = NamedSharding(ft.make_mesh((1,), ("i",)), ft.P("i"))
    tree = {"a": X, "b": [X[0], 3.0]}
    for shardings in ({"a": rows, "b": [rows, ft.P()]}, {"a": ft.P("i", None), "b": ft.devices()[0]}):
        got = run(lambda t, s=shardings: lax.with_sharding_constraint(t, s))(tree)
        np.testing.assert_array_equal(got["a"], X)
        assert isinstance(got["b"][1], ft.Array)
    check(lambda x: lax.with_sharding_constraint(fnp.sin(x), rows), X)


def test_bad_sharding_constraints():
    mesh = ft.make_mesh((1,), ("i",))
    for bad in (None, "cpu", 3):
        with pytest.raises(
            ShardingError, match=r"shardings must be functrans.*NamedSharding or devices, got"
        ):
            lax.with_sharding_constraint(X, bad)
    for sharding in (NamedSharding(mesh, ft.P(None, "i")), ft.P(None, "i")):
        with pytest.raises(ShardingError, match=r"has 2 axes, but the array of shape \(3,\) has fewer"):
            lax.with_sharding_constraint(X[0], sharding)
    with pytest.raises(PytreeError, match="with_sharding_constraint shardings"):
        lax.with_sharding_constraint({"a": X, "b": X}, {"a": ft.P()})
    with pytest.raises(ArgumentError, match="with_sharding_constraint: x"):
        lax.with_sharding_constraint("text", ft.P())


def test_a_spec_without_a_mesh_among_ranks():
    def check(mesh):
        np.testing.assert_array_equal(lax.with_sharding_constraint(X, NamedSharding(mesh, ft.P("i"))), X)
        with pytest.raises(ShardingError, match="needs a mesh"):
            lax.with_sharding_constraint(X, ft.P("i"))

    run_threads((2,), ("i",), check)


# --- rng_uniform --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "int32"])
def test_numbers_are_uniform(run, dtype):
    low, high = np.array([3, 11], dtype)
    draw = run(lambda a, b: lax.rng_uniform(a, b, (200, 20)))
    first, second = draw(low, high), draw(low, high)
    for x in (first, second):
        assert (x.shape, x.dtype) == ((200, 20), dtype)
        assert x.min() >= 3
        assert x.max() < 11
        counts = np.bincount(np.asarray(x).astype(int).ravel(), minlength=11)[3:]
        assert np.sum((counts - 500) ** 2 / 500) < 40  # chi squared with 7 degrees of freedom: 1e-6
    assert (first != second).any()


def test_numbers_of_an_empty_range():
    np.testing.assert_array_equal(lax.rng_uniform(2.0, 2.0, (3,)), [2.0] * 3)
    np.testing.assert_array_equal(lax.rng_uniform(5, 2, (2,)), [5, 5])
    last = np.nextafter(np.float32(1), np.float32(2))
    np.testing.assert_array_equal(
        lax.rng_uniform(np.float32(1), last, (50,)), np.ones(50)
    )  # none is rounded up


def test_numbers_under_transformations():
    lanes = ft.vmap(lambda a: lax.rng_uniform(a, a + 1.0, (5,)))(np.arange(3.0))
    np.testing.assert_array_equal(np.floor(lanes), np.repeat([[0.0], [1.0], [2.0]], 5, 1))
    assert len(np.unique(lanes % 1)) == 15
    value, slope = ft.value_and_grad(lambda x: x * lax.rng_uniform(1.0, 2.0, ()))(3.0)
    np.testing.assert_allclose(value, 3 * slope)
    with pytest.raises(CallbackError, match="'rng_uniform' has no derivative"):
        ft.grad(lambda a: lax.rng_uniform(a, 2.0, ()))(1.0)


def test_a_compiled_loop_draws_other_numbers_each_time():
    draws = ft.jit(lambda: lax.scan(lambda c, _: (c, lax.rng_uniform(0.0, 1.0, ())), 0.0, length=20)[1])
    assert len(np.unique([draws(), draws()])) == 40


def test_bad_ranges():
    with pytest.raises(DtypeError, match="rng_uniform"):
        lax.rng_uniform(np.float32(0), np.float64(1), (3,))
    with pytest.raises(DtypeError, match="must be real numbers or integers, got complex128"):
        lax.rng_uniform(0j, 1j, (3,))
    with pytest.raises(DtypeError, match="must be real numbers or integers, got bool"):
        lax.rng_uniform(False, True, (3,))
    with pytest.raises(ShapeError, match=r"must be scalars, got shapes \(2,\) and \(2,\)"):
        lax.rng_uniform(np.zeros(2), np.ones(2), (2,))
    with pytest.raises(ArgumentError, match="shape must be integers"):
        lax.rng_uniform(0.0, 1.0, "three")
    with pytest.raises(ArrayTooLargeError, match="rng_uniform: "):
        lax.rng_uniform(0.0, 1.0, (2**50,))
