"""Accuracy of inlined and vector functions over their range, and what serves where libmvec is missing."""

import re

import numpy as np
import pytest
from scipy import special as scipy_special

import functrans as ft
from functrans.lowering.backend import Options
from functrans.lowering.llvm import objects
from functrans.lowering.llvm.maths import choice as maths
from functrans.lowering.llvm.maths.inline_maths import FASTER, FUNCTIONS
from functrans.lowering.llvm.maths.own_maths import ELEMENTARY
from functrans.lowering.llvm.symbols import has_libmvec, is_in_process
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.processor import processor
from functrans.lowering.run.compile import compile_kernel
from functrans.runtime.libraries import llvm
from functrans.scipy import special

F8, F4 = np.dtype("f8"), np.dtype("f4")
RANGES = {
    "exp": [(-750, 712), (-1, 1), (-745.2, -700), (709, 709.8)],
    "expm1": [(-45, 712), (-1, 1), (-1e-5, 1e-5)],
    "tanh": [(-25, 25), (-1, 1), (-1e-5, 1e-5)],
    "log": [(0, 3), (1e-310, 1e-300), (0, 1e308), (0.999, 1.001)],
    "log1p": [(-1, 2), (-1e-5, 1e-5), (0, 1e308), (-0.3, 0.5)],
    "erf": [(-7, 7), (-1.1, 1.1), (-1e-5, 1e-5)],
    "sin": [(-10, 10), (-1e6, 1e6), (-1e22, 1e22)],
    "cos": [(-10, 10), (-1e6, 1e6), (-1e22, 1e22)],
}


def apply(name, x, accumulators=0):
    n = len(x)
    b = StatementBuilder(name)
    source, target = b.buffer("x", x.dtype, (n,), "in"), b.buffer("y", x.dtype, (n,), "out")
    totals = [b.local(b.const(0.0, x.dtype)) for _ in range(accumulators)]
    with b.loop(n) as i:
        v = b.load(source, (i,))
        b.store(target, (i,), b.call(name, v))
        for total in totals:
            total.set(total.get() + v)
    kernel, out = compile_kernel(b.finish()), np.zeros_like(x)
    kernel.run((x, out))
    return out, kernel


def samples(name, dtype, n=20_001):
    rng = np.random.default_rng(3)
    return np.concatenate([rng.uniform(a, b, n) for a, b in RANGES[name]]).astype(dtype)


def error(actual, name, x):
    """The greatest error in units in the last place against long double."""
    exact = {"erf": None}.get(name, getattr(np, name, None))
    if exact is None:
        expected = scipy_special.erf(x)
    else:
        with np.errstate(divide="ignore"):
            expected = exact(x.astype(np.longdouble))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = expected.astype(x.dtype)
        ulp = np.spacing(np.abs(rounded))
        keep = np.isfinite(rounded) & np.isfinite(ulp)
        np.testing.assert_array_equal(actual[~np.isfinite(rounded)], rounded[~np.isfinite(rounded)])
        return float(np.max(np.abs(actual - expected)[keep] / ulp[keep]))


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
def test_accuracy(name, dtype):
    with np.errstate(over="ignore"):
        x = samples(name, dtype)
    x = x[np.isfinite(x)]
    assert error(apply(name, x)[0], name, x) <= 4


@pytest.mark.parametrize("name", sorted(FASTER))
def test_accuracy_of_several_simultaneous_sums(name):
    x = samples(name, F8)
    actual, kernel = apply(name, x, accumulators=2)
    assert f"call double @functrans.{name}.f64" in kernel.llvm
    assert error(actual, name, x) <= 2.5


def test_sums_in_memory_count_as_well():
    """Three elements that every iteration adds to, as in the sum of an array's columns, live in registers."""
    b = StatementBuilder("columns")
    source, target = b.buffer("x", F8, (50,), "in"), b.buffer("y", F8, (3,), "out")
    with b.loop(3) as j:
        b.store(target, (j,), b.const(0.0, F8))
    with b.loop(50) as i:
        v = b.call("exp", b.load(source, (i,)))
        with b.loop(3) as j:
            b.store(target, (j,), b.load(target, (j,)) + v)
    kernel, x, y = compile_kernel(b.finish()), np.linspace(-1, 1, 50), np.zeros(3)
    kernel.run((x, y))
    assert "call double @functrans.exp.f64" in kernel.llvm
    np.testing.assert_allclose(y, np.exp(x).sum(), rtol=1e-14)


def test_llvm_does_not_see_through_opaque():
    """It may neither compute the zero nor forget to vectorise the loop."""
    n, u4 = 1000, np.dtype("u4")
    b = StatementBuilder("hidden")
    target = b.buffer("y", u4, (n,), "out")
    with b.loop(n) as i:
        b.store(target, (i,), b.call("opaque", b.cast(i, u4)) * b.const(3, u4))
    kernel, y = compile_kernel(b.finish()), np.zeros(n, u4)
    kernel.run((y,))
    np.testing.assert_array_equal(y, 3 * np.arange(n))
    compiler, context = objects._compiler(processor()), llvm.create_context()
    module = llvm.parse_assembly(kernel.llvm, context)
    module.triple, module.data_layout = compiler.triple, compiler.layout
    compiler.optimize(module)
    text = str(module)
    module.close()
    context.close()
    assert re.search(r"= load (i32|<2 x i32>), ptr @functrans\.zero", text)
    assert re.search(r"xor <\d+ x i32>", text)


