"""Every public function, as the table says: values, dtypes, kernels, batches, derivatives, NumPy's name, odd inputs."""

import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from versions import has

import functrans as ft
from functrans.arrays.array import Array
from functrans.errors import FunctransError
from functrans.testing import check
from functrans.testing.finite_difference import directional_derivative

sys.path.insert(0, str(Path(__file__).parent))

import coverage_table as table
from coverage_table import arrays

ENTRIES = table.load()


def case(entry, *rest, aspect=""):
    """A case of an entry, slow if the entry is; for an aspect, with the versions that its oracle needs."""
    marks = [pytest.mark.slow] if entry.slow else []
    if aspect in entry.needs:
        version, reason = entry.needs[aspect]
        marks.append(pytest.mark.needs(version, reason=reason))
    return pytest.param(entry, *rest, id=entry.id, marks=marks)


def every(aspect):
    """Parametrisation by entry, without those that leave the aspect out."""
    entries = [case(e, aspect=aspect) for e in ENTRIES.values() if aspect not in e.skip]
    return pytest.mark.parametrize("entry", entries)


def first_and_others(aspect):
    """The same, with the first call of each entry, and with its other calls (slow)."""
    entries = [e for e in ENTRIES.values() if aspect not in e.skip]
    return pytest.mark.parametrize(
        ("entry", "calls"),
        [
            *[case(e, e.calls[:1]) for e in entries],
            *[
                pytest.param(e, e.calls[1:], id=f"{e.id}-others", marks=pytest.mark.slow)
                for e in entries
                if len(e.calls) > 1
            ],
        ],
    )


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


# --- comparing ----------------------------------------------------------------------------------------------


def close(got, expected, rtol, what):
    """Two arrays, in dtype, shape and value."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), f"{what}: type"
    if expected.dtype.kind in "fc":
        single = expected.dtype in (np.float32, np.complex64)
        slack = max(rtol, 2e-5) if single else rtol
        size = np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
        np.testing.assert_allclose(got, expected, rtol=slack, atol=slack * size, err_msg=what)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=what)


def same(got, expected, rtol, what):
    """Any result: containers, arrays, Python's numbers."""
    if isinstance(expected, (tuple, list)):
        assert getattr(type(got), "_fields", type(got)) == getattr(
            type(expected), "_fields", type(expected)
        ), what
        assert len(got) == len(expected), what
        for k, (g, e) in enumerate(zip(got, expected)):
            same(g, e, rtol, f"{what}, part {k}")
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert type(got) is Array, f"{what}: {type(got)}"
        close(got, np.asarray(expected), rtol, what)
    elif type(got) is Array:  # where NumPy makes a Python number of its result, a traced one could not be one
        close(got, np.asarray(expected), rtol, what)
    else:
        assert type(got) is type(expected), f"{what}: {type(got)}, want {type(expected)}"
        assert got == expected, what


def normal(like, random):
    """Random directions of the types of arrays."""
    return [
        np.asarray(
            random.standard_normal(np.shape(x))
            + (1j * random.standard_normal(np.shape(x)) if x.dtype.kind == "c" else 0)
        ).astype(x.dtype)
        for x in like
    ]


class Setting:
    """One call at one point: its float arguments, float results, random directions and weights."""

    def __init__(self, entry, call, lane=0):
        self.entry, self.call = entry, call
        self.values = call.values(entry.seed(lane))
        self.active = [i for i, x in enumerate(self.values) if x.dtype.kind in "fc"]
        out = arrays(call(entry.subject, self.values))
        self.smooth_outs = [y for y in out if y.dtype.kind in "fc"]
        random = np.random.default_rng(entry.seed(lane) + 1)
        self.directions = normal([self.values[i] for i in self.active], random)
        self.weights = normal(self.smooth_outs, random)

    @property
    def has_derivative(self):
        return bool(self.active and self.smooth_outs)

    def smooth(self, values):
        """The float results as a function of the float arguments."""

        def f(*primals):
            full = list(values)
            for i, x in zip(self.active, primals):
                full[i] = x
            return tuple(y for y in arrays(self.call(self.entry.subject, full)) if y.dtype.kind in "fc")

        return f

    def everything(self, values, directions, weights):
        """Results, tangents, cotangents."""
        out = tuple(arrays(self.call(self.entry.subject, values)))
        if not self.has_derivative or isinstance(self.entry.differentiable, str):
            return out
        primals = [values[i] for i in self.active]
        f = self.smooth(values)
        return (
            out
            + ft.jvp(f, tuple(primals), tuple(directions))[1]
            + tuple(ft.vjp(f, *primals)[1](tuple(weights)))
        )

    def now(self):
        return self.everything(self.values, self.directions, self.weights)


