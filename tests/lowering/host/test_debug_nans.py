"""``config.debug_nans`` for compiled functions: the operation that made the NaN is found, and named with its line."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.runtime.config import config

NAN = np.nan


@pytest.fixture(autouse=True)
def _looking():
    with config.patch(debug_nans=True):
        yield


def raises(*parts):
    return pytest.raises(ft.errors.NaNError, match=".*".join(parts))


def line(error):
    return error.value.source.text


def test_the_operation_on_the_way_to_the_result_is_named():
    @ft.jit
    def f(x):
        logs = fnp.log(x)
        masked = fnp.where(x > 0, logs, 0.0)  # drops a NaN: no fault
        roots = fnp.sqrt(masked - 1.0)
        return fnp.sum(roots), masked

    f(np.array([np.e, 20.0, 30.0]))
    with raises(r"sqrt returned NaN \(1 of 3 elements, the first at \(2,\)\)") as error:
        f(np.array([np.e, 20.0, -1.0]))
    assert line(error) == "roots = fnp.sqrt(masked - 1.0)"


def test_the_option_is_part_of_the_key():
    f = ft.jit(fnp.log)
    with raises("log"):
        f(-1.0)
    with config.patch(debug_nans=False):
        assert np.isnan(f(-1.0))
    with raises("log"):
        f(-1.0)


def test_arguments_that_are_nan():
    x = np.array([1.0, NAN])
    assert np.isnan(ft.jit(lambda x: x[::-1])(x)[0])
    assert ft.jit(fnp.nansum)(x) == 1.0
    with raises("exp returned NaN", "there before: in operand 0"):
        ft.jit(lambda x: fnp.exp(x[::-1]))(x)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_in_the_body_of_a_loop(wrap):
    def body(c, t):
        d = c - t
        return fnp.sqrt(d), d

    with raises("sqrt returned NaN\n") as error:
        wrap(lambda x: lax.scan(body, x, fnp.arange(3.0)))(1.0)
    assert line(error) == "return fnp.sqrt(d), d"
    with raises("log returned NaN\n"):
        wrap(lambda x: lax.while_loop(lambda c: c[1] < 5, lambda c: (fnp.log(c[0]), c[1] + 1), (x, 0)))(3.0)
    with raises("arccos returned NaN\n"):
        wrap(lambda x: lax.cond(x > 0, fnp.arccos, fnp.exp, x))(3.0)
    with raises("sqrt returned NaN"):
        wrap(ft.vmap(lambda x: lax.scan(body, x, fnp.arange(3.0))))(np.array([1.0, 9.0]))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_host_calls_are_not_repeated(wrap):
    seen = []

    def body(c, t):
        ft.debug.callback(lambda c: seen.append(float(c)), c)
        return fnp.sqrt(c - t), c

    def f(x):
        ft.debug.callback(lambda x: seen.append(-float(x)), x)
        first = lax.scan(body, x + 100.0, fnp.arange(2.0))[0]
        return first + lax.scan(body, x, fnp.arange(3.0))[0]

    with raises("sqrt returned NaN\n") as error:
        wrap(f)(1.0)
    assert line(error) == "return fnp.sqrt(c - t), c"
    assert [round(x, 2) for x in seen[:5]] == [-1.0, 101.0, 10.05, 1.0, 1.0]
    assert len(seen) <= 6


def test_host_steps_and_callbacks():
    with raises("pure_callback of bad returned NaN"):
        ft.jit(lambda x: ft.pure_callback(bad, ft.ShapeDtypeStruct((), float), x))(1.0)
    with raises("betainc"):
        ft.jit(lambda x: lax.betainc(x, 1.0, 2.0))(-1.0)


def bad(x):
    return np.asarray(x) * NAN


def test_derivatives():
    def f(x):
        return fnp.sqrt(x) * x

    for program in (ft.grad(ft.jit(f)), ft.jit(ft.grad(f))):
        np.testing.assert_allclose(program(4.0), 3.0)
    with raises("mul returned NaN"):
        ft.grad(ft.jit(f))(0.0)
    with raises("mul returned NaN"):
        ft.jit(ft.grad(f))(0.0)
    with raises("mul returned NaN", "the first at"):
        ft.jit(ft.vmap(ft.grad(f)))(np.array([1.0, 0.0]))


def test_failed_decompositions_that_return_nan():
    with config.patch(linalg_errors="nan"), raises("cholesky returned NaN"):
        ft.jit(fnp.linalg.cholesky)(-np.eye(2))


def test_complex_and_single():
    with raises("log returned NaN"):
        ft.jit(fnp.log)(np.array([1.0, NAN], np.complex64))
    with raises("sqrt returned NaN"):
        ft.jit(fnp.sqrt)(np.float32(-1))


def test_python_backend():
    with config.patch(backend="python"), raises("log returned NaN"):
        ft.jit(fnp.log)(-1.0)


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
REVERSE = {
    "grad": ft.grad,
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](1.0),
    "grad of grad": lambda f: ft.grad(lambda x: ft.grad(f)(x) * 1.0),
    "vmap": lambda f: lambda x: ft.vmap(ft.grad(f))(np.array([1.0, x])),
}


@pytest.mark.parametrize("name", REVERSE)
def test_the_reverse_pass_names_the_line_of_the_forward_pass(name):
    def f(x):
        y = fnp.sqrt(x)
        return y * y

    def looped(x):
        return lax.scan(lambda c, t: (fnp.sqrt(c) ** 2 * t, None), x, fnp.arange(1.0, 3.0))[0]

    with raises("mul returned NaN") as error:
        REVERSE[name](f)(0.0)
    assert line(error) == "y = fnp.sqrt(x)"
    with raises("returned NaN") as error:
        REVERSE[name](looped)(0.0)
    assert line(error).startswith("return lax.scan(lambda")


def test_the_message_mentions_the_reverse_pass():
    with raises("mul returned NaN, in the reverse pass of this line\n"):
        ft.grad(lambda x: fnp.sqrt(x) * x)(0.0)


def test_of_several_results_the_one_with_nan_is_named():
    f = ft.jit(lambda x: (fnp.exp(x), x + 1.0, fnp.log(x), fnp.sin(x)))
    with raises("log") as error:
        f(np.array([1.0, -1.0]))
    assert "log" in line(error)
    for a, b in zip(f(np.array([1.0, 2.0])), (np.exp, lambda x: x + 1, np.log, np.sin), strict=True):
        np.testing.assert_allclose(a, b(np.array([1.0, 2.0])), rtol=1e-14)
