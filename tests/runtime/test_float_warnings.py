"""NumPy's warnings name the user's line, and the user's filters decide what becomes of them."""

import inspect
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
import functrans.scipy.special as special

ZEROS = np.zeros(3)
#: Operations that warn at zeros: as a ufunc, in functions of functrans that call NumPy, and in their derivatives.
WARNING = {
    "log": fnp.log,
    "a power": lambda x: x**-1.0,
    "a quotient": lambda x: x / x,
    "overflow": lambda x: fnp.exp(x + 1000.0),
    "a product": lambda x: fnp.matmul(x + 1e200, x + 1e200),
    "a sum": lambda x: fnp.sum(x + 1e308),
    "a cumulative sum": lambda x: fnp.cumsum(x + 1e308),
    "a derivative": fnp.sqrt,
    "a cast": lambda x: (x + 1e300).astype("float32").astype("float64"),
    "a special function": special.logit,
}
TRANSFORMS = {
    "grad": lambda f: ft.grad(lambda x: fnp.sum(f(x))),
    "vjp": lambda f: lambda x: ft.vjp(f, x),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x + 1.0,)),
    "vmap of grad": lambda f: ft.vmap(ft.grad(lambda x: fnp.sum(f(fnp.stack([x, x]))))),
    "grad of grad": lambda f: ft.grad(lambda x: fnp.sum(ft.grad(lambda x: fnp.sum(f(x)))(x))),
}


def places(caught):
    return {(pathlib.Path(w.filename).name, w.category) for w in caught}


PRODUCT = pytest.param("a product", marks=pytest.mark.needs("numpy>=2.3", reason="np.dot warns"))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("operation", [PRODUCT if name == "a product" else name for name in WARNING])
def test_every_warning_names_a_file_of_the_user(operation, transform):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TRANSFORMS[transform](WARNING[operation])(ZEROS)
    silent = transform == "vjp" and operation in (
        "a derivative",
        "a special function",
    )  # only the derivative warns
    assert places(caught) == {(pathlib.Path(__file__).name, RuntimeWarning)} or (silent and not caught)


def test_the_line_and_the_words():
    f = lambda x: fnp.log(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ft.grad(f)(0.0)
    first = caught[0]
    assert first.lineno == inspect.getsourcelines(f)[1]
    with pytest.warns(RuntimeWarning) as plain:
        np.log(np.float64(0.0))
    assert str(first.message) == str(plain[0].message)


def test_several_kinds_in_one_operation():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = ft.vmap(lambda x: fnp.log(x))(np.array([0.0, -1.0, 1.0]))
    assert {str(w.message).partition(" enc")[0] for w in caught} == {"divide by zero", "invalid value"}
    np.testing.assert_array_equal(value, [-np.inf, np.nan, 0.0])


def count(action, calls=4):
    """How many warnings some calls of one line show."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        for _ in range(calls):
            ft.vmap(fnp.log)(ZEROS)
    return len(caught)


def test_the_filters_of_the_user():
    warnings.onceregistry.clear()
    globals().pop("__warningregistry__", None)
    assert count("ignore") == 0
    assert count("always") == 4
    assert count("default") == 1
    assert count("once") == 1
    warnings.onceregistry.clear()


def test_two_lines_are_two_places():
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        ft.vmap(fnp.log)(ZEROS)
        ft.vmap(fnp.log)(ZEROS)
    assert len({w.lineno for w in caught}) == len(caught) == 2


def test_a_filter_by_module():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\.") + "$")
        ft.vmap(fnp.log)(ZEROS)
    assert not caught


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_an_error_comes_from_the_users_line(transform):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero encountered in log") as caught:
            TRANSFORMS[transform](fnp.log)(ZEROS)
    assert caught.value.__suppress_context__
    assert any(entry.path.name == pathlib.Path(__file__).name for entry in caught.traceback)


def test_errstate_of_the_user():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        ft.grad(fnp.log)(0.0)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        ft.grad(fnp.log)(0.0)


def test_a_host_call_is_not_repeated():
    calls = []

    def host(x):
        calls.append(0)
        return np.log(x)

    f = lambda x: ft.pure_callback(host, ft.ShapeDtypeStruct((3,), "f8"), x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(ZEROS)
    assert len(calls) == len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            f(ZEROS)
    assert len(calls) == 2


def test_without_a_filter_of_the_user():
    """As in a script: each line of the user warns once."""
    script = (
        "import functrans as ft, functrans.numpy as fnp\n"
        "for _ in range(3):\n"
        "    ft.grad(lambda x: fnp.log(x) * 0.0 + x)(0.0)\n"
        "fnp.log(0.0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", script], capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    assert [line.split(": ")[0] for line in lines if "in log" in line] == ["<string>:3", "<string>:4"]
    assert all(line.startswith("<string>:") for line in lines)
