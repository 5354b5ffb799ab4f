"""``config.debug_nans`` outside of `jit`: what raises, and what it says."""

import contextvars
import operator
import threading

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.core.debug_nans import blamed, describe, has_nan
from functrans.primitives.elementwise.identities import check_nans
from functrans.runtime.config import config
from functrans.runtime.options import Option

NAN = np.nan


@pytest.fixture
def looking():
    with config.patch(debug_nans=True):
        yield


def raises(*parts):
    return pytest.raises(ft.errors.NaNError, match=".*".join(parts))


@pytest.mark.usefixtures("looking")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_operation_that_returns_nan():
    with raises(
        r"log returned NaN \(2 of 4 elements, the first at \(1, 0\)\)\n  at .*test_debug_nans"
    ) as error:
        fnp.log(np.array([[1.0, 2.0], [-1.0, -2.0]]))
    assert isinstance(error.value, FloatingPointError)
    assert error.value.source.text == "fnp.log(np.array([[1.0, 2.0], [-1.0, -2.0]]))"


@pytest.mark.usefixtures("looking")
@pytest.mark.parametrize(
    "program",
    [
        lambda: fnp.sqrt(-1.0),
        lambda: fnp.divide(np.float32(0), np.float32(0)),
        lambda: fnp.subtract(np.inf, np.array([1.0, np.inf])),
        lambda: fnp.multiply(0j, complex(np.inf, 0)),
        lambda: fnp.sum(np.array([np.inf, -np.inf])),
        lambda: fnp.mean(fnp.zeros(0)),
        lambda: fnp.dot(np.array([np.inf, 1.0]), np.array([0.0, 1.0])),
        lambda: ft.grad(lambda x: fnp.sqrt(x) * x)(0.0),
        lambda: ft.vmap(fnp.log)(np.array([1.0, -1.0])),
        lambda: ft.jvp(fnp.sqrt, (0.0,), (0.0,)),
        lambda: ft.disable_jit()(ft.jit(fnp.log))(-1.0),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_where_a_nan_appears(program):
    with raises("returned NaN"):
        program()


@pytest.mark.usefixtures("looking")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: fnp.asarray(x),
        lambda x: fnp.full(3, NAN),
        lambda x: fnp.isnan(x),
        lambda x: fnp.where(fnp.isnan(x), 0.0, x),
        lambda x: fnp.nan_to_num(x),
        lambda x: fnp.asarray(x)[::-1],
        lambda x: fnp.asarray(x).reshape(3, 1).T,
        lambda x: fnp.sort(x),
        lambda x: fnp.concatenate([x, x]),
        lambda x: fnp.asarray(x).astype(np.float32),
        lambda x: fnp.asarray(x).at[0].set(NAN),
        lambda x: fnp.nansum(x) + fnp.nanmean(x) + fnp.nanmax(x) + fnp.nanstd(x) + fnp.nanmedian(x),
        lambda x: fnp.exp(np.array([np.inf, 1e6])),
        lambda x: fnp.divide(1.0, 0.0),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_that_are_there_may_be_moved_and_dropped(program):
    program(np.array([1.0, NAN, 3.0]))


@pytest.mark.usefixtures("looking")
def test_arithmetic_with_nan_names_the_operand_that_contained_it():
    with raises(r"add returned NaN \(1 of 2 elements, the first at \(1,\)\)", "there before: in operand 1"):
        fnp.add(1.0, np.array([1.0, NAN]))


A = fnp.array([0.0, 1.0])
OPERATORS = {
    "div": lambda: A / 0.0,
    "of numbers": lambda: 0.0 / A,
    "mul": lambda: A * np.inf,
    "add": lambda: A + np.array([NAN, 1.0]),
    "pow": lambda: (-1.0 - A) ** 0.5,
    "remainder": lambda: A % 0.0,
    "0-d": lambda: fnp.array(0.0) / 0.0,
    "weak": lambda: ft.jit(lambda x: x)(0.0) / 0.0,
    "method": lambda: A[:0].mean(),
    "in place": lambda: operator.itruediv(A, 0.0),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operators_and_methods_of_arrays(name, looking):
    with pytest.raises(ft.errors.NaNError) as found:
        OPERATORS[name]()
    assert "test_debug_nans.py" in str(found.value)
    np.testing.assert_array_equal(A + 1.0, [1.0, 2.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_infinities_from_operators():
    with config.patch(debug_infs=True), pytest.raises(ft.errors.InfError, match="div returned inf"):
        A / np.zeros(2) + A
    assert np.isinf((1.0 / A)[0])


def test_off_by_default():
    assert config.debug_nans is False
    assert np.isnan(fnp.add(NAN, 1.0))
    with config.patch(debug_nans=True):
        with config.patch(debug_nans=False):
            assert np.isnan(fnp.add(NAN, 1.0))
        with raises("add"):
            fnp.add(NAN, 1.0)
    assert np.isnan(fnp.add(NAN, 1.0))


def test_an_option_is_not_looked_up_until_it_is_set():
    fresh = Option(False, "An option.")
    fresh.checked(False)
    assert not fresh.ever_changed
    fresh.checked(True)
    fresh.checked(False)
    assert fresh.ever_changed


def test_set_for_the_process():
    config.debug_nans = True
    try:
        config.debug_nans = True
        with raises("add"):
            fnp.add(NAN, 1.0)
    finally:
        config.debug_nans = False
    assert np.isnan(fnp.add(NAN, 1.0))


def test_other_threads_are_not_concerned():
    actual = []
    with config.patch(debug_nans=True):
        thread = threading.Thread(target=lambda: actual.append(fnp.add(NAN, 1.0)))
        thread.start()
        thread.join()
    assert np.isnan(actual[0])


def test_a_context_that_lives_on_goes_on_looking():
    with config.patch(debug_nans=True):
        context = contextvars.copy_context()
    with raises("add"):
        context.run(fnp.add, NAN, 1.0)
    assert np.isnan(fnp.add(NAN, 1.0))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_check_nans(wrap):
    def f(x):
        return fnp.sum(check_nans(x * 2.0, "gradient 0 ('x') returned by MyOpBackward"))

    f = wrap(f)
    assert f(np.ones(3)) == 6.0
    np.testing.assert_array_equal(ft.grad(f)(np.ones(3)), [2.0, 2.0, 2.0])
    with raises(
        r"gradient 0 \('x'\) returned by MyOpBackward is NaN \(1 of 3 elements, the first at \(2,\)\)"
    ):
        f(np.array([1.0, 2.0, NAN]))
    with raises("MyOpBackward is NaN"):
        wrap(ft.vmap(f))(np.array([[1.0, 2.0], [NAN, NAN]]))
    assert check_nans(3, "it") == 3


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_rule_is_blamed():
    with (
        config.patch(debug_nans=True),
        raises("log returned NaN, inside MyOpBackward\n"),
        blamed("MyOpBackward"),
    ):
        fnp.log(-1.0)
    with raises("MyOpBackward is NaN\n"), blamed("MyOpBackward"):
        check_nans(NAN, "the gradient of MyOpBackward")


def test_description_and_test():
    assert describe(NAN) == ""
    assert describe(np.array([[1, NAN]])) == " (1 of 2 elements, the first at (0, 1))"
    assert [has_nan(x) for x in (NAN, complex(0, NAN), np.float32(NAN), np.array([0, NAN]))] == [True] * 4
    assert [has_nan(x) for x in (1, True, "s", None, np.inf, np.zeros(0), np.arange(3))] == [False] * 7
