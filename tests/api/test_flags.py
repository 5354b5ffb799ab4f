"""JAX's flags as context managers, and by JAX's names on `config`."""

import logging

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.errors import (
    ConcretizationTypeError,
    ConfigError,
    DtypeError,
    InfError,
    NaNError,
    NoTracingError,
    ShapeError,
    UnexpectedTracerError,
)

PROGRAMS = {
    "division": (lambda x: fnp.divide(1.0, x), "div", 0.0),
    "overflow": (lambda x: fnp.exp(x) * 2.0, "exp", 1e4),
    "in an array": (lambda x: fnp.log(fnp.stack([x, x + 1.0])), "log", 0.0),
    "gradient": (ft.grad(lambda x: fnp.sqrt(x)), "div", 0.0),
    "scan": (lambda x: lax.scan(lambda c, _: (c * c, None), x, None, length=4)[0], "mul", 1e60),
    "vmap": (lambda x: ft.vmap(lambda y: 1.0 / y)(fnp.stack([x + 1.0, x])), "div", 0.0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_infinity_is_an_error(name):
    f, operation, x = PROGRAMS[name]
    x = np.float64(x)
    for run in (f, ft.jit(f), lambda x: ft.jit(f)(x)):
        assert np.isinf(np.asarray(run(x))).any()
        with ft.debug_infs(True):
            assert np.isfinite(np.asarray(run(np.float64(0.5)))).all()
            with pytest.raises(InfError, match=f"{operation} returned inf") as caught:
                run(x)
        assert "test_flags.py" in str(caught.value)
        assert isinstance(caught.value, FloatingPointError)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_moving_an_infinity_is_none():
    x = np.array([np.inf, 1.0])
    with ft.debug_infs():
        for f in (lambda x: x[::-1], lambda x: fnp.where(x > 5, 0.0, x), lambda x: fnp.sort(x), fnp.isinf):
            f(x), ft.jit(f)(x)
        with pytest.raises(InfError, match="It was there before: in operand 0"):
            fnp.add(x, 1.0)
        ft.jit(lambda x: fnp.where(x == 0, 0.0, 1 / x))(np.zeros(2))  # discarded


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_and_inf_together():
    with ft.debug_nans(True), ft.debug_infs(True):
        for run in (fnp.log, ft.jit(fnp.log)):
            with pytest.raises(NaNError, match="log returned NaN"):
                run(-1.0)
            with pytest.raises(InfError, match="log returned inf"):
                run(0.0)
    with ft.debug_infs():
        assert np.isnan(ft.jit(fnp.log)(-1.0))


# --- leaks, tracing, compiling ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transformed",
    [
        ft.jit,
        *[
            pytest.param(
                t, marks=pytest.mark.slow
            )  # each collects garbage, which takes seconds in a large process
            for t in (
                ft.grad,
                ft.vmap,
                lambda f: lambda x: lax.map(f, x),
                lambda f: lambda x: ft.jvp(f, (x,), (x,)),
            )
        ],
    ],
)
def test_leaks(transformed):
    kept = []

    def leaking(x):
        kept.append(x * 2.0)
        return x * 1.0

    x = np.float64(1.0) if transformed is ft.grad else np.ones(3)
    with (
        ft.checking_leaks(),
        pytest.raises(UnexpectedTracerError, match="outlives the function it was traced in"),
    ):
        transformed(leaking)(x)
    kept.clear()
    with ft.check_tracer_leaks(True):
        transformed(lambda x: ft.jit(fnp.sin)(x) * lax.cond(True, lambda: 1.0, lambda: 2.0))(x)
    transformed(leaking)(x)


def test_no_tracing():
    f = ft.jit(lambda x: x + 1.0)
    f(np.ones(2))
    with ft.no_tracing(True):
        f(np.zeros(2))
        with pytest.raises(NoTracingError, match="<lambda> would be traced"):
            f(np.zeros(3))
    f(np.zeros(3))


def test_log_compiles(caplog):
    f = ft.jit(lambda x: x * 3.0 - 1.0)
    with ft.log_compiles(), caplog.at_level(logging.WARNING, "functrans"):
        f(np.ones(2))
        f(np.ones(2))
    messages = [r.getMessage() for r in caplog.records]
    assert len(messages) == 1
    assert messages[0].startswith("Compiled <lambda> for (f64[2]) in ")


def test_compile_time_evaluation():
    @ft.jit
    def f(x):
        with ft.ensure_compile_time_eval():
            weights = fnp.cumsum(fnp.ones(3))
            slope = float(ft.grad(fnp.sin)(0.0))
            assert weights[2] == 3.0
        return x * weights * slope

    np.testing.assert_array_equal(f(2.0), [2.0, 4.0, 6.0])
    assert len(ft.make_jaxpr(f)(2.0).eqns) == 1


def test_compile_time_evaluation_lets_traced_values_pass():
    def g(x):
        with ft.ensure_compile_time_eval():
            table = fnp.cumsum(fnp.ones(3))
            assert type(table) is ft.Array  # computed at once
            y = fnp.sin(x) * table
            loop = ft.lax.scan(lambda c, t: (c + t, None), 0.0, x)[0] if x.ndim else x
            inner = ft.grad(lambda w: fnp.sum(w * x))(table[0])
            return (
                fnp.sum(y)
                + loop
                + ft.jit(lambda t: t * 2)(inner)
                + fnp.sum(ft.vmap(lambda t: t * t)(x[None]))
            )

    def expected(x):
        return 6 * np.sin(x) + x + 2 * x + x * x if np.ndim(x) == 0 else None

    x = np.array(0.5)
    for f in (g, ft.jit(g), ft.jit(ft.jit(g))):
        np.testing.assert_allclose(f(x), expected(x))
    np.testing.assert_allclose(ft.vmap(g)(np.array([0.5, 2.0])), [expected(0.5), expected(2.0)])
    slope = 6 * np.cos(0.5) + 3 + 1.0
    for f in (ft.grad(g), ft.jit(ft.grad(g)), ft.grad(ft.jit(g)), ft.jacfwd(g)):
        np.testing.assert_allclose(f(x), slope)
    rows = np.arange(3.0)
    for f in (ft.jit(g), ft.grad(g), ft.vmap(g)):
        assert np.all(np.isfinite(f(rows)))

    def body(c, x):
        with ft.ensure_compile_time_eval():
            if fnp.arange(3).sum() > 2:
                c = c + x
        return c, c

    assert ft.lax.scan(body, 0.0, rows)[0] == 3.0
    with pytest.raises(ConcretizationTypeError):
        ft.jit(lambda x: ft.ensure_compile_time_eval()(float)(x))(1.0)


def test_hooks_on_traced_values_within_compile_time_evaluation():
    seen = []

    def f(x):
        with ft.ensure_compile_time_eval():
            y = x * 2.0
            ft.register_hook(y, lambda g: seen.append(float(g)))
        return y * 3.0

    assert ft.grad(f)(1.0) == 6.0
    assert seen == [3.0]


# --- promotion ----------------------------------------------------------------------------------------------


def test_strict_dtypes():
    x, y, n = np.ones(2), np.ones(2, np.float32), np.arange(2)
    with ft.numpy_dtype_promotion("strict"):
        for f in (lambda x, y: x * y, fnp.add, lambda x, y: fnp.where(True, x, y)):
            with pytest.raises(DtypeError, match=r"no promotion from float64, float32"):
                ft.jit(f)(x, y)
        with pytest.raises(DtypeError, match="no promotion from int64, float"):
            ft.jit(lambda n: n * 1.5)(n)
        assert ft.jit(lambda y, n: (y * 2.5 + y * 2, n * 2))(y, n)[0].dtype == np.float32
    assert fnp.add(x, y).dtype == np.float64
    ft.jit(lambda n: n * 1.5)(n)


def test_ranks():
    x, y = np.ones((2, 3)), np.ones(3)
    with ft.numpy_rank_promotion("raise"):
        with pytest.raises(ShapeError, match=r"operands of shapes \(2, 3\) and \(3,\) have different ranks"):
            ft.jit(lambda x, y: x * y)(x, y)
        fnp.add(fnp.add(x, 1.0), np.float64(2.0))
    with ft.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="different ranks") as found:
        fnp.add(x, y)
    assert found[0].filename == __file__
    fnp.add(x, y)


