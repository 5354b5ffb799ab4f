"""Random well-typed straight-line programs, and random stacks of transformations with their oracles.

A program is a list of steps over NumPy's interface; it runs on NumPy itself (the oracle) and on functrans. Every
program maps one float64 array to an array; its steps stay smooth and of moderate size, so that differences find its
derivatives.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.testing.finite_difference import directional_derivative

SHAPES = [(), (1,), (3,), (0,), (2, 3), (3, 1), (1, 3), (3, 3), (0, 2), (2, 1, 3)]


def _matmul(np_, x):
    w = np.cos(np.arange(x.shape[-1] * 2.0)).reshape(x.shape[-1], 2) / max(1, x.shape[-1])
    return x @ np_.asarray(w)


def _gather(np_, x):
    i = np.arange(-1, 3) % max(len(x), 1) - (len(x) > 1)
    return np_.take(x, i, axis=0)


#: Steps by the least rank they want; `n` is a number drawn with the step.
UNARY = {
    "sin": (0, lambda np_, x, n: np_.sin(x + n)),
    "tanh": (0, lambda np_, x, n: np_.tanh(x) * (n + 1)),
    "exp": (0, lambda np_, x, n: np_.exp(-x * x)),
    "log": (0, lambda np_, x, n: np_.log1p(x * x + n)),
    "sqrt": (0, lambda np_, x, n: np_.sqrt(x * x + 0.5)),
    "divide": (0, lambda np_, x, n: (n + 1) / (x * x + 1.0)),
    "power": (0, lambda np_, x, n: np_.tanh(x) ** (n % 4)),
    "arctan": (0, lambda np_, x, n: np_.arctan2(x, x * x + 1.0)),
    "sum": (1, lambda np_, x, n: np_.sum(x, axis=n % x.ndim)),
    "sum_all": (0, lambda np_, x, n: np_.sum(x)),
    "mean": (1, lambda np_, x, n: np_.sum(x, axis=n % x.ndim, keepdims=True) / (n + 2)),
    "prod": (1, lambda np_, x, n: np_.prod(np_.cos(x), axis=n % x.ndim)),
    "ravel": (0, lambda np_, x, n: np_.reshape(x, (-1,)) if x.size else x),
    "transpose": (0, lambda np_, x, n: np_.transpose(x)),
    "add_axis": (0, lambda np_, x, n: np_.expand_dims(x, n % (x.ndim + 1)) if x.ndim < 3 else x),
    "broadcast": (0, lambda np_, x, n: np_.broadcast_to(x, (2, *x.shape)) * 0.5 if x.ndim < 3 else x),
    "reverse": (1, lambda np_, x, n: x[::-1]),
    "slice": (1, lambda np_, x, n: x[..., n % 2 :: 2]),
    "first": (1, lambda np_, x, n: x[n % len(x)] if len(x) else x),
    "gather": (1, lambda np_, x, n: _gather(np_, x) if len(x) else x),
    "matmul": (1, lambda np_, x, n: _matmul(np_, x)),
    "narrow": (0, lambda np_, x, n: x * np_.float32(0.5)),
    "count": (0, lambda np_, x, n: x * np_.sum(np_.ones(x.shape, "i4") * n)),
}
BINARY = {
    "add": lambda np_, x, y: x + y,
    "subtract": lambda np_, x, y: 2 * x - y,
    "multiply": lambda np_, x, y: np_.tanh(x) * np_.sin(y),
    "where": lambda np_, x, y: np_.where(np.resize([True, False, True], (3,))[: _last(x, y)], x, y),
    "concatenate": lambda np_, x, y: np_.concatenate([np_.ravel(x), np_.ravel(y)]),
    "outer": lambda np_, x, y: np_.sin(np_.ravel(x)[:3, None]) * np_.cos(np_.ravel(y)[None, :3]),
    "dot": lambda np_, x, y: np_.dot(np_.ravel(x)[:2], np_.ravel(x)[:2]) + 0.0 * np_.sum(y),
}


def _last(x, y):
    shape = np.broadcast_shapes(x.shape, y.shape)
    return shape[-1] if shape and shape[-1] in (2, 3) else 1


class Program:
    """Steps ``(name, operands, number)``; operands are places of earlier values."""

    def __init__(self, steps):
        self.steps = steps

    def run(self, np_, x):
        values = [x]
        for name, operands, number in self.steps:
            chosen = [values[i] for i in operands]
            values.append(
                UNARY[name][1](np_, *chosen, number) if name in UNARY else BINARY[name](np_, *chosen)
            )
        return values[-1]

    def __call__(self, x):
        return self.run(fnp, x)

    def reference(self, x):
        return np.asarray(self.run(np, x))

    def __repr__(self):
        lines = [
            f"v{i + 1} = {name}({', '.join(f'v{j}' for j in of)}; {n})"
            for i, (name, of, n) in enumerate(self.steps)
        ]
        return "; ".join(lines)


@st.composite
def programs(draw, max_steps=6):
    """A program and the array it starts from; shapes are followed with NumPy."""
    shape = draw(st.sampled_from(SHAPES))
    values = [_point(shape, draw(st.integers(0, 99)))]
    start, steps = values[0], []
    for _ in range(draw(st.integers(2, max_steps))):
        x = draw(st.sampled_from(range(max(0, len(values) - 2), len(values))))
        y = draw(st.sampled_from(range(len(values))))
        number = draw(st.integers(0, 3))
        names = [k for k, (rank, _) in UNARY.items() if np.ndim(values[x]) >= rank]
        names += [k for k in BINARY if k in ("concatenate", "outer", "dot") or _fit(values[x], values[y])]
        name = draw(st.sampled_from(names))
        step = (name, (x,) if name in UNARY else (x, y), number)
        value = np.asarray(Program([*steps, step]).run(np, start))
        if (
            value.size > 64
            or value.dtype != np.float64
            or not np.isfinite(value).all()
            or np.abs(value).max(initial=0) > 50
        ):
            continue
        steps.append(step)
        values.append(value)
    return Program(steps), laid_out(draw, start)


def _fit(x, y):
    try:
        return len(np.broadcast_shapes(np.shape(x), np.shape(y))) <= 3
    except ValueError:
        return False


def _point(shape, seed):
    return np.asarray(np.random.default_rng(seed).uniform(-1.2, 1.2, shape))


def laid_out(draw, x):
    """The same numbers in another memory layout."""
    how = draw(st.sampled_from(["plain", "strided", "reversed", "fortran", "frozen"]))
    if how == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]))
        wide[..., ::2] = x
        return wide[..., ::2]
    if how == "reversed" and x.ndim:
        return x[::-1].copy()[::-1]
    if how == "fortran":
        return np.asfortranarray(x)
    if how == "frozen":
        x = x.copy()
        x.flags.writeable = False
    return x


# --- stacks of transformations ----------------------------------------------------------------------------------


def direction(x):
    """A fixed direction of the shape of `x`."""
    return np.asarray(np.cos(1.0 + np.arange(x.size))).reshape(x.shape)


def _slope(f, x):
    value, error = directional_derivative(lambda v: [f(v[0])], [np.asarray(x)], [direction(x)])
    return value[0], error[0]


def _jvp(f):
    return lambda x: ft.jvp(f, (x,), (fnp.asarray(direction(x)),))[1]


def _vjp_dot(f):
    """``<ct, f'(x) d>`` by reverse mode."""

    def g(x):
        out, pull = ft.vjp(f, x)
        return fnp.sum(pull(fnp.asarray(direction(out)))[0] * direction(x))

    return g


