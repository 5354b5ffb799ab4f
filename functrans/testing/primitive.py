"""`check_primitive`: the tests of a primitive, derived from its record.

The slots of the record determine which laws are tested: `abstract` against `impl`, `jvp` against finite differences,
`transpose` by the dot-product law, Taylor coefficients against nested `jvp`, `batch` against a loop, `kernel` against
`impl` through `jit`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..api.compiled.jit import jit
from ..arrays.array import unwrap
from ..core import Linear, Primitive, Zero, aval_of, dtype_kind, finfo, is_inexact, run_quietly
from ..core.values import ArrayLike, PyTree, Tangent, Value
from ..runtime.config import config
from ..transforms.jet import jet
from ..transforms.jvp import jvp
from . import laws
from .domain import Domain
from .report import Margin, Report
from .samples import LAYOUTS, Sample, samples, special_samples, sprinkled_samples
from .setting import normal, pairing

_DOUBLE = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}
_MIXES = 30


def check_primitive(
    prim: Primitive, domain: Domain, *, rng: int = 0, backends: Sequence[str] = ("llvm", "python")
) -> None:
    """Test every rule of a primitive.

    Parameters
    ----------
    prim : Primitive
    domain : Domain
        Its operands and parameters.
    rng : int
        Seed of the samples.
    backends : sequence of {'llvm', 'python'}
        The backends of the kernels.

    Raises
    ------
    LawViolation
        For the first law that does not hold, with its operands.

    Notes
    -----
    Kernels are tested with contiguous, strided, reversed, broadcast, 0-d, empty and size-1 operands and, unless the
    domain excludes them, NaN, infinities, signed zeros, denormals and extreme integers.
    """
    for report, run in _laws(prim, domain, rng, tuple(backends)):
        with report.chained(), config.patch(specialize_below=2):
            run_quietly(run, report)


Law = Callable[[Report], None]


def _laws(prim: Primitive, domain: Domain, rng: int, backends: tuple[str, ...]) -> list[tuple[Report, Law]]:
    def report(title: str) -> Report:
        line = f"functrans.testing.check_primitive({prim.name}_p, domain, rng={rng})"
        return Report(title, f"primitive {prim.name} ({prim.file})", lambda: line, rng, "check_primitive")

    laws: list[tuple[Report, Law]] = [
        (report("impl agrees with abstract"), lambda r: _check_abstract(r, prim, domain, rng))
    ]
    if prim.jvp is not None and domain.smooth:
        title = "jvp = finite differences, and its transpose"
        laws.append((report(title), lambda r: _check_derivatives(r, prim, domain, rng)))
        title = "Taylor coefficients = nested jvp"
        laws.append((report(title), lambda r: _check_taylor(r, prim, domain, rng)))
    if prim.jvp is not None:
        title = "tangents have the types of values"
        laws.append((report(title), lambda r: _check_tangent_types(r, prim, domain, rng)))
    if prim.transpose is not None:
        title = "<J v, w> = <v, J^T w>"
        laws.append((report(title), lambda r: _check_transpose(r, prim, domain, rng)))
    if prim.batch is not None:
        laws.append((report("batch = loop"), lambda r: _check_batch(r, prim, domain, rng)))
    if prim.jvp is not None and prim.batch is not None and domain.smooth:
        title = "transformations compose"
        laws.append((report(title), lambda r: _check_compositions(prim, domain, rng)))
    if prim.kernel is not None:
        title = "kernel = NumPy"
        laws += [(report(title), partial(_check_kernel, prim, domain, rng, b)) for b in backends]
    return laws


def _outputs(prim: Primitive, out: Any) -> list[Any]:
    return list(out) if prim.multiple_results else [out]


def _impl(prim: Primitive, operands: Sequence[Value], params: PyTree) -> list[np.ndarray]:
    return [np.asarray(y) for y in _outputs(prim, prim.impl_for(operands)(*operands, **params))]


def _check_abstract(report: Report, prim: Primitive, domain: Domain, rng: int) -> None:
    for s in samples(domain, rng, "biufc"):
        before = [x.copy() for x in s.operands]
        outs = _impl(prim, s.operands, s.case.params)
        avals = _outputs(prim, prim.abstract(*map(aval_of, s.operands), **s.case.params))
        for y, aval in zip(outs, avals, strict=True):
            report.same_type(s.describe(), y, np.empty(aval.shape, aval.dtype))
        for x, y in zip(s.operands, before):
            if x.tobytes() != y.tobytes():
                report.fail(s.describe(), "impl modified an operand")


# --- derivatives --------------------------------------------------------------------------------------------------


def _moving(s: Sample) -> list[int]:
    """The operands with a derivative."""
    return [
        i for i, (o, x) in enumerate(zip(s.case.operands, s.operands)) if not o.fixed and is_inexact(x.dtype)
    ]


def _function(prim: Primitive, s: Sample) -> Callable[..., Any]:
    """The primitive as a function of the operands with a derivative."""
    moving = _moving(s)

    def f(*xs: ArrayLike) -> Any:
        operands: list[Any] = list(s.operands)
        for i, x in zip(moving, xs):
            operands[i] = unwrap(x)
        return prim.bind(*operands, **s.case.params)

    f.__name__ = f"{prim.name} at {s.describe()}"
    return f


def _check_derivatives(report: Report, prim: Primitive, domain: Domain, rng: int) -> None:
    for s in samples(domain, rng, "fc", all_dtypes=False):
        xs = [s.operands[i] for i in _moving(s)]
        if (
            not s.case.smooth
            or not xs
            or all(not is_inexact(y.dtype) for y in _impl(prim, s.operands, s.case.params))
        ):
            continue
        f = _function(prim, s)
        laws.is_smooth(f, *xs, rng=rng)
        laws.jvp_is_slope(f, *xs, rng=rng)
        laws.vjp_is_adjoint(f, *xs, rng=rng)
        laws.derivatives_are_linear(f, *xs, rng=rng)
        if domain.order > 1:
            laws.hessian_is_symmetric(f, *xs, rng=rng)


def _check_taylor(report: Report, prim: Primitive, domain: Domain, rng: int) -> None:
    """Along ``x + v t + w t**2``, up to the third coefficient."""
    random = np.random.default_rng(rng)
    order = 3 if domain.order > 1 else 1
    for s in samples(domain, rng, "fc", all_dtypes=False):
        xs = [s.operands[i] for i in _moving(s)]
        if not s.case.smooth or not xs:
            continue
        vs, ws = [[0.1 * normal(random, x.shape, x.dtype) for x in xs] for _ in range(2)]
        f = _function(prim, s)

        def along(t: Value, f: Any = f, xs: Any = xs, vs: Any = vs, ws: Any = ws) -> list[Value]:
            return _outputs(prim, f(*[x + t * (v + t * w) for x, v, w in zip(xs, vs, ws)]))

        zero = [np.zeros_like(x) for x in xs]
        series = [list(terms[:order]) for terms in zip(vs, ws, zero)]
        outs, found = jet(lambda *xs, f=f: _outputs(prim, f(*xs)), xs, series)
        nested: Callable[[Any], list[Any]] = along
        scale = 1
        for k in range(order):
            nested, scale = _slope_of(nested), scale * (k + 1)
            for n, (y, got, slope) in enumerate(zip(outs, found, nested(np.float64(0.0)))):
                if is_inexact(aval_of(y).dtype):
                    where = f"{s.describe()}, output {n}, coefficient {k + 1}"
                    actual, expected = _instantiated(got[k]), _instantiated(slope) / scale
                    size = max(np.abs(expected).max(initial=0), np.abs(y).max(initial=0))
                    names = ("the recurrence gives", "nested jvp gives")
                    report.close(where, actual, expected, error=1e-8 * size, names=names)


def _slope_of(f: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    return lambda t: [_instantiated(d) for d in jvp(lambda t: f(t), [t], [np.float64(1.0)])[1]]


def _instantiated(t: Tangent) -> Value:
    return np.zeros(t.shape, t.dtype) if type(t) is Zero else t


def _check_compositions(prim: Primitive, domain: Domain, rng: int) -> None:
    """Stacks of jit, grad and vmap, in the first case only."""
    tried = [s for s in samples(domain, rng, "f", all_dtypes=False) if s.case.smooth and _moving(s)]
    for s in tried[:1]:
        xs = [s.operands[i] for i in _moving(s)]
        if is_inexact(_impl(prim, s.operands, s.case.params)[0].dtype):
            f = _function(prim, s)
            laws.jit_and_grad_commute(f, *xs, rng=rng)
            laws.inputs_stay(f, *xs, rng=rng)


def _check_tangent_types(report: Report, prim: Primitive, domain: Domain, rng: int) -> None:
    assert prim.jvp is not None
    random = np.random.default_rng(rng)
    for s in samples(domain, rng, "fc"):
        tangents = [
            normal(random, x.shape, x.dtype) if i in _moving(s) else Zero(x) for i, x in enumerate(s.operands)
        ]
        outs, out_tangents = prim.jvp(s.operands, tangents, **s.case.params)
        wide = None
        if s.dtype in (np.float32, np.complex64):
            wide = _wide_tangents(prim, s, tangents)
        pairs = zip(
            _outputs(prim, outs), _outputs(prim, out_tangents), _impl(prim, s.operands, s.case.params)
        )
        for k, (y, t, plain) in enumerate(pairs):
            report.same_type(f"{s.describe()}, the value", y, plain)
            if type(t) is Zero:
                t = np.zeros(t.aval.shape, t.aval.dtype)
            report.same_type(f"{s.describe()}, the tangent", t, plain)
            if wide is not None and type(wide[k]) is not Zero:
                size = 1e-4 * np.abs(wide[k]).max(initial=0)
                where = f"{s.describe()}, the tangent in single and double precision"
                report.close(where, t, wide[k], Margin(1e-3, size))


def _wide_tangents(prim: Primitive, s: Sample, tangents: Sequence[Any]) -> list[Any] | None:
    """The tangents of the same numbers in double precision; None if the dtype is a parameter."""
    assert prim.jvp is not None
    if "dtype" in s.case.params:
        return None
    double = _DOUBLE[dtype_kind(s.dtype)]
    operands = [x.astype(double) if x.dtype == s.dtype else x for x in s.operands]
    wide = [Zero(x) if type(t) is Zero else t.astype(double) for x, t in zip(operands, tangents)]
    return _outputs(prim, prim.jvp(operands, wide, **s.case.params)[1])


def _check_transpose(report: Report, prim: Primitive, domain: Domain, rng: int) -> None:
    assert prim.transpose is not None
    if not domain.linear:
        report.fail(
            "the domain",
            "the record has a transpose rule: name the operands in which it is linear (linear=...)",
        )
    random = np.random.default_rng(rng)
    smooth = [s for s in samples(domain, rng, "fc") if s.case.smooth]
    for s, linear in itertools.product(smooth, domain.linear):
        if any(s.case.operands[i].fixed for i in linear):
            report.fail(s.describe(), f"linear={linear} names an operand without a derivative")
        operands, params = s.operands, s.case.params
        v = {i: normal(random, operands[i].shape, operands[i].dtype) for i in linear}
        image = _impl(prim, [v.get(i, x) for i, x in enumerate(operands)], params)
        origin = _impl(prim, [np.zeros_like(x) if i in v else x for i, x in enumerate(operands)], params)
        cts = [normal(random, y.shape, y.dtype) for y in image]
        if any(not is_inexact(y.dtype) for y in image):
            continue
        rule_args = [Linear(aval_of(x)) if i in v else x for i, x in enumerate(operands)]
        back = prim.transpose(cts if prim.multiple_results else cts[0], *rule_args, **params)
        where = f"{s.describe()}, linear in operands {linear}"
        if len(back) != len(operands):
            report.fail(where, f"the rule returned {len(back)} cotangents for {len(operands)} operands")
        for i in linear:
            if back[i] is None or type(back[i]) is Zero:
                back[i] = np.zeros_like(operands[i])
            report.same_type(f"{where}, the cotangent of operand {i}", back[i], operands[i])
        forward, size = pairing([y - z for y, z in zip(image, origin)], cts)
        backward, other = pairing([v[i] for i in linear], [back[i] for i in linear])
        eps = 1e-4 if finfo(image[0].dtype).eps > 1e-8 or np.finfo(s.dtype).eps > 1e-8 else 1e-11
        names = ("<v, J^T w> is", "<J v, w> is")
        report.close(where, backward, forward, error=eps * max(size, other), names=names)


# --- batching -----------------------------------------------------------------------------------------------------


def _check_batch(report: Report, prim: Primitive, domain: Domain, rng: int) -> None:
    assert prim.batch is not None
    random = np.random.default_rng(rng)
    every = samples(domain, rng, "biufc", all_dtypes=False)
    kinds = {dtype_kind(s.dtype) for s in every}
    # One dtype kind is enough for all cases, if there is a choice; the first case tests every kind.
    chosen = "f" if "f" in kinds else min(kinds)
    first = every[0].case if every else None
    for s in every:
        if dtype_kind(s.dtype) != chosen and s.case is not first:
            continue
        places = [list(dict.fromkeys([None, 0, x.ndim])) for x in s.operands]
        mixes = [
            m for m in itertools.islice(itertools.product(*places), 5000) if any(d is not None for d in m)
        ]
        if len(mixes) > _MIXES:
            mixes = [mixes[i] for i in random.choice(len(mixes), _MIXES, replace=False)]
        for n, dims in enumerate(mixes):
            _check_mix(report, prim, domain, s, dims, 1 if n % 5 == 4 else 3, random)


def _check_mix(
    report: Report,
    prim: Primitive,
    domain: Domain,
    s: Sample,
    dims: tuple[int | None, ...],
    size: int,
    random: np.random.Generator,
) -> None:
    assert prim.batch is not None
    params = s.case.params
    lanes = [
        [x if d is None else o.draw(random, s.dtype) for o, x, d in zip(s.case.operands, s.operands, dims)]
        for _ in range(size)
    ]
    args = [x if d is None else np.stack([lane[i] for lane in lanes], d)
            for i, (x, d) in enumerate(zip(s.operands, dims))]  # fmt: skip
    out, out_dims = prim.batch(size, args, dims, **params)
    for y, place in zip(_outputs(prim, out), _outputs(prim, out_dims)):
        where = f"{s.describe()}, batch axes {dims} of size {size}"
        if place is None or np.shape(y)[place] != size:
            report.fail(where, f"the rule returned batch axis {place} for a result of shape {np.shape(y)}")
    for n, lane in enumerate(lanes):
        for k, expected in enumerate(_impl(prim, lane, params)):
            one = np.take(_outputs(prim, out)[k], n, _outputs(prim, out_dims)[k])
            where = f"{s.describe()}, batch axes {dims} of size {size}, lane {n}"
            report.same_type(where, one, expected)
            exact = expected.dtype.kind in "biu"
            report.close(where, one, expected, Margin() if exact else Margin(1e-10, 1e-10))


# --- kernels ------------------------------------------------------------------------------------------------------


def _check_kernel(prim: Primitive, domain: Domain, rng: int, backend: str, report: Report) -> None:
    """All samples in one program of independent equations, so that each primitive compiles once."""
    tried = samples(domain, rng, "biufc")
    if domain.special:
        tried += special_samples(domain, rng) if domain.intervals else sprinkled_samples(tried, domain, rng)
    starts = np.cumsum([0, *[len(s.operands) for s in tried]])

    def program(*flat: Value) -> Any:
        outs = []
        for s, start in zip(tried, starts):
            outs += _outputs(prim, prim.bind(*flat[start : start + len(s.operands)], **s.case.params))
        return outs

    program.__name__ = f"{prim.name}_everywhere"
    compiled = jit(program)
    expected = [_impl(prim, s.operands, s.case.params) for s in tried]
    with config.patch(backend=backend):
        for layout, arrange in LAYOUTS.items():
            results = iter(compiled(*[arrange(x) for s in tried for x in s.operands]))
            for s, ys in zip(tried, expected):
                for y in ys:
                    where = f"backend {backend}, {layout} {s.describe()}"
                    _compare(report, where, s, unwrap(next(results)), y, domain)


def _compare(report: Report, where: str, s: Sample, actual: Value, y: np.ndarray, domain: Domain) -> None:
    report.same_type(where, actual, y)
    if y.dtype.kind in "biu":
        report.close(where, actual, y, operands=s.operands)
        return
    narrow = 1e8 if y.dtype in (np.float32, np.complex64) else 1.0
    report.close(
        where,
        actual,
        y,
        Margin(min(1e-3, domain.rtol * narrow), domain.atol * narrow),
        signed_zeros=dtype_kind(y.dtype) in domain.signed_zeros,
        names=("the kernel gives", "NumPy gives"),
        operands=s.operands,
    )
