"""Functions with correct derivative rules of their own, for every way to define one: also a kind of statement.

A `Spec` is a straight-line program of kinds whose derivatives are written down beside them (`Kind.pull`, `push`), so
that its forward and reverse rules are known without automatic differentiation. `fronts` make a function with a custom
rule of a spec; `Spec.plain` is the same function without any rule: the oracle.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

from . import elementwise, indexing, structure  # noqa: F401  they fill the table of kinds
from .fronts import FRONTS
from .libraries import Functrans, Python
from .records import KINDS, Statement, kind, number

COMPILED, NUMPY = Functrans(), Python(np)


def _turn(np_, c):
    return np_.sin(c) + 0.5 * c


def _looped_slope(x, n):
    def body(i, c):
        c, d = c
        return _turn(fnp, c), d * (fnp.cos(c) + 0.5)

    return lax.fori_loop(0, n, body, (x, fnp.ones_like(x)))[1]


def _branch(lib, n, x):
    test = lib.np.real(lib.np.sum(x)) > 0.1 * n
    return lib.cond(test, lambda x: lib.np.sin(x), lambda x: 0.5 * x * x, x)


def _branch_slope(x, n):
    return fnp.where(fnp.real(fnp.sum(x)) > 0.1 * n, fnp.cos(x), x)


@ft.jit
def _jitted_slope(x):
    return fnp.sin(x) + x * fnp.cos(x)


def _with_slope(name, run, slope, **more):
    kind(
        name,
        run,
        number,
        pull=lambda xs, y, ct, n: (ct * slope(xs[0], n),),
        push=lambda xs, y, ts, n: ts[0] * slope(xs[0], n),
        **more,
    )


_with_slope(
    "looped",
    lambda lib, n, x: lib.fori(0, n, lambda i, c: _turn(lib.np, c), x),
    _looped_slope,
    flags="control",
)
_with_slope("branch", _branch, _branch_slope, flags="jumps control")
_with_slope(
    "jitted", lambda lib, n, x: lib.jit(lambda x: x * lib.np.sin(x))(x), lambda x, n: _jitted_slope(x)
)


#: Kinds whose derivatives are written down.
RULED = {name: k for name, k in KINDS.items() if k.pull is not None}


class Spec:
    """A function of `count` arrays, with what its rules are like.

    Parameters
    ----------
    count : int
        Of inputs.
    steps : list of Statement
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

    def plain(self, *xs, lib=COMPILED):
        """The function without any rule."""
        values = self.values(xs, ruled=False, lib=lib)
        return tuple(values[i] for i in self.outs)

    def values(self, xs, ruled=True, known=None, lib=COMPILED):
        """Inputs and all intermediate values, those that are `known` not computed again."""
        values = list(xs)
        for name, of, n in self.steps:
            place = len(values)
            if known and place in known:
                values.append(known[place])
            elif name == "nested":
                inner = self.nested.function if ruled else functools.partial(self.nested.plain, lib=lib)
                values.append(inner(values[of[0]])[0])
            else:
                values.append(KINDS[name].run(lib, n, *[values[i] for i in of]))
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
                else KINDS[name].pull(xs, values[place], ct, n)
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
                t = KINDS[name].push(xs, values[place], ts, n)
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


def draw_spec(scope):
    """A spec on values of a program, and their places."""
    floats = [i for i in scope.places(number) if scope.values[i].size <= 40]
    if not floats:
        return None
    args = scope.choose.some(floats[-5:][::-1], 1, 3)
    args += scope.choose.some(scope.places(lambda x: x.dtype.kind == "i"), 0, 1)
    spec = draw_function(scope.choose, [np.asarray(scope.values[i]) for i in args])
    return None if spec is None else (spec, tuple(args))


def draw_function(choose, arrays, most=4, nested=True, fronts=None):
    """A spec of some arrays, or None if nothing can be drawn that stays small."""
    front = choose.of(list(FRONTS) if fronts is None else fronts)
    inner = True if nested and choose.chance(25) else None
    values, steps = list(arrays), []
    for _ in range(choose.integer(1, most)):
        x = choose.of([i for i, v in enumerate(values) if v.dtype.kind in "fc"])
        y = choose.integer(0, len(values) - 1)
        options = [
            (name, (x, y)[: k.count])
            for name, k in RULED.items()
            if k.fits(*[values[i] for i in (x, y)[: k.count]])
        ]
        if inner is True:
            options.append(("nested", (x,)))
        name, of = choose.of(options)
        if name == "nested":
            inner = draw_function(choose, [values[x]], 2, False, fronts) or True
            if inner is True:
                continue
        step = Statement(name, of, choose.integer(0, 3))
        trial = Spec(len(arrays), [*steps, step], [], set(), {}, inner)
        value = np.asarray(trial.values(arrays, ruled=False, lib=NUMPY)[-1])
        if value.size > 48 or value.ndim > 3 or np.abs(value).max(initial=0) > 20:
            inner = True if name == "nested" else inner
            continue
        steps.append(step)
        values.append(value)
    places = [i for i, v in enumerate(values) if v.dtype.kind in "fc"]
    # The last value is an output; so may be inputs, intermediates, and a value twice.
    outs = [places[-1], *[choose.of(places) for _ in range(choose.integer(0, 2))]]
    saved = {i for i in range(len(arrays), len(values)) if choose.chance(50)}
    return Spec(
        len(arrays), steps, outs, saved, draw_options(choose, front), None if inner is True else inner
    )


def draw_options(choose, front):
    """How a rule is written."""
    return {
        "front": front,
        "automatic": choose.chance(20),
        "again": choose.chance(50),
        "both": choose.chance(33),
        "tree": front != "Function vmap" and choose.chance(50),
        "symbolic": choose.chance(50),
        "unsummed": choose.chance(50),
    }
