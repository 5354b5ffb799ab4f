"""Matrices of all pairs, what becomes of them, and products with them: programs for the tests of row blocks."""

import numpy as np
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.run.executable import KernelUnit, compile_jaxpr


def data(rows=131, columns=97, width=7, dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(rows, width), (columns, width), (columns, width + 2)]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def kernel(f, *args, threads=1):
    """The only kernel of a function, before its numbers become parameters."""
    with ft.config.patch(num_threads=threads):
        executable = compile_jaxpr(ft.jit(f).lower(*args).jaxpr)
    (unit,) = [s for s in executable.steps if isinstance(s, KernelUnit)]
    return unit


def square(f):
    return lambda *args: fnp.sum(f(*args) ** 2) / 2


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("map"), st.integers(0, 2)),
        st.tuples(st.just("divide by sums"), st.integers(0, 1)),
        st.tuples(st.just("subtract most"), st.integers(0, 1)),
        st.tuples(st.just("add"), st.integers(0, 3)),
        st.tuples(st.just("pairs"), st.integers(0, 3)),
        st.tuples(st.just("use"), st.integers(0, 3)),
        st.tuples(st.just("turn"), st.just(0)),
    ),
    min_size=2,
    max_size=9,
)


def program(steps):
    """Matrices of all pairs, what becomes of them, and products with them."""

    def f(np_, q, k, v, y):
        pairs, out = [q @ k.T * 0.2], [q, k]
        for kind, which in steps:
            last = pairs[-1]
            if kind == "map":
                pairs.append((np_.tanh(last), last * 0.5 + 0.1, np_.exp(-last * last))[which])
            elif kind == "divide by sums":
                pairs.append(last / (1.0 + np_.sum(last * last, axis=which, keepdims=True)))
            elif kind == "subtract most":
                pairs.append(last - np_.max(last, axis=which, keepdims=True))
            elif kind == "add":
                pairs.append(last + pairs[which % len(pairs)])
            elif kind == "pairs":
                pairs.append(last * (out[-1] @ out[which % len(out)].T) * 0.1)
            elif kind == "use":
                out.append(
                    (last @ v, last.T @ v, last @ y[:, None] * v, (y @ last)[:, None] + v)[which] * 0.1
                )
            else:
                pairs.append(last.T)
        return out[-1], np_.sum(pairs[-1]), np_.sum(pairs[-1] * pairs[0], axis=1)

    return f
