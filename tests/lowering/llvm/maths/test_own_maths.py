"""Our own elementary functions: their errors over all numbers, special values, and loops without calls."""

import ctypes
import math
import platform
import re

import mpmath
import numpy as np
import pytest
from scipy import special

import functrans as ft
from functrans.lowering.backend import Options
from functrans.lowering.llvm.backend import assembly_of
from functrans.lowering.llvm.maths import choice, library
from functrans.lowering.llvm.maths.own_maths import ELEMENTARY, FORMULAS
from functrans.lowering.llvm.maths.own_maths import FUNCTIONS as ALL
from functrans.lowering.llvm.objects import compile_assembly, compile_object
from functrans.lowering.llvm.symbols import load
from functrans.lowering.loops.builder import StatementBuilder
from functrans.lowering.lower import lower
from functrans.lowering.processor import LEVELS, processor
from functrans.lowering.run.compile import compile_kernel
from functrans.passes.scalar_functions import FUNCTIONS

F8, F4 = np.dtype("f8"), np.dtype("f4")
#: Units in the last place. Those of float32 are rounded from doubles.
MOST = dict.fromkeys(ELEMENTARY, 1.9) | {
    "expm1": 2.5, "erf": 4, "sin": 2.5, "cos": 2.5, "tan": 3.8, "arcsin": 2.3, "arctan": 2.4,
    "arctan2": 2.4, "sinh": 2.8, "arccosh": 2.8, "pow": 1.1, "cbrt": 1.1, "exp": 1.3,
}  # fmt: skip
SPECIAL = [
    0.0, np.inf, np.nan, 5e-324, 1e-310, 2.3e-308, 1.2e-38, 1e-45, 1.0, 1.7e308, 3.4e38, 0.5, 2.0, 3.0, 2.5, 1e10,
    2.0**52 + 1, 2.0**53, 2.0**53 + 2, 1e300, 0.25, 1 - 2.0**-53, 1 + 2.0**-52, 1 + 2.0**-23, np.pi, 710.4, 710.6,
    89.0, 1023.5, 1024.0, 1074.0, 1075.0, 1022.0, 2.0**20, 2.0**24 + 2, 1e22,
]  # fmt: skip
#: Processors: this one, and those of x86-64 with vectors of 256 and 128 bits; the last has no fused multiply-add.
CPUS = ["native", *[level for level in ("x86-64-v3", "x86-64") if level in LEVELS]]


@pytest.fixture(autouse=True)
def no_libmvec(monkeypatch):
    """All functions are our own, and also where the C library's are faster."""
    monkeypatch.setattr(choice, "has_libmvec", lambda: False)
    monkeypatch.setattr(choice, "_SLOW_WITHOUT_FMA", {"double": frozenset(), "float": frozenset()})
    monkeypatch.setenv("FUNCTRANS_CACHE", "0")


def loop(name, arrays):
    n = len(arrays[0])
    b = StatementBuilder(f"own_{name}")
    sources = [b.buffer(f"x{i}", x.dtype, (n,), "in") for i, x in enumerate(arrays)]
    target = b.buffer("y", arrays[0].dtype, (n,), "out")
    with b.loop(n) as i:
        b.store(target, (i,), b.call(name, *[b.load(x, (i,)) for x in sources]))
    return b.finish()


def is_apart(cpu):
    """Whether our functions are no part of kernels for a processor: for this one."""
    return processor(cpu) == processor()


def apply(name, arrays, cpu="native"):
    kernel = compile_kernel(loop(name, arrays), Options(cpu=cpu))
    kind = f"{name}.f{8 * arrays[0].itemsize}"
    assert (f"functrans.maths.{kind}.1(" if is_apart(cpu) else f"functrans.{kind}(") in kernel.llvm
    assert "_ZGV" not in kernel.llvm.replace("_ZGV_LLVM_", "")
    out = np.zeros_like(arrays[0])
    kernel.run((*arrays, out))
    return out


