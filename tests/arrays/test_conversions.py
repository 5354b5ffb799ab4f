"""Where Python asks a differentiated value for a number: said on purpose, or a derivative about to be lost."""

import array
import cmath
import contextlib
import ctypes
import ctypes.util
import functools
import gc
import math
import statistics
import struct
import subprocess
import sys
import weakref
from math import exp

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import functrans as ft
import functrans.numpy as fnp


@pytest.mark.parametrize(
    "fun",
    [
        lambda t: t * float(t),
        lambda t: t * int(t),
        lambda t: t * round(t),
        lambda t: t * len(f"{t:.0f}") * 2,
        lambda t: t * len("%1.0f" % t) * 2,  # noqa: UP031
        lambda t: t * 2 if float(t) > 1 else t,
        lambda t: t * np.float64(float(t)),
    ],
)
def test_an_explicit_conversion_gives_a_constant(fun):
    assert ft.grad(fun)(2.0) == 2.0


cosine = ctypes.CDLL(ctypes.util.find_library("m")).cos
cosine.restype, cosine.argtypes = ctypes.c_double, [ctypes.c_double]
without_source = {}
exec("import math\ndef exponential(x): return math.exp(x)", without_source)

#: What loses a derivative without a word of the user's, and what the error calls it.
LOSING = {
    "math": (lambda t: math.sin(t) * t, "math.sin"),
    "from math": (lambda t: exp(t) * t, "math.exp"),
    "cmath": (lambda t: abs(cmath.sqrt(t)) * t, "cmath.sqrt"),
    "fsum": (lambda t: math.fsum([t, t]), "math.fsum"),
    "floor": (lambda t: math.floor(t) * t, "math.floor"),
    "no source": (without_source["exponential"], "math.exp"),
    "map": (lambda t: sum(map(math.exp, [t, t])), "sum"),
    "map of float": (lambda t: sum(map(float, [t, t])), "sum"),
    "partial": (lambda t: functools.partial(math.sin)(t), "compiled code"),
    "itself": (math.sin, "compiled code"),
    "partial itself": (functools.partial(math.sin), "compiled code"),
    "dictionary": (lambda t: {"exp": math.exp}["exp"](t), "compiled code"),
    "list": (lambda t: [math.exp][0](t), "compiled code"),
    "getattr": (lambda t: getattr(math, "exp")(t), "compiled code"),  # noqa: B009
    "choice": (lambda t: (math.exp if t > 0 else float)(t), "compiled code"),
    "fromiter": (lambda t: np.fromiter((v**2 for v in [t, t]), float).sum(), "numpy.fromiter"),
    "array": (lambda t: array.array("d", [t])[0], "array.array"),
    "struct": (lambda t: struct.unpack("d", struct.pack("d", t))[0], "struct.pack"),
    "C function": (lambda t: cosine(t), "compiled code"),
    "C number": (lambda t: ctypes.c_double(t).value, "ctypes.c_double"),
    "statistics": (lambda t: statistics.fmean([t, t]), "statistics.fmean"),
    "item": (lambda t: t.item() * t, r"item\(\)"),
    "tolist": (lambda t: fnp.stack([t, t]).tolist()[0], r"tolist\(\)"),
    "assignment": (lambda t: np.zeros(3).__setitem__(0, t), "compiled code"),
    "fill": (lambda t: np.zeros(3).fill(t), "compiled code"),
    "dblquad": (
        lambda t: scipy.integrate.dblquad(lambda x, y: t * x * y, 0, 1, 0, 1)[0],
        "scipy.integrate.dblquad",
    ),
    "quad_vec": (lambda t: scipy.integrate.quad_vec(lambda x: t * x, 0, 1)[0], "scipy.integrate.quad_vec"),
}


@pytest.mark.parametrize("name", LOSING)
@pytest.mark.parametrize("transform", [ft.grad, ft.jacfwd, lambda f: lambda t: ft.jvp(f, (t,), (1.0,))])
def test_conversions_that_lose_a_derivative_are_refused(name, transform):
    fun, taker = LOSING[name]
    with pytest.raises(
        ft.errors.TracerScalarConversionError,
        match=f"^{taker} asked for the number of a value .* being differentiated .*stop_gradient",
    ) as seen:
        transform(fun)(1.5)
    assert seen.value.source.filename in (__file__, "<string>")


@pytest.mark.parametrize("name", LOSING)
def test_constants_may_go_anywhere(name):
    if name not in ("item", "tolist", "C function"):  # methods of arrays; ctypes takes Python's numbers only
        ft.grad(lambda t: t * (LOSING[name][0](ft.lax.stop_gradient(t)) is None))(1.5)


def test_the_cure_is_the_function_of_functrans():
    with pytest.raises(ft.errors.TracerScalarConversionError, match=r"Write functrans\.numpy\.hypot"):
        ft.grad(lambda t: math.hypot(t, t))(1.0)


def test_arrays_for_compiled_code_are_refused():
    def fun(t):
        return scipy.optimize.leastsq(lambda y: y**3 + t * y - 1, 0.5)[0][0]

    with pytest.raises(ft.errors.TracerArrayConversionError):
        ft.grad(fun)(1.0)


@pytest.mark.parametrize("way", ["-c", "-"])
def test_programs_without_a_file(way):
    losing = "ft.grad(lambda x: math.exp(x))(1.0)"
    text = f"import functrans as ft, math\nprint(ft.grad(lambda x: float(x) * x)(2.0))\n{losing}"
    command = [sys.executable, way] + ([text] if way == "-c" else [])
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.stdout == "2.0\n"
    assert "TracerScalarConversionError: math.exp asked for" in done.stderr


@pytest.mark.parametrize("write", [lambda b, t: b.__setitem__(0, t), lambda b, t: b.fill(t)])
@pytest.mark.parametrize("transform", [ft.grad, ft.jit])
def test_writing_into_an_array_is_refused(write, transform):
    """NumPy's own error, which is the cause of ours, says nothing of it."""

    def fun(t):
        buffer = np.zeros(3)
        write(buffer, t)
        return fnp.sum(buffer) * t

    with pytest.raises(ft.errors.TracerScalarConversionError, match=r"\.at\[i\]\.set\(v\)") as seen:
        transform(fun)(2.0)
    assert "sequence" in str(seen.value.__cause__)


def test_an_assignment_statement_is_refused():
    def fun(t):
        buffer = np.zeros(3)
        buffer[0] = t
        return fnp.sum(buffer) * t

    with pytest.raises(
        ft.errors.TracerScalarConversionError, match=r"^an assignment into an array asked for"
    ):
        ft.grad(fun)(2.0)


def test_users_own_errors_stay():
    """Even where a conversion was refused before, and that was dealt with."""

    def fun(t):
        with contextlib.suppress(TypeError):
            math.sin(t)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ft.grad(fun)(2.0)


def test_a_refusal_keeps_no_array_alive():
    class Large:
        pass

    def fun(t):
        large = Large()
        alive.append(weakref.ref(large))
        return math.sin(t)

    alive = []
    with pytest.raises(TypeError):
        ft.grad(fun)(2.0)
    gc.collect()
    assert alive[0]() is None


def test_numbers_in_a_custom_rule_are_constants():
    @ft.custom_jvp
    def f(x, n):
        return x * math.sqrt(n)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * math.sqrt(primals[1])))
    assert ft.grad(lambda x: f(x, 4.0))(3.0) == 2.0
