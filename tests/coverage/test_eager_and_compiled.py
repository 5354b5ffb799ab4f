"""Every public function eagerly and under `jit`: values, dtypes, weak types and errors agree, on special values too."""

import os
import re
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from versions import has

import functrans as ft
from functrans.core.trace import Tracer

sys.path.insert(0, str(Path(__file__).parent))

import coverage_table as table
from two_ways import DTYPES, EMPTY, BothWays, difference, inputs, odd_shapes, retyped, steps_of

ENTRIES = table.load()

#: Loops that some numbers never end.
DRAWN = re.compile(r"lax\.(while_loop|fori_loop|custom_\w+)|.*\.rvs")

#: Ulps of a function of one operation (docs/accuracy.md: NumPy's maths and the kernels' are each within 2).
ONE_OPERATION = 4
#: Ulps for each operation of others.
EACH_OPERATION = 4

#: LAPACK's routines need not end for matrices with NaN or infinities (that is what SciPy's `check_finite` is for), nor
#: in a lifetime the sums of discrete distributions over all numbers up to the end of the integers.
TAME = re.compile(
    r"(numpy|lax|scipy)\.linalg\..*|scipy\.stats\.(multi|betan?binom|hyper|n?binom|poisson|dirichlet).*|numpy\.(roots|polyfit)"
)

#: Larger differences of elementwise functions, in ulps, with the reason.
ULPS = [
    (r"scipy\.stats\.beta\.pdf", 1000, "an exponential of logarithms times parameters, which cancel"),
    (r"nn\.gelu|scipy\.special\.ndtr", 2000, "tails, which magnify the rounding of x / sqrt(2)"),
    (r"numpy\.(power|float_power)|lax\.pow", 64, "of complex numbers: exp(y * log(x))"),
    (r"scipy\.special\.(inv_)?boxcox.*", 256, "exp(log(x * lmbda + 1) / lmbda) magnifies roundings"),
    (
        r"lax\.(random_gamma_grad|igamma_grad_a)|scipy\.special\.gammainc.*",
        5000,
        "iterations, which NumPy and kernels round differently; tails, which magnify a rounding of their argument",
    ),
    (
        r"(lax|scipy\.special)\.(polygamma|digamma|psi)",
        256,
        "between the poles, terms cancel near a zero",
    ),
    (r"scipy\.stats\.vonmises\.entropy", 2000, "terms as large as kappa cancel"),
    (r"(lax|scipy\.special)\.erfc", 32, "tails, which magnify the rounding of x * x"),
    (r"(numpy|lax)\.expm1", 8, "of complex numbers: two terms cancel"),
    (
        r"numpy\.exp2|lax\.exp2",
        2e8,
        "of complex numbers: the imaginary part times log(2) is an angle, which may be huge",
    ),
]


def _inexact(*values):
    """The dtype of a function's results: float64 for numbers that are not floats."""
    return next((x.dtype for x in map(np.asarray, values) if x.dtype.kind == "f"), np.dtype(float))


def _in_float64(size, x):
    """The size whose rounding in the dtype of `x` is that of another size in float64."""
    return size * 2.0**-29 if np.asarray(x).dtype == np.float32 else size


#: Exponentials, whose tails magnify a rounding of the exponent.
TAILS = re.compile(r"scipy\.stats\.\w+\.(pdf|pmf|cdf|sf)")

