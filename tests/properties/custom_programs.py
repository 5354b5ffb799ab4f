"""Random functions with correct derivative rules of their own, for every way to define one.

A `Spec` is a straight-line program whose steps have derivatives written down beside them (`STEPS`), so that its forward
and reverse rules are known without automatic differentiation. `FRONTS` make a function with a custom rule of a spec;
`Spec.plain` is the same function without any rule: the oracle.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

_spec = importlib.util.spec_from_file_location(
    "functrans_test_custom_fronts", Path(__file__).with_name("custom_fronts.py")
)
_fronts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fronts)
FRONTS = _fronts.FRONTS

SHAPES = [(), (1,), (3,), (0,), (2, 3), (3, 1), (1, 3), (0, 2), (2, 1, 3)]
DTYPES = ["float64"] * 5 + ["float32", "complex128"]


class Step(NamedTuple):
    """A differentiable function.

    ``pull(args, out, ct, n)`` gives cotangents of its arguments, ``push(args, out, tangents, n)`` the tangent.
    """

    rank: int
    run: Any
    pull: Any
    push: Any


def _pointwise(f, slope):
    return Step(
        0,
        lambda x, n: f(x, n),
        lambda xs, y, ct, n: (ct * slope(xs[0], y, n),),
        lambda xs, y, ts, n: ts[0] * slope(xs[0], y, n),
    )


def _linear(rank, f, transposed):
    return Step(
        rank,
        f,
        lambda xs, y, ct, n: (transposed(xs[0], ct, n),),
        lambda xs, y, ts, n: f(ts[0], n),
    )


def _matrix(x):
    rows = x.shape[-1]
    return fnp.asarray((np.cos(np.arange(rows * 2.0)).reshape(rows, 2) / max(1, rows)).astype(x.dtype))


def _places(x):
    return np.arange(-1, 3) % max(len(x), 1)


def _spread(x, ct, axis):
    return fnp.broadcast_to(fnp.expand_dims(ct, axis), x.shape)


def shrunk(ct, x):
    """A cotangent summed to the shape of `x`, in its dtype."""
    ct = fnp.sum(ct, axis=tuple(range(ct.ndim - x.ndim)))
    ones = tuple(i for i, n in enumerate(x.shape) if n == 1 and ct.shape[i] != 1)
    return fnp.asarray(fnp.sum(ct, axis=ones, keepdims=True), x.dtype)


def _binary(f, pull, push):
    return Step(
        0,
        lambda x, y, n: f(x, y),
        lambda xs, out, ct, n: tuple(shrunk(c, x) for c, x in zip(pull(*xs, out, ct), xs)),
        lambda xs, out, ts, n: push(*xs, out, *ts),
    )


def _turn(i, c):
    return fnp.sin(c) + 0.5 * c


def _looped(x, n):
    return lax.fori_loop(0, n, _turn, x)


def _looped_slope(x, y, n):
    def body(i, c):
        c, d = c
        return _turn(i, c), d * (fnp.cos(c) + 0.5)

    return lax.fori_loop(0, n, body, (x, fnp.ones_like(x)))[1]


def _branch(x, n):
    test = fnp.real(fnp.sum(x)) > 0.1 * n
    return lax.cond(test, lambda x: fnp.sin(x), lambda x: 0.5 * x * x, x)


def _branch_slope(x, y, n):
    return fnp.where(fnp.real(fnp.sum(x)) > 0.1 * n, fnp.cos(x), x)


@ft.jit
def _jitted(x):
    return x * fnp.sin(x)


@ft.jit
def _jitted_slope(x):
    return fnp.sin(x) + x * fnp.cos(x)


UNARY = {
    "looped": _pointwise(_looped, _looped_slope),
    "branch": _pointwise(_branch, _branch_slope),
    "jitted": _pointwise(lambda x, n: _jitted(x), lambda x, y, n: _jitted_slope(x)),
    "sin": _pointwise(lambda x, n: fnp.sin(x + n), lambda x, y, n: fnp.cos(x + n)),
    "bell": _pointwise(lambda x, n: fnp.exp(-x * x), lambda x, y, n: -2.0 * x * y),
    "witch": _pointwise(lambda x, n: (n + 1) / (x * x + 9.0), lambda x, y, n: -2.0 * x * y / (x * x + 9.0)),
    "exp": _pointwise(lambda x, n: fnp.exp(0.3 * x), lambda x, y, n: 0.3 * y),
    "cube": _pointwise(lambda x, n: x**3 * 0.2, lambda x, y, n: 0.6 * x * x),
    "scale": _linear(0, lambda x, n: x * (n - 1.5), lambda x, ct, n: ct * (n - 1.5)),
    "negative": _linear(0, lambda x, n: -x, lambda x, ct, n: -ct),
    "sum": _linear(1, lambda x, n: fnp.sum(x, axis=n % x.ndim), lambda x, ct, n: _spread(x, ct, n % x.ndim)),
    "total": _linear(0, lambda x, n: fnp.sum(x), lambda x, ct, n: fnp.broadcast_to(ct, x.shape)),
    "transpose": _linear(0, lambda x, n: fnp.transpose(x), lambda x, ct, n: fnp.transpose(ct)),
    "ravel": _linear(0, lambda x, n: fnp.reshape(x, (x.size,)), lambda x, ct, n: fnp.reshape(ct, x.shape)),
    "reverse": _linear(1, lambda x, n: x[::-1], lambda x, ct, n: ct[::-1]),
    "broadcast": _linear(
        0, lambda x, n: fnp.broadcast_to(x, (2, *x.shape)), lambda x, ct, n: fnp.sum(ct, axis=0)
    ),
    "slice": _linear(
        1, lambda x, n: x[..., n % 2 :: 2], lambda x, ct, n: fnp.zeros_like(x).at[..., n % 2 :: 2].set(ct)
    ),
    "gather": _linear(
        1,
        lambda x, n: fnp.take(x, _places(x), axis=0) if len(x) else x,
        lambda x, ct, n: fnp.zeros_like(x).at[_places(x)].add(ct) if len(x) else ct,
    ),
    "matmul": _linear(1, lambda x, n: x @ _matrix(x), lambda x, ct, n: ct @ _matrix(x).T),
    "concatenate": _linear(
        1, lambda x, n: fnp.concatenate([x, 2.0 * x]), lambda x, ct, n: ct[: len(x)] + 2.0 * ct[len(x) :]
    ),
}
BINARY = {
    "add": _binary(lambda x, y: x + y, lambda x, y, o, ct: (ct, ct), lambda x, y, o, s, t: s + t),
    "multiply": _binary(
        lambda x, y: x * y, lambda x, y, o, ct: (ct * y, ct * x), lambda x, y, o, s, t: s * y + x * t
    ),
    "blend": _binary(
        lambda x, y: x * fnp.sin(y),
        lambda x, y, o, ct: (ct * fnp.sin(y), ct * x * fnp.cos(y)),
        lambda x, y, o, s, t: s * fnp.sin(y) + x * fnp.cos(y) * t,
    ),
    "divide": _binary(
        lambda x, y: x / (y * y + 9.0),
        lambda x, y, o, ct: (ct / (y * y + 9.0), -2.0 * ct * y * o / (y * y + 9.0)),
        lambda x, y, o, s, t: (s - 2.0 * y * o * t) / (y * y + 9.0),
    ),
}
#: Of a float array and an integer: the integer has no derivative.
INDEXED = {
    "pick": Step(
        1,
        lambda x, k, n: fnp.take(x, k, axis=0),
        lambda xs, y, ct, n: (fnp.zeros_like(xs[0]).at[xs[1]].add(ct), None),
        lambda xs, y, ts, n: fnp.take(ts[0], xs[1], axis=0),
    ),
    "times": Step(
        0,
        lambda x, k, n: x * fnp.sum(k) * 0.25,
        lambda xs, y, ct, n: (ct * fnp.sum(xs[1]) * 0.25, None),
        lambda xs, y, ts, n: ts[0] * fnp.sum(xs[1]) * 0.25,
    ),
}
STEPS = {**UNARY, **BINARY, **INDEXED}


class Spec:
    """A function of `count` arrays, with what its rules are like.

    Parameters
    ----------
    count : int
        Of inputs.
    steps : list of (name, operands, number)
        Operands are places among inputs and values before. ``"nested"`` applies `nested`, a function with a rule.
    outs : list of int
        Places of the outputs.
    saved : set of int
        Which values beside the inputs the reverse rule is given; the others it computes again.
    options : dict
        ``front`` (a name of `FRONTS`), and how the rules are written:

        ``automatic``: the reverse rule differentiates the plain function. ``again``: its forward pass applies the
        function itself. ``both``: there is a rule for the other mode, too. ``tree``: all arguments but the first are in
        a tree. ``symbolic``: rules get symbolic zeros. ``unsummed``: gradients come as broadcast.
    nested : Spec or None
    """

    def __init__(self, count, steps, outs, saved, options, nested=None):
        self.count, self.steps, self.outs, self.saved = count, steps, outs, saved
        self.options, self.nested = options, nested
        self._function = None

    def __repr__(self):
        steps = "; ".join(
            f"v{i + self.count} = {name}({', '.join(f'v{j}' for j in of)}; {n})"
            for i, (name, of, n) in enumerate(self.steps)
        )
        outs = ", ".join(f"v{i}" for i in self.outs)
        inside = "" if self.nested is None else f", nested={self.nested!r}"
        return f"<{self.count} inputs; {steps}; return {outs}; saved {sorted(self.saved)}, {self.options}{inside}>"

    @property
    def function(self):
        """The function with its rule."""
        if self._function is None:
            self._function = FRONTS[self.options["front"]](self)
        return self._function

    def plain(self, *xs):
        """The function without any rule."""
        values = self.values(xs, ruled=False)
        return tuple(values[i] for i in self.outs)

    def values(self, xs, ruled=True, known=None):
        """Inputs and all intermediate values, those that are `known` not computed again."""
        values = list(xs)
        for name, of, n in self.steps:
            place = len(values)
            if known and place in known:
                values.append(known[place])
            elif name == "nested":
                values.append((self.nested.function if ruled else self.nested.plain)(values[of[0]])[0])
            else:
                values.append(STEPS[name].run(*[values[i] for i in of], n))
        return values

    def pull(self, values, cts):
        """Cotangents of the inputs; None for zero."""
        found: list[Any] = [None] * len(values)

        def add(place, ct):
            if ct is not None:
                found[place] = ct if found[place] is None else found[place] + ct

        for place, ct in zip(self.outs, cts):
            add(place, ct)
        for at in range(len(self.steps) - 1, -1, -1):
            name, of, n = self.steps[at]
            place = at + self.count
            ct, xs = found[place], [values[i] for i in of]
            if ct is None:
                continue
            back = (
                ft.vjp(self.nested.function, *xs)[1](_only(ct, self.nested, xs))
                if name == "nested"
                else STEPS[name].pull(xs, values[place], ct, n)
            )
            for i, c in zip(of, back):
                add(i, c)
        return found[: self.count]

    def push(self, values, tangents):
        """Tangents of the outputs; None for zero."""
        found = list(tangents)
        for name, of, n in self.steps:
            place = len(found)
            xs, ts = [values[i] for i in of], [found[i] for i in of]
            if all(t is None for t in ts):
                found.append(None)
                continue
            ts = [
                None if fnp.asarray(x).dtype.kind == "i" else fnp.zeros_like(x) if t is None else t
                for x, t in zip(xs, ts)
            ]
            if name == "nested":
                found.append(ft.jvp(self.nested.function, tuple(xs), tuple(ts))[1][0])
            else:
                t = STEPS[name].push(xs, values[place], ts, n)
                found.append(fnp.broadcast_to(fnp.asarray(t, values[place].dtype), values[place].shape))
        return [found[i] for i in self.outs]

    # --- rules --------------------------------------------------------------------------------------------------

    def kept(self, values, outs=None):
        """What is saved, by place: all inputs, some other values; `outs` in the place of what they are values of."""
        places = [*range(self.count), *[i for i in sorted(self.saved) if i < len(values)]]
        found = {i: values[i] for i in places}
        if outs is not None:
            found.update({i: y for i, y in zip(self.outs, outs) if i in found and i >= self.count})
        return found

    def pulled(self, saved, cts):
        """The reverse rule: cotangents of the inputs (None for zero) from what was saved."""
        inputs = [saved[i] for i in range(self.count)]
        if all(ct is None for ct in cts):
            return [None] * self.count
        if self.options["automatic"]:
            floats = [x for x in inputs if moves(x)]
            outs, back = ft.vjp(lambda *xs: self.plain(*_merged(inputs, xs)), *floats)
            found = iter(back(tuple([fnp.zeros_like(y) if ct is None else ct for ct, y in zip(cts, outs)])))
            result = [next(found) if moves(x) else None for x in inputs]
        else:
            result = self.pull(self.values(inputs, known=saved), cts)
        return [None if ct is None else fnp.asarray(ct, x.dtype) for ct, x in zip(result, inputs)]

    def pushed(self, xs, tangents):
        """The forward rule: outputs, and their tangents (None for zero)."""
        values = self.values(xs)
        ts = self.push(values, tangents)
        outs = tuple([values[i] for i in self.outs])
        return outs, tuple([None if t is None else fnp.asarray(t, y.dtype) for t, y in zip(ts, outs)])


def _merged(inputs, moving):
    rest = iter(moving)
    return [next(rest) if moves(x) else x for x in inputs]


def moves(x):
    """Whether a value is one that has derivatives."""
    return fnp.asarray(x).dtype.kind in "fc"


def _only(ct, spec, xs):
    """The cotangent of the first output, zeros for the others."""
    outs = ft.eval_shape(spec.plain, *[ft.ShapeDtypeStruct(x.shape, x.dtype) for x in xs])
    return (ct, *[np.zeros(o.shape, o.dtype) for o in outs[1:]])


# --- drawing ------------------------------------------------------------------------------------------------------


@st.composite
def specs(draw, max_steps=5, nested=True, fronts=None, inputs=None):
    """A spec and the arrays at which to try it."""
    arrays = draw(points()) if inputs is None else inputs
    front = draw(st.sampled_from(list(FRONTS) if fronts is None else fronts))
    inner = None
    if nested and draw(st.integers(0, 3)) == 0:
        inner = True
    values, steps = list(arrays), []
    for _ in range(draw(st.integers(1, max_steps))):
        x = draw(st.sampled_from([i for i, v in enumerate(values) if v.dtype.kind in "fc"]))
        y = draw(st.sampled_from(range(len(values))))
        names = _fitting(values[x], values[y])
        if inner is True:
            names.append("nested")
        name = draw(st.sampled_from(names))
        if name == "nested":
            inner, _ = draw(specs(2, False, fronts, (values[x],)))
        step = (name, (x,) if name in UNARY or name == "nested" else (x, y), draw(st.integers(0, 3)))
        trial = Spec(len(arrays), [*steps, step], [], set(), {}, inner)
        value = np.asarray(trial.values(arrays, ruled=False)[-1])
        if value.size > 48 or value.ndim > 3 or np.abs(value).max(initial=0) > 20:
            inner = True if name == "nested" else inner
            continue
        steps.append(step)
        values.append(value)
    places = [i for i, v in enumerate(values) if v.dtype.kind in "fc"]
    # The last value is an output; so may be inputs, intermediates, and a value twice.
    outs = [places[-1], *draw(st.lists(st.sampled_from(places), max_size=2))]
    saved = draw(st.sets(st.integers(len(arrays), max(len(arrays), len(values) - 1))))
    return Spec(
        len(arrays), steps, outs, saved, draw(options(front)), None if inner is True else inner
    ), arrays


def _fitting(x, y):
    if y.dtype.kind == "i":
        return [name for name, step in {**UNARY, **INDEXED}.items() if x.ndim >= step.rank and
                (name != "pick" or len(x) > 1)]  # fmt: skip
    names = [name for name, step in UNARY.items() if x.ndim >= step.rank]
    try:
        fits = len(np.broadcast_shapes(x.shape, y.shape)) <= 3
    except ValueError:
        fits = False
    return names + list(BINARY) if fits else names


@st.composite
def points(draw):
    """One to three float arrays that may broadcast, perhaps an array of integers; in many layouts."""
    shape = draw(st.sampled_from(SHAPES))
    dtype = draw(st.sampled_from(DTYPES))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    found = []
    for i in range(draw(st.sampled_from([1, 1, 2, 2, 3]))):
        own = shape if i == 0 else draw(st.sampled_from([shape, shape[1:], (), (1,) * len(shape)]))
        mixed = "float32" if dtype == "float64" and i and draw(st.integers(0, 5)) == 0 else dtype
        found.append(_laid_out(draw, number(random, own, mixed)))
    if draw(st.integers(0, 2)) == 0:
        found.append(np.array([1, 0]) if draw(st.booleans()) else np.array(1, "i4"))
    return tuple(found)


def number(random, shape, dtype):
    """Random numbers of a float or complex dtype."""
    x = random.uniform(-1.2, 1.2, shape)
    if np.dtype(dtype).kind == "c":
        x = 0.7 * x + 0.7j * random.uniform(-1.2, 1.2, shape)
    return np.asarray(x).astype(dtype)


def _laid_out(draw, x):
    how = draw(st.sampled_from(["plain", "plain", "strided", "reversed", "fortran"]))
    if how == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if how == "reversed" and x.ndim:
        return x[::-1].copy()[::-1]
    return np.asfortranarray(x) if how == "fortran" else x


@st.composite
def options(draw, front):
    """How a rule is written."""
    return {
        "front": front,
        "automatic": draw(st.integers(0, 4)) == 0,
        "again": draw(st.booleans()),
        "both": draw(st.integers(0, 2)) == 0,
        "tree": front != "Function vmap" and draw(st.booleans()),
        "symbolic": draw(st.booleans()),
        "unsummed": draw(st.booleans()),
    }