@pytest.fixture
def no_libmvec(monkeypatch):
    monkeypatch.setattr(maths, "has_libmvec", lambda: False)


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
def test_without_libmvec(name, dtype, no_libmvec):
    with np.errstate(over="ignore"):
        x = samples(name, dtype)
    x = x[np.isfinite(x)]
    actual, kernel = apply(name, x)
    assert "_ZGV" not in kernel.llvm.replace("_ZGV_LLVM_", "")  # of our own
    assert (f"functrans.maths.{name}" in kernel.llvm) == (name in ELEMENTARY)
    assert error(actual, name, x) <= (2.5 if name != "erf" else 4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inlined_functions_at_the_edges(name, no_libmvec):
    edges = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        -5e-324,
        2.3e-308,
        -2.3e-308,
        1.0,
        -1.0,
        1.7e308,
        -1.7e308,
    ]
    x = np.array([v for v in edges for _ in range(9)])
    actual, _ = apply(name, x)
    from scipy import special

    with np.errstate(all="ignore"):
        expected = special.erf(x) if name == "erf" else getattr(np, name)(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-15, atol=0)
    np.testing.assert_array_equal(np.signbit(actual)[x == 0], np.signbit(expected)[x == 0])


def test_only_variants_that_the_library_has_are_named(monkeypatch):
    if not maths.has_libmvec():
        pytest.skip("no libmvec here")
    real = maths.is_in_process
    monkeypatch.setattr(maths, "is_in_process", lambda name: "N4" in name and real(name))
    x = np.linspace(-3, 3, 1001)
    actual, kernel = apply("sin", x)
    assert "_ZGVeN8v_sin" not in kernel.llvm
    np.testing.assert_allclose(actual, np.sin(x), rtol=1e-15, atol=1e-16)


def test_the_sine_and_cosine_of_a_number_are_one_call():
    """Outside of loops; both are the C library's."""
    b = StatementBuilder("both")
    source, target = b.buffer("x", F8, (), "in"), b.buffer("y", F8, (3,), "out")
    x = b.load(source, ())
    for i, name in enumerate(("cos", "sin", "cos")):
        b.store(target, (i,), b.call(name, x))
    kernel, out = compile_kernel(b.finish()), np.zeros(3)
    for angle in (0.0, -0.0, 0.3, -7.0, 1e22, 1e-310, np.nan):
        kernel.run((np.array(angle), out))
        assert np.array_equal(out, [np.cos(angle), np.sin(angle), np.cos(angle)], equal_nan=True)
    if maths.is_in_process("sincos"):
        assert kernel.llvm.count("call double @") == 0


@pytest.mark.parametrize("strict", [False, True])
def test_only_extremes_may_take_either_zero(strict):
    """And nothing may where the written order counts."""
    b = StatementBuilder("zeros")
    source = b.buffer("x", F8, (2,), "in")
    names = ("floor", "ceil", "trunc", "rint", "sqrt", "abs", "min", "max")
    target = b.buffer("y", F8, (len(names),), "out")
    x, other = (b.load(source, (i,)) for i in range(2))
    for i, name in enumerate(names):
        extreme = name in ("min", "max")
        b.store(target, (i,), b.binary(name, x, other) if extreme else b.call(name, x))
    kernel, out = compile_kernel(b.finish(), Options(strict=strict)), np.zeros(len(names))
    lines = [line for line in kernel.llvm.splitlines() if "nsz" in line]
    assert len(lines) == (0 if strict else 2)
    assert all("imum" in line for line in lines)
    with np.errstate(invalid="ignore"):
        for number in (-0.0, 0.0, -0.25, 2.5, -np.inf):
            kernel.run((np.array([number, 1.0]), out))
            expected = [getattr(np, name)(number) for name in names[:6]]
            expected += [min(number, 1.0), max(number, 1.0)]
            np.testing.assert_array_equal(out, expected)
            assert list(np.signbit(out[np.isfinite(out)])) == list(np.signbit(expected)[np.isfinite(out)])


@pytest.mark.skipif(not has_libmvec(), reason="no libmvec here")
def test_the_library_is_loaded_once_it_is_known_to_exist():
    assert any(is_in_process(f"_ZGV{isa}N2v_sin") for isa in "bn")  # of x86-64 and of AArch64


@pytest.mark.parametrize("f", [np.tanh, special.ndtri, special.i0], ids=lambda f: f.__name__)
def test_the_code_of_our_functions_is_no_part_of_kernels(f):
    """It takes milliseconds to compile: a chain of many calls would take seconds."""

    def chain(x):
        for _ in range(8):
            x = f(x) * 0.5
        return x

    text = ft.jit(chain).lower(np.ones(100)).as_text("llvm")
    assert text.count(f"call double @functrans.maths.{f.__name__}.f64.1(") == 8
    assert not re.search(r"define [^@]*@functrans\.(?!kernel)", text)
