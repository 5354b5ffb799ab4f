"""Programs rewritten by rules
===========================

Rewrite programs by rules: a stable logsumexp, and two products of one operand merged into one.

    python examples/rewrite.py
"""

from contextlib import suppress

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import ir

X = ir.Any("x")

# %%
# The first rule: log(sum(exp(x))) overflows for large x; shifted by the maximum it does not.


def shifted(m):
    """The replacement, in terms of the matched value; it keeps the axes of the sum that was written."""
    x = m["x"]
    axes = m.eqns[1].params["axes"]
    largest = ft.lax.stop_gradient(fnp.max(x, axis=axes, keepdims=True))
    return fnp.log(fnp.sum(fnp.exp(x - largest), axis=axes)) + fnp.squeeze(largest, axes)


STABLE = ir.Rule(ir.Op("log", ir.Op("reduce_sum", ir.Op("exp", X))), shifted)


def free_energy(x):
    return fnp.log(fnp.sum(fnp.exp(x), axis=1))


# %%
# The second: x @ a and x @ b are one product with a and b side by side.

#: ``dimension_numbers`` of the product of two matrices.
MATRICES = (((1,), (0,)), ((), ()))


def merged(m):
    """``(x @ a) * tanh(x @ b)`` by one large product instead of two small ones."""
    x, a, b = m["x"], m["a"], m["b"]
    both = x @ fnp.concatenate([a, b], axis=1)
    left, right = both[:, : a.shape[1]], both[:, a.shape[1] :]
    return left * fnp.tanh(right)


def product(name):
    return ir.Op("dot_general", X, ir.Any(name), dimension_numbers=MATRICES)


MERGED = ir.Rule(ir.Op("mul", product("a"), ir.Op("tanh", product("b"))), merged)


def gated(x, a, b):
    return (x @ a) * fnp.tanh(x @ b)


def main():
    rng = np.random.default_rng(0)

    x = np.array([[1000.0, 1000.0], [0.0, 1.0]])
    program, count = ir.rewrite(ir.trace(free_energy, x), STABLE)
    ir.verify(program)
    stable = ir.as_function(program)
    with np.errstate(over="ignore", invalid="ignore"):
        print(f"logsumexp: {count} rewrite, from {free_energy(x)} to {stable(x)}")
    gradient = ft.grad(lambda x: fnp.sum(stable(x)))(x)
    assert np.allclose(stable(x), [1000 + np.log(2), np.log(1 + np.e)])
    assert np.allclose(gradient, [[0.5, 0.5], [1 / (1 + np.e), np.e / (1 + np.e)]])

    x, a, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    program, count = ir.rewrite(ir.trace(gated, x, a, b), MERGED)
    one = ir.as_function(program)
    before, after = (
        sum(e.primitive is ir.primitive("dot_general") for e in p.eqns)
        for p in (ir.trace(gated, x, a, b), program)
    )
    print(f"gate: {count} rewrite, products before {before}, after {after}")
    assert np.allclose(ft.jit(one)(x, a, b), (x @ a) * np.tanh(x @ b))
    assert (before, after) == (2, 1)


# %%
# The function as written, and as rewritten, along a line towards numbers that overflow.


def draw():
    import matplotlib.pyplot as plt

    axes, t = plt.subplots()[1], np.linspace(0.0, 1000.0, 201)
    x = np.stack([t, 0.5 * t], axis=1)
    program, _ = ir.rewrite(ir.trace(free_energy, x), STABLE)
    with np.errstate(over="ignore"):
        written = free_energy(x)
    axes.plot(t, ir.as_function(program)(x), label="rewritten")
    axes.plot(t[np.isfinite(written)], written[np.isfinite(written)], "--", label="as written")
    axes.axvspan(t[np.isfinite(written)].max(), 1000, color="C1", alpha=0.15, linewidth=0)
    axes.text(855, 150, "infinity", color="C1", ha="center")
    axes.set(xlabel="t", ylabel="log(exp(t) + exp(t/2))", xlim=(0, 1000))
    axes.legend()
    plt.show()


if __name__ == "__main__":
    main()
    with suppress(ImportError):  # Matplotlib is optional
        draw()