# --- the tests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", table.NAMESPACES)
def test_every_public_function_has_an_entry(namespace):
    covered = table.covering(ENTRIES)
    module = importlib.import_module(namespace) if table.public(namespace) else None
    missing = [n for n, f in table.public(namespace).items() if id(f) not in covered]
    assert not missing, f"no entry in tests/coverage/cases_*.py for: {' '.join(missing)}"
    mine = [e for e in ENTRIES.values() if e.namespace == namespace]
    assert not [e.id for e in mine if e.name not in getattr(module, "__all__", ())], (
        "entries that name nothing"
    )


def test_the_page_is_current():
    path = Path(__file__).parents[2] / "docs" / "scripts" / "generate_coverage.py"
    spec = importlib.util.spec_from_file_location("generate_coverage", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text() == script.page(), "run python docs/scripts/generate_coverage.py"


@every("value")
def test_value(entry):
    for k, call in enumerate(entry.calls):
        values = call.values(entry.seed())
        given = [x.copy() for x in values]
        got = call(entry.subject, given)
        same(got, call.expected(entry.reference, values), entry.rtol, f"call {k}")
        for x, y in zip(given, values):
            np.testing.assert_array_equal(x, y, err_msg=f"call {k} changed its argument")


@pytest.mark.wide(2)
@first_and_others("jit")
def test_jit(entry, calls):
    """The compiled results, tangents and cotangents of all calls, in one kernel."""
    settings = [Setting(entry, c) for c in calls if not c.eager and c.drawn]
    if not settings:
        return

    def run(points):
        return [s.everything(*p) for s, p in zip(settings, points)]

    got = ft.jit(run)([(s.values, s.directions, s.weights) for s in settings])
    for k, (s, found) in enumerate(zip(settings, got)):
        for i, (g, e) in enumerate(zip(found, s.now(), strict=True)):
            close(g, np.asarray(e), entry.rtol, f"call {k}, result {i}")


def outputs(entry, call):
    """The arrays among the results, as a function of the drawn arguments."""
    return lambda *values: tuple(arrays(call(entry.subject, values)))


@pytest.mark.wide(2)
@first_and_others("vmap")
def test_vmap(entry, calls):
    """Results, tangents and cotangents, mapped over all arguments, or over one with the axis last."""
    for k, call in enumerate(calls):
        if call.eager or not call.drawn:
            continue
        lanes = [Setting(entry, call, lane) for lane in range(2)]
        s = lanes[0]
        points = zip(*[(x.values, x.directions, x.weights) for x in lanes])
        got = ft.vmap(s.everything)(*[[np.stack(x) for x in zip(*parts)] for parts in points])
        for i, (g, e) in enumerate(zip(got, map(np.stack, zip(*[x.now() for x in lanes])), strict=True)):
            close(g, e, entry.rtol, f"call {k}, result {i}")
        for only in range(len(s.values)) if len(s.values) > 1 else ():
            f = outputs(entry, call)
            own = [[x.values[n] if n == only else y for n, y in enumerate(s.values)] for x in lanes]
            mixed = [np.stack([p[n] for p in own], -1) if n == only else x for n, x in enumerate(s.values)]
            axes = tuple(-1 if n == only else None for n in range(len(mixed)))
            for i, (g, e) in enumerate(
                zip(ft.vmap(f, in_axes=axes)(*mixed), zip(*[f(*p) for p in own]), strict=True)
            ):
                close(g, np.stack(e), entry.rtol, f"call {k}, argument {only} mapped, result {i}")


@pytest.mark.wide(2)
@every("derivative")
def test_derivative(entry):
    settings = [Setting(entry, call) for call in entry.calls]
    if entry.differentiable is True:
        assert any(s.has_derivative for s in settings), (
            "no float result of float arguments: differentiable=False"
        )
    for k, s in enumerate(settings):
        if not s.has_derivative:
            continue
        primals = tuple(s.values[i] for i in s.active)
        f = s.smooth(s.values)
        if isinstance(entry.differentiable, str):
            with pytest.raises(FunctransError):
                ft.jvp(f, primals, tuple(s.directions))
            with pytest.raises(FunctransError):
                ft.vjp(f, *primals)[1](tuple(s.weights))
        elif not entry.differentiable:
            for t in (*ft.jvp(f, primals, tuple(s.directions))[1], *ft.vjp(f, *primals)[1](tuple(s.weights))):
                assert not np.any(t), f"call {k}: derivative other than zero; differentiable=False?"
        else:
            first_order(s, f, primals, f"call {k}")
            if entry.order > 1:
                second_order(s, f, primals, f"call {k}")


def agree(got, expected, error, what):
    """A derivative and its finite difference."""
    expected = np.asarray(expected)
    assert got.shape == expected.shape, what
    single = got.dtype in (np.float32, np.complex64)
    size = max(1.0, float(np.max(np.abs(expected), initial=0)))
    slack = (1e-3 if single else 1e-7) * size + 30 * float(np.max(error, initial=0, where=np.isfinite(error)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=slack, err_msg=what)


def paired(xs, ys):
    return sum(float(np.sum(np.asarray(x) * np.asarray(y)).real) for x, y in zip(xs, ys, strict=True))


def adjoint(f, primals, directions, weights, tangents, what):
    """The cotangents belong to the tangents: ``<J v, w> = <v, J^T w>``, and have the types of the arguments."""
    cts = ft.vjp(f, *primals)[1](tuple(weights))
    for x, ct in zip(primals, cts, strict=True):
        assert (ct.shape, ct.dtype) == (x.shape, x.dtype), f"{what}: type of a cotangent"
    left, right = paired(tangents, weights), paired(directions, cts)
    size = sum(float(np.sum(np.abs(np.asarray(a) * np.asarray(b)))) for a, b in zip(tangents, weights))
    single = any(x.dtype in (np.float32, np.complex64) for x in (*primals, *weights))
    assert abs(left - right) <= (1e-4 if single else 1e-9) * max(1.0, size), (
        f"{what}: <J v, w> = {left}, <v, J^T w> = {right}"
    )


def first_order(s, f, primals, what):
    out, tangents = ft.jvp(f, primals, tuple(s.directions))
    slopes, errors = directional_derivative(lambda x: [np.asarray(y) for y in f(*x)], primals, s.directions)
    for i, (t, slope, error) in enumerate(zip(tangents, slopes, errors)):
        assert t.dtype == out[i].dtype, f"{what}: type of tangent {i}"
        agree(t, slope, error, f"{what}: tangent {i}")
    adjoint(f, primals, s.directions, s.weights, tangents, what)


def second_order(s, f, primals, what):
    def gradient(*x):
        return tuple(ft.vjp(f, *x)[1](tuple(s.weights)))

    tangents = ft.jvp(gradient, primals, tuple(s.directions))[1]
    slopes, errors = directional_derivative(
        lambda x: [np.asarray(y) for y in gradient(*x)], primals, s.directions
    )
    for i, (t, slope, error) in enumerate(zip(tangents, slopes, errors)):
        agree(t, slope, error, f"{what}: second derivative in argument {i}")
    weights = normal(primals, np.random.default_rng(s.entry.seed() + 2))
    adjoint(gradient, primals, s.directions, weights, tangents, f"{what}: reverse over reverse")


@pytest.mark.wide(3)
@pytest.mark.parametrize(
    "entry",
    [case(e) for e in ENTRIES.values() if e.differentiable is True and "derivative" not in e.skip],
)
def test_laws(entry):
    """Derivatives are linear and have the types of values; arguments are neither changed nor kept."""
    call = entry.calls[0]
    values = call.values(entry.seed())
    traced = not call.eager and not {"jit", "vmap"} & set(entry.skip)
    laws = ["derivatives_are_linear", "gradients_keep_types", *(["inputs_stay"] if traced else [])]
    check(outputs(entry, call), *values, laws=laws, order=1)


def reaches(entry):
    """Whether NumPy's or SciPy's function of this name is to be called with traced values."""
    if entry.namespace.startswith("functrans.scipy"):
        theirs = getattr(table.NAMESPACES[entry.namespace], entry.name, None)
        return isinstance(theirs, np.ufunc) or hasattr(theirs, "_unpatched")
    return entry.namespace.startswith("functrans.numpy") and entry.counterpart is not None


@pytest.mark.parametrize("entry", [case(e) for e in ENTRIES.values() if "numpy" not in e.skip and reaches(e)])
def test_numpy_function_of_traced_values(entry):
    """It writes the same program, or eagerly gives the same numbers."""
    for k, call in enumerate(entry.calls):
        if not call.drawn or call.sized:  # NumPy knows no sizes
            continue
        values = call.values(entry.seed())
        theirs = lambda *v, c=call: tuple(arrays(c(entry.counterpart, v)))
        ours = outputs(entry, call)
        if not call.eager:
            assert str(ft.make_jaxpr(theirs)(*values)) == str(ft.make_jaxpr(ours)(*values)), f"call {k}"
        elif all(x.dtype.kind in "fc" for x in values):
            for g, e in zip(ft.vjp(theirs, *values)[0], ours(*values), strict=True):
                close(g, np.asarray(e), entry.rtol, f"call {k}")


def public_kind(error):
    """The class that a caller would catch."""
    for kind in type(error).__mro__:
        if kind.__module__ in ("builtins", "numpy.exceptions", "numpy.linalg", "scipy.linalg"):
            return kind
    return Exception


def changed(aspect, call, entry):
    """The drawn arguments of a call in an odd form; None where the form changes nothing."""
    seed = entry.seed()
    if aspect == "0-d":
        return call.values(seed, lambda d: ())
    if aspect == "empty":
        return call.values(seed, lambda d: (0, *d.shape[1:]) if d.shape else ())
    if aspect == "strides":
        return [np.asarray(np.flip(np.flip(x).copy())) if x.ndim else x for x in call.values(seed)]
    values = call.values(seed, dtype=np.float32 if aspect == "float32" else np.int64)
    plain = call.values(seed)
    return None if all(x.dtype == y.dtype for x, y in zip(values, plain)) else values


@pytest.mark.parametrize("entry", [case(e) for e in ENTRIES.values() if e.calls[0].drawn])
def test_odd_input(entry):
    """The same as the oracle: result and dtype, or the kind of exception."""
    for aspect in ("0-d", "empty", "strides", "float32", "int"):
        if aspect not in entry.skip and (aspect not in entry.needs or has(entry.needs[aspect][0])):
            odd_input(entry, aspect)


def odd_input(entry, aspect):
    call = entry.calls[0]
    values = changed(aspect, call, entry)
    if values is None:
        return
    expected = error_or(lambda: call.expected(entry.reference, [x.copy() for x in values]))
    if not isinstance(expected, Exception):
        same(call(entry.subject, values), expected, entry.rtol, aspect)
        return
    own = error_or(lambda: call(entry.subject, values))
    assert isinstance(own, public_kind(expected)), f"{aspect}: {own!r} instead of {expected!r}"
    assert isinstance(own, FunctransError), f"{aspect}: untyped: {own!r}"


#: Where NumPy has no dtype of its own for the result: SciPy and JAX differ, or there is no oracle of the dtype.
LOW_NAMESPACES = ["numpy", "numpy.fft", "lax", "nn", "ops", "scipy.special", "scipy.signal", "image"]
#: NumPy computes eigenvalues in float64; a sign that NumPy forgets.
OTHER_DTYPES = {"numpy.poly"}
OTHER_VALUES = {"numpy.spacing"}


@pytest.mark.slow
@pytest.mark.parametrize("namespace", LOW_NAMESPACES)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_two_bytes(namespace, name):
    """Eager and traced calls give one dtype, in NumPy's functions of float16 that of NumPy, and nearly the numbers."""
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    low = np.dtype(getattr(ft, name))
    for entry in ENTRIES.values():
        call = entry.calls[0]
        values = call.values(entry.seed())
        if entry.namespace != f"functrans.{namespace}" or not any(x.dtype == float for x in values):
            continue
        narrow = [ft.numpy.asarray(x.astype(low)) if x.dtype == float else x for x in values]
        out = error_or(lambda call=call, entry=entry, narrow=narrow: call(entry.subject, narrow))
        if isinstance(out, Exception):
            assert isinstance(out, FunctransError), f"{entry.id}: untyped: {out!r}"
            continue
        dtypes = [y.dtype for y in arrays(out)]
        if not call.eager:
            traced = ft.eval_shape(outputs(entry, call), *narrow)
            assert [y.dtype for y in traced] == dtypes, entry.id
        if namespace == "numpy" and low == np.float16 and entry.id not in OTHER_DTYPES:
            expected = error_or(
                lambda call=call, entry=entry, narrow=narrow: call.expected(entry.reference, narrow)
            )
            assert isinstance(expected, Exception) or [y.dtype for y in arrays(expected)] in ([], dtypes), (
                entry.id
            )
        for got, wide in zip(arrays(out), arrays(call(entry.subject, values))):
            if wide.dtype.kind in "fc" and got.shape == wide.shape and entry.id not in OTHER_VALUES:
                got, wide = got.astype(complex), np.asarray(wide).astype(complex)
                slack = 64 * float(ft.numpy.finfo(low).eps) * np.max(np.abs(wide), initial=0)
                np.testing.assert_allclose(got, wide, rtol=0, atol=slack, err_msg=entry.id)


def error_or(f):
    """The result, or the error."""
    try:
        return f()
    except Exception as error:
        return error