#: Results that are differences of larger terms: entry, the size of these, reason. Ulps are those of that size.
TERMS = [
    (
        r"scipy\.stats\.f\.logpdf",
        lambda x, m, n, *_: _in_float64(1.0 + np.abs(m) + np.abs(n), x),
        "logarithms of powers, which cancel, times degrees of freedom; in float64",
    ),
    (
        r"scipy\.stats\.\w+\.(log\w+|ppf|isf|entropy)",
        lambda *values: 1.0,
        "near zero the logarithm of a probability near one, a quantile beside the location or the limits, and an "
        "entropy, which is a sum of logarithms",
    ),
    (
        r"scipy\.stats\.\w+\.(pdf|pmf|cdf|sf)|(lax|scipy\.special)\.(erfc|ndtr)",
        lambda *values: 2.0**20 * np.finfo(_inexact(*values)).tiny,
        "tails that are below the normal numbers have few digits",
    ),
    (r"numpy\.logaddexp2?", lambda *values: 1.0, "near zero a logarithm up to 1 and its operand cancel"),
    (
        r"numpy\.polydiv",
        lambda u, v: np.max(np.abs(u), initial=0.0, where=np.isfinite(u)),
        "the remainder is the dividend minus a product",
    ),
]

#: Differences that are right: entry, kinds (error, message, type, NaN, infinity, signs, numbers), reason.
ALLOWED = [
    (
        r"nn\.(sigmoid|silu|mish)|lax\.logistic|scipy\.special\.expit",
        "numbers",
        "float32: subnormal tails, where NumPy's exp is infinite",
    ),
    (
        r".*(mul|multiply|inner|v?dot|dot_general|vecdot|tensordot|matmul|matvec|vecmat|einsum|conv\w*|correlate\w*|power|pow|symmetric_product|outer|square)",
        "NaN infinity signs",
        "complex products near infinity: where a kernel rounds a product and a sum once, no inf - inf appears",
    ),
    (
        r"numpy\.histogram\w*",
        "error",
        "documented: that data without a range is finite is checked where the numbers are known",
    ),
    (
        r"numpy\.(unravel_index|ravel_multi_index|choose)",
        "error",
        "documented: IndexOutOfBoundsError in compiled code",
    ),
    (r"lax\.linalg\.qdwh", "message", "eagerly by svd, whose name the message has"),
    (
        r"lax\.reduce",
        "error",
        "NumPy's function refuses complex numbers in its own words where they are NumPy's arrays",
    ),
    (r"numpy\.power|lax\.pow", "error", "documented: a kernel truncates negative powers of integers"),
    (
        r"numpy\.(real_if_close|poly\w*|lstsq|geomspace)|numpy\.linalg\.lstsq",
        "type error",
        "documented: dtype, size or an error that depends on numbers, which are not known while tracing",
    ),
    (
        r"scipy\.linalg\..*|scipy\.cluster\.vq\.vq|scipy\.signal\.lfilter",
        "error",
        "documented: checks of numbers (`check_finite`, a leading zero) are made where the numbers are known",
    ),
    (
        r"scipy\.stats\.multivariate_normal\..*",
        "message",
        "the eager message names cov, which the kernel does not know",
    ),
    (
        r"scipy\.stats\.lognorm\.(ppf|isf)",
        "numbers infinity",
        "exp(s * quantile) for a huge s magnifies the rounding of the product",
    ),
    (
        r"scipy\.stats\.\w+\.(isf|ppf)",
        "NaN infinity",
        "an infinite location, and a scale times a quantile that overflows: a kernel rounds product and sum once",
    ),
    (
        r"nn\.scaled_(matmul|dot_general)",
        "numbers NaN infinity",
        "complex numbers, which are scaled in another order",
    ),
    (
        r"scipy\.ndimage\.map_coordinates",
        "values",
        "of huge integers: weighted sums of floats that cancel, rounded to integers",
    ),
    (
        r"image\.scale_and_translate",
        "error",
        "the eager one needs the scale as a number to choose the window",
    ),
]

# C leaves open the sign of an infinity beside NaN. NumPy uses the C library's functions since 2.3, as kernels do.
if not has("numpy>=2.3"):
    ALLOWED.append(
        (
            r"(numpy|lax)\.(arc|a)(sin|sinh|cosh)",
            "signs NaN",
            "other functions of complex numbers, at NaN and infinities",
        )
    )


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def numbers(x):
    """The arrays and numbers of a result."""
    return [
        y
        for y in table.leaves(x)
        if isinstance(y, (np.ndarray, np.generic, Tracer, bool, int, float, complex))
    ]