def bits(rng, n, dtype):
    return rng.integers(0, 2 ** (8 * dtype.itemsize), n, dtype=f"u{dtype.itemsize}").view(dtype)


def arguments(name, dtype, n):
    """Special values, random bits, and numbers of ordinary size."""
    rng = np.random.default_rng(len(name))
    edges = np.array([*SPECIAL, *[-x for x in SPECIAL]])
    if FUNCTIONS[name].operands == 2:
        pairs = [
            np.meshgrid(edges, edges),
            bits(rng, 2 * n, dtype).reshape(2, n),
            rng.normal(size=(2, n)),
        ]
        if name == "pow":
            base, large = rng.uniform(0.5, 2, n), 1100 if dtype == F8 else 150
            pairs += [
                (np.exp(rng.uniform(-80, 80, n)), rng.uniform(-1, 1, n)),
                (base, rng.uniform(-1, 1, n) * large / np.log2(base)),
                (1 + 1e-6 * rng.normal(size=n), 1e8 * rng.normal(size=n)),
                (rng.uniform(-4, 4, n), rng.integers(-60, 60, n)),
            ]
        else:
            pairs.append(rng.normal(size=(2, n)) * 10.0 ** rng.integers(-20, 20, (2, n)))
        return [np.concatenate([np.ravel(p[i]) for p in pairs]).astype(dtype) for i in range(2)]
    angles = np.arange(-n, n) * (np.pi / 2)
    parts = [
        edges,
        bits(rng, n, dtype),
        *[rng.uniform(-a, a, n) for a in (1, 1.1, 30, 800, 1e-5, 2**20, 1e7)],
    ]
    parts += [
        rng.uniform(0.99, 1.01, n),
        1 + rng.uniform(0, 1e-6, n),
        rng.uniform(0, 3, n),
        rng.uniform(-1080, 1030, n),
    ]
    parts += [angles, np.nextafter(angles, np.inf), np.exp(rng.uniform(-700, 700, n))]
    return [np.concatenate(parts).astype(dtype)]


def exact(name, arrays):
    """The values in extended precision."""
    if name == "erf":
        return special.erf(arrays[0].astype(F8)).astype(np.longdouble)
    f = np.power if name == "pow" else getattr(np, name)
    return f(*[x.astype(np.longdouble) for x in arrays])


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no more precise numbers to compare with")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_errors(name, dtype, cpu):
    x = arguments(name, dtype, 10_000)
    actual, expected = apply(name, x, cpu), exact(name, x)
    rounded = expected.astype(dtype)
    finite = np.isfinite(rounded)
    most = np.finfo(dtype).max
    where = np.flatnonzero(~finite & ~np.isnan(rounded) & (np.abs(actual) < most))
    assert where.size == 0, [v[where[0]] for v in x]
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(rounded))
    zero = (rounded == 0) & (actual == 0)
    np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(rounded[zero]))
    errors = np.abs(actual - expected)[finite] / np.spacing(np.abs(rounded[finite])).astype(np.longdouble)
    assert errors.max() <= (MOST[name] if dtype == F8 else 0.51), [v[finite][errors.argmax()] for v in x]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_special_values_are_those_of_numpy(name, dtype, cpu):
    """Whatever has no digits: zeros with their signs, infinities and NaN."""
    x = [v[: 4 * len(SPECIAL) ** FUNCTIONS[name].operands] for v in arguments(name, dtype, 1)]
    f = {"erf": special.erf, "pow": np.power}.get(name) or getattr(np, name)
    actual, expected = apply(name, x, cpu), f(*x).astype(dtype)
    for value in (0.0, np.inf, -np.inf):
        np.testing.assert_array_equal(actual == value, expected == value)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_close_to_multiples_of_a_quarter_turn(name, cpu):
    """Doubles whose difference from a multiple is small, and among them some that the C library computes."""
    near = np.array([11.0, 22.0, 355.0, 710.0, 103993.0, 208341.0, 1042084.5, 1048575.9, -355.0, 0.1])
    far = np.array([2.0**20, -1e7, 245850922.0, 6381956970095103.0 * 2.0**797, 1e300])
    with mpmath.workdps(60):
        expected = [float(getattr(mpmath, name)(mpmath.mpf(v))) for v in near]
    x = np.tile(np.concatenate([near, far, near]), 3)
    actual = apply(name, [x], cpu).reshape(3, -1)
    for row in actual:
        np.testing.assert_allclose(row, [*expected, *row[10:15], *expected], rtol=4 * 2.0**-52, atol=0)
        np.testing.assert_array_equal(row[10:15], [getattr(math, name)(v) for v in far])


