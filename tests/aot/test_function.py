"""Functions whose programs users compile: under every transformation, and when each is compiled."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import aot
from functrans.core.ir import Literal
from functrans.errors import ArgumentError, ArgumentValueError, PartitionError

X = np.linspace(0.1, 1.0, 5)


def f(x, y=2.0):
    return {"y": fnp.sum(fnp.sin(x) * fnp.exp(-x) * y)}


@pytest.fixture
def compiled():
    """The function, and the names of the programs in the order in which they were compiled."""
    names = []

    def by(kind):
        def compiler(jaxpr):
            names.append((kind, jaxpr.name))
            return aot.compile_jaxpr(jaxpr)

        return compiler

    return aot.aot_function(f, fw_compiler=by("forward"), bw_compiler=by("backward")), names


def test_the_backward_program_is_compiled_when_a_pullback_first_runs(compiled):
    g, names = compiled
    np.testing.assert_allclose(g(X)["y"], f(X)["y"], rtol=1e-14)
    assert names == [("forward", "f")]
    _, pull = ft.vjp(g, X)
    assert [kind for kind, _ in names] == ["forward"] * 2
    slope = 2 * (np.cos(X) - np.sin(X)) * np.exp(-X)
    np.testing.assert_allclose(pull({"y": 1.0})[0], slope, rtol=1e-13)
    assert [kind for kind, _ in names] == ["forward"] * 2 + ["backward"]
    pull({"y": 2.0})
    _, again = ft.vjp(g, X + 1)
    again({"y": 1.0})
    assert len(names) == 3


@pytest.mark.parametrize(
    "transformed",
    [
        lambda g: ft.grad(g),
        lambda g: ft.jit(ft.grad(g)),
        lambda g: ft.grad(ft.jit(g)),
        lambda g: ft.jacfwd(g),
        lambda g: ft.hessian(g),
        lambda g: ft.jacrev(ft.jacfwd(g)),
        lambda g: lambda x: ft.vmap(ft.grad(g))(np.stack([x, x + 1])),
        lambda g: ft.grad(lambda x: fnp.sum(ft.vmap(g)(fnp.stack([x, 2 * x])))),
        lambda g: ft.grad(lambda x: ft.lax.scan(lambda c, _: (c + g(x * c), None), 1.0, None, length=3)[0]),
    ],
)
def test_transformations(compiled, transformed):
    g, _ = compiled
    ours, plain = transformed(lambda x: g(x)["y"]), transformed(lambda x: f(x)["y"])
    np.testing.assert_allclose(ours(X), plain(X), rtol=1e-10, atol=1e-12)


def test_under_jit_it_is_inlined(compiled):
    g, names = compiled
    np.testing.assert_allclose(ft.jit(g)(X)["y"], f(X)["y"], rtol=1e-14)
    assert names == []


def test_a_compiler_of_ones_own():
    """A compiler that evaluates the equations with NumPy."""
    from_numpy = {"sin": np.sin, "mul": np.multiply, "cos": np.cos}

    def compiler(jaxpr):
        def run(*args):
            values = dict(zip(jaxpr.invars, args, strict=True))
            read = lambda a: a.value if isinstance(a, Literal) else values[a]
            for e in jaxpr.eqns:
                values[e.outvars[0]] = from_numpy[e.primitive.name](*map(read, e.invars))
            return [np.asarray(read(a)) for a in jaxpr.outvars]

        return run

    g = aot.aot_function(lambda x: fnp.sin(x) * x, fw_compiler=compiler)
    np.testing.assert_array_equal(g(X), np.sin(X) * X)


def test_static_arguments_and_choices(compiled):
    g = aot.aot_function(lambda x, n: x**n, static_argnums=1)
    np.testing.assert_allclose(ft.grad(lambda x: fnp.sum(g(x, 3)))(X), 3 * X**2, rtol=1e-13)
    bad = aot.aot_function(f, partition_fn=lambda joint: [1])
    np.testing.assert_allclose(bad(X)["y"], f(X)["y"])
    with pytest.raises(PartitionError, match="returned"):
        ft.vjp(bad, X)
    with pytest.raises(TypeError, match="aot_function"):
        aot.aot_function(3)


def test_it_behaves_as_a_jitted_function():
    """Weak numbers, hooks on values from outside, and `disable_jit`."""
    assert aot.aot_function(lambda x: 2 * x)(2.0).weak_type
    seen = []

    def hooked(x):
        ft.register_hook(x, seen.append)
        return fnp.sum(x * x)

    np.testing.assert_array_equal(ft.grad(aot.aot_function(hooked))(X), 2 * X)
    np.testing.assert_array_equal(seen, [2 * X])
    with ft.disable_jit():
        np.testing.assert_array_equal(aot.aot_function(lambda x: np.asarray(x) + 1)(X), X + 1)


@pytest.mark.parametrize(
    ("compiler", "error", "message"),
    [
        (lambda jaxpr: 3, ArgumentError, "returned 3. Return a callable"),
        (lambda jaxpr: lambda *args: 3.0, ArgumentError, "returned 3.0. Return a list"),
        (lambda jaxpr: lambda *args: [1.0, 2.0], ArgumentError, "2 results.*each of the 1 outputs"),
        (lambda jaxpr: lambda *args: [np.ones(4)], ArgumentValueError, r"result 0 has shape \(4,\).*float64"),
        (lambda jaxpr: lambda *args: [np.ones(5, "f4")], ArgumentValueError, "dtype float32, but.*float64"),
    ],
)
def test_what_a_compiler_returns_is_checked(compiler, error, message):
    double = aot.aot_function(lambda x: x * x, fw_compiler=compiler)
    with pytest.raises(error, match=f"aot_function: fw_compiler <lambda>.*{message}"):
        double(X)
    double = aot.aot_function(lambda x: x * x, bw_compiler=compiler)
    with pytest.raises(error, match=f"aot_function: bw_compiler <lambda>.*{message}"):
        ft.vjp(double, X)[1](X)


def test_a_compiler_may_return_other_arrays_and_numbers():
    total = aot.aot_function(lambda x: fnp.sum(x), fw_compiler=lambda jaxpr: lambda x: (sum(x.tolist()),))
    assert total(X) == pytest.approx(X.sum())
    keys = aot.aot_function(lambda k: ft.random.split(k), fw_compiler=aot.compile_jaxpr)
    assert keys(ft.random.key(0)).shape == (2,)