# --- config --------------------------------------------------------------------------------------------------


def test_options_by_jaxs_names():
    ft.config.update("jax_debug_nans", True)
    assert ft.config.debug_nans
    assert ft.config.jax_debug_nans
    assert ft.config.read("jax_debug_nans")
    ft.config.jax_debug_nans = False
    assert not ft.config.debug_nans
    ft.config.update("jax_enable_x64", True)
    ft.config.update("jax_platforms", "cpu")
    ft.config.update("jax_platform_name", "cpu")
    ft.config.update("jax_default_matmul_precision", None)
    ft.config.update("jax_enable_compilation_cache", ft.config.cache)
    with pytest.raises(ConfigError, match="no option 'jax_debug_nan': did you mean 'debug_nans'"):
        ft.config.update("jax_debug_nan", True)
    with pytest.raises(ConfigError, match="True or False, got 'yes'"):
        ft.config.update("jax_debug_nans", "yes")
    with pytest.raises(ConfigError, match="'cpu', got 'gpu'"):
        ft.config.update("jax_platforms", "gpu")


def test_single_precision_is_a_matter_of_the_arguments():
    with pytest.raises(ConfigError, match="can only be True: functrans has 64-bit types, except"):
        ft.config.update("jax_enable_x64", False)
    with pytest.raises(ConfigError, match="make the arguments float32"):
        ft.enable_x64(False)
    with ft.enable_x64(True), ft.default_matmul_precision("float32"), ft.default_matmul_precision(None):
        assert fnp.dot(np.ones(2), np.ones(2)).dtype == np.float64