def test_powers_that_are_numbers_are_exact():
    base, exponent = (np.ravel(v).astype(F8) for v in np.meshgrid(np.arange(1, 60), np.arange(0, 9)))
    expected = base**exponent
    small = expected < 2.0**53
    np.testing.assert_array_equal(apply("pow", [base, exponent])[small], expected[small])
    k = np.arange(-1074.0, 1024.0)
    np.testing.assert_array_equal(apply("pow", [np.full_like(k, 2.0), k]), np.ldexp(1.0, k.astype(int)))
    np.testing.assert_array_equal(apply("exp2", [k]), np.ldexp(1.0, k.astype(int)))
    np.testing.assert_array_equal(apply("log2", [np.ldexp(1.0, k.astype(int))]), k)
    tens = np.arange(0.0, 23.0)
    np.testing.assert_array_equal(apply("log10", [10.0**tens]), tens)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="vectors of x86-64 are looked for")
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_loops_are_of_vectors(name, dtype, cpu):
    """The only calls are those of the function for far arguments, once a vector; here, loops call vectors' forms."""
    kernel = loop(name, [np.zeros(1000, dtype)] * FUNCTIONS[name].operands)
    text = assembly_of(kernel, Options(cpu=cpu))
    if is_apart(cpu):
        t, native = "double" if dtype == F8 else "float", processor()
        target = library.target_of(native)
        forms = library.forms_of(name, t, target)
        assert forms[-1].symbol in called(text) <= {form.symbol for form in forms}
        text = compile_assembly(library.library_text(name, t, native, target)[0], native)
    assert len(re.findall(r"(?:add|mul|fm\w+)pd\b", text)) >= 8
    others = {
        s for s in called(text) if not re.fullmatch(rf"functrans\.{name}\.(for\.f32|f64)(\.v\d+)?\.far", s)
    }
    assert others == set() or (name in ("sin", "cos", "tan") and others == {f"functrans.c.{name}"})


def called(text):
    """What assembly code calls or jumps to, but for the kernel."""
    return set(re.findall(r"(?:call\w*|jmp\w*)\s+\"?(?!functrans_kernel|\.)([a-z][\w.]+)", text))