def allowed(entry, kind):
    return any(re.fullmatch(name, entry.id) and kind in kinds.split() for name, kinds, _ in ALLOWED)


def limit_of(entry, steps):
    """How many ulps the results may differ by; None for functions that are not elementwise."""
    if steps is None:
        return None
    larger = [n for name, n, _ in ULPS if re.fullmatch(name, entry.id)]
    return max([ONE_OPERATION if steps < 2 else EACH_OPERATION * steps, *larger])


def terms_of(entry, values):
    """The size of the terms of which the results are differences; 0 if they are not."""
    return next((size(*values) for name, size, _ in TERMS if re.fullmatch(name, entry.id)), 0.0)


def differences(entry, call, dtype, seed, rounds, forms):
    """What differs for a call in a dtype, for special numbers and odd forms of the arguments."""
    both = BothWays(entry, call, numbers)
    random = np.random.default_rng(seed)
    values = [retyped(x, dtype) for x in call.values(seed)]
    steps = steps_of(both.eager, values)
    limit = limit_of(entry, steps)
    tame = TAME.fullmatch(entry.id) is not None
    if DRAWN.fullmatch(entry.id):
        rounds, forms = 0, [k for k in forms if k != EMPTY or "empty" not in entry.skip]
    points = [
        *inputs(values, bool(rounds) and steps is not None, random, rounds, tame),
        *[list(odd_shapes(values))[k] for k in forms],
    ]
    found = []
    for point in points:
        apart = both.compare(point, limit, terms_of(entry, point), TAILS.fullmatch(entry.id) is not None)
        if apart is not None and not allowed(entry, apart[0]):
            shown = ", ".join(f"{np.asarray(x).dtype}{np.shape(x)}" for x in point)
            found.append(f"{entry.id}, {dtype} ({shown}): {apart[0]}: {apart[1]}")
    return found


def compiled_calls(entry):
    return [c for c in entry.calls if not c.eager and c.drawn]


CASES = [
    pytest.param(e, id=e.id, marks=[pytest.mark.slow] if e.slow else [])
    for e in ENTRIES.values()
    if "jit" not in e.skip and compiled_calls(e)
]


@pytest.mark.wide(2)
@pytest.mark.parametrize("entry", CASES)
def test_eager_and_compiled(entry):
    """Each function in one dtype and one odd form, which its name chooses."""
    number = zlib.crc32(entry.id.encode())
    call = compiled_calls(entry)[0]
    dtype = DTYPES[number % len(DTYPES)]
    assert not differences(entry, call, dtype, entry.seed(), rounds=2, forms=[number // 8 % 6])


@pytest.fixture
def seed():
    """The same in each run: of three new ones, two found a difference that had to be looked at."""
    return int(os.environ.get("FUNCTRANS_TEST_SEED", "2306465565"))


@pytest.mark.slow
@pytest.mark.parametrize("entry", CASES)
def test_all_forms(entry, seed):
    """Each function in another dtype and all odd forms."""
    number = zlib.crc32(entry.id.encode()) + seed
    found = []
    for call in compiled_calls(entry):
        found += differences(
            entry, call, DTYPES[(number + 3) % len(DTYPES)], number, rounds=3, forms=range(6)
        )
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("entry", CASES)
def test_one_lane(entry):
    """Under jit and vmap of one example, as under jit."""
    for call in compiled_calls(entry)[:1]:
        both = BothWays(entry, call, numbers)
        lane = ft.jit(ft.vmap(both.eager))
        for values in inputs(call.values(entry.seed()), False, np.random.default_rng(entry.seed()), 1, True):
            try:
                expected = both.compiled(*values)
            except Exception:
                continue
            got = lane(*[np.asarray(x)[None] for x in values])
            for a, b in zip(expected, got, strict=True):
                found = difference(ft.numpy.asarray(np.asarray(a)), b[0], None, both.rtol)
                assert found is None or allowed(entry, found.split(" ")[0]), found