def _grad_dot(f):
    return lambda x: fnp.sum(ft.grad(lambda y: fnp.sum(f(y) * direction(y_out(f, y))))(x) * direction(x))


def y_out(f, x):
    """A value of the shape of ``f(x)``."""
    return np.zeros(ft.eval_shape(f, ft.ShapeDtypeStruct(x.shape, x.dtype)).shape)


def _vmap(f):
    return lambda x: ft.vmap(f, out_axes=-1)(fnp.stack([x, 0.5 * x, -x]))


def _jit(f):
    return ft.jit(f)


def _oracle_vmap(f):
    return lambda x: np.stack([f(x), f(0.5 * x), f(-x)], -1)


#: name: (transformation, oracle): the oracle is a function of values, or the kind of a directional derivative.
LEVELS = {
    "jit": (_jit, lambda f: f),
    "vmap": (_vmap, _oracle_vmap),
    "jvp": (_jvp, "slope"),
    "vjp": (_vjp_dot, "weighed"),
    "grad": (_grad_dot, "weighed"),
}


def derivative_oracle(f, kind):
    """The map that `f` becomes under a derivative, by finite differences."""

    def g(x):
        slope, _ = _slope(f, x)
        return slope if kind == "slope" else np.sum(slope * direction(slope))

    return g


def stacks(max_depth=3):
    """Names of transformations, outermost first."""
    return st.lists(st.sampled_from(list(LEVELS)), min_size=1, max_size=max_depth)


def apply_stack(program, names):
    """The transformed program, its oracle, and how many of the levels are derivatives.

    Differences are taken of NumPy's values at the innermost derivative; derivatives outside of it are checked
    against differences of functrans's own inner derivative, which shorter stacks check.
    """
    f, oracle, derivatives = program, program.reference, 0
    for name in reversed(names):
        transform, rule = LEVELS[name]
        if isinstance(rule, str):
            inner = oracle if not derivatives else (lambda h: lambda x: np.asarray(h(np.asarray(x))))(f)
            f, oracle = transform(f), derivative_oracle(inner, rule)
            derivatives += 1
        else:
            f, oracle = transform(f), rule(oracle)
    return f, oracle, derivatives