@pytest.mark.parametrize("t", ["double", "float"])
@pytest.mark.parametrize("name", [*ALL, *FORMULAS])
def test_all_forms_of_a_function_return_the_same_bits(name, t):
    """For vectors of any length as for one number, whatever the other elements are."""
    dtype, target = F8 if t == "double" else F4, library.target_of(processor())
    forms = library.forms_of(name, t, target)
    operands = FUNCTIONS[name].operands
    x = [np.resize(v, 512) for v in arguments(name, dtype, 20)[:operands]]
    x += [np.linspace(0.1, 0.9, 512).astype(dtype) for _ in range(operands - len(x))]
    n, results = ctypes.c_ssize_t, []
    for form in forms:
        text = f"{library.declaration(form, name, target)}\ndefine void @walk(ptr %p, i64 %n) {{\nentry:\n"
        text += "  br label %loop\nloop:\n  %i = phi i64 [ 0, %entry ], [ %j, %loop ]\n"
        for k in range(operands + 1):
            text += f"  %a{k} = getelementptr ptr, ptr %p, i64 {k}\n  %b{k} = load ptr, ptr %a{k}\n"
            text += f"  %c{k} = getelementptr {t}, ptr %b{k}, i64 %i\n"
        for k in range(operands):
            text += f"  %x{k} = load {form.type}, ptr %c{k}, align 4\n"
        listed = ", ".join(f"{form.type} %x{k}" for k in range(operands))
        text += (
            f"  %r = call {target.convention if form.lanes > 1 else ''}{form.type} @{form.symbol}({listed})\n"
        )
        text += f"  store {form.type} %r, ptr %c{operands}, align 4\n  %j = add i64 %i, {form.lanes}\n"
        text += (
            "  %more = icmp slt i64 %j, %n\n  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n"
        )
        code, out = load(compile_object(text, "walk", processor(), "code")), np.empty(512, dtype)
        places = (ctypes.c_size_t * (operands + 1))(*[v.ctypes.data for v in (*x, out)])
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, n)(code.address)(ctypes.addressof(places), 512)
        results.append(out)
    assert np.isfinite(results[0]).any()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
        number = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(other[number]), np.signbit(results[0][number]))


def test_functions_that_are_slow_without_fused_multiply_add_are_calls(monkeypatch):
    if "x86-64" not in LEVELS:
        pytest.skip("every processor has it")
    monkeypatch.undo()
    monkeypatch.setattr(choice, "has_libmvec", lambda: False)
    x = [np.linspace(0.1, 0.9, 37)]
    for name, dtype, called in (
        ("exp2", F8, True),
        ("sin", F8, False),
        ("sin", F4, True),
        ("cosh", F4, False),
    ):
        kernel = compile_kernel(loop(name, [v.astype(dtype) for v in x]), Options(cpu="x86-64"))
        assert (re.search(rf"@functrans\.(maths\.)?{name}\.", kernel.llvm) is None) == called


def test_numbers_that_come_one_at_a_time_are_the_c_library_s():
    """Outside of loops, and where an iteration waits for the one before; what does not wait is in vectors."""
    n, b = 100_000, StatementBuilder("alone")
    source, target = b.buffer("x", F8, (n,), "in"), b.buffer("y", F8, (2,), "out")
    b.store(target, (1,), b.call("arctan", b.load(source, (3,))))
    state = b.local(b.const(0.5, F8))
    with b.loop(n, interruptible=True) as i:
        turned = b.call("tan", state.get() * b.const(0.25, F8))
        state.set(turned + b.call("cbrt", b.load(source, (i,))))
    b.store(target, (0,), state.get())
    kernel, x, y = compile_kernel(b.finish()), np.linspace(-1, 1, n), np.zeros(2)
    kernel.run((x, y))
    assert {name for name in ("arctan", "tan", "cbrt") if f"@functrans.maths.{name}." in kernel.llvm} == {
        "cbrt"
    }
    expected = 0.5
    for v in x:
        expected = np.tan(expected * 0.25) + np.cbrt(v)
    np.testing.assert_allclose(y, [expected, np.arctan(x[3])], rtol=1e-12)


@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
def test_normal_random_numbers_are_computed_in_whole_vectors(dtype):
    """Their loops have 32-bit integers, of which a vector has more than of doubles."""
    draw = ft.jit(lambda key: ft.random.normal(key, (1000,), dtype)).lower(ft.random.key(0))
    (kernel,) = [step.kernel for step in lower(draw.jaxpr, Options()).steps if hasattr(step, "kernel")]
    lanes = {int(s.rpartition(".")[2]) for s in called(assembly_of(kernel, Options())) if "quick_erfinv" in s}
    cpu = processor()
    assert max(lanes) >= library.target_of(cpu).lanes * (2 if cpu.vector_bits or dtype == F4 else 1)
