"""Custom derivative rules
=======================

Write your own derivative rules: for rounding, overflow, solutions of equations, and functions of SciPy.

A network with rounded weights learns to read digits: a rule passes the gradient straight through the rounding. Others
are log(1 + exp(x)) by mode, a layer differentiated through its equation, and SciPy's Bessel functions of all orders.

    python examples/custom_rules.py
"""

from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import scipy.special

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.scipy.special import expit, logsumexp

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
HELD_OUT = 360  # the last images


# %%
# Rounded weights: a rule in the form of torch passes the gradient straight through the rounding.


class Ternary(ft.Function):
    """Round weights to -step, 0 or step. The gradient ignores the rounding, except beyond 1.5 steps (Bengio 2013)."""

    @staticmethod
    def forward(ctx, w, step):
        ctx.save_for_backward(abs(w) <= 1.5 * step)  # any computed value can be saved
        return step * fnp.clip(fnp.round(w / step), -1.0, 1.0)

    @staticmethod
    def backward(ctx, g):
        return fnp.where(ctx.saved_tensors[0], g, 0.0), None  # None for the step, a number


def train(w, images, labels, rounded, rate):
    """Weights (64, 10) of a softmax regression after 500 steps, one compiled loop; labels (n, 10) are 0 or 1."""

    def loss(w):
        scores = images @ rounded(w)
        return fnp.mean(logsumexp(scores, axis=1) - fnp.sum(labels * scores, axis=1)) + 1e-3 * fnp.sum(w**2)

    def step(k, state):
        w, speed = state
        speed = 0.9 * speed + ft.grad(loss)(w)
        return w - rate * (1.0 - k / 500) * speed, speed

    return ft.jit(lambda w: lax.fori_loop(0, 500, step, (w, fnp.zeros_like(w)))[0])(w)


def read_digits():
    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.int64)
    images, labels = table[:, :-1] / 16.0, table[:, -1]
    seen, held_out = (images[:-HELD_OUT], np.eye(10)[labels[:-HELD_OUT]]), images[-HELD_OUT:]
    exact = train(np.zeros((64, 10)), *seen, lambda w: w, 0.5)
    rounded = partial(Ternary.apply, step=1.5 * float(np.std(exact)))
    at_the_end, trained = rounded(exact), rounded(train(exact, *seen, rounded, 0.03))
    for name, w in ("exact", exact), ("rounded at the end", at_the_end), ("trained as rounded", trained):
        right = np.mean(np.argmax(held_out @ w, axis=1) == labels[-HELD_OUT:])
        print(f"weights {name}: {len(np.unique(w))} values, {right:.3f} of held-out digits right")


# %%
# A function that overflows, with a rule for each mode.


@ft.custom_jvp
def log1pexp(x):  # also where exp(x) overflows
    return fnp.maximum(x, 0.0) + fnp.log1p(fnp.exp(-abs(x)))


log1pexp.defjvps(lambda t, y, x: t * expit(x))  # forward mode
log1pexp.defvjp(lambda x: (log1pexp(x), expit(x)), lambda slope, g: (g * slope,))  # reverse mode


# %%
# A layer that solves an equation: its derivative comes from the equation, not from the solver's steps.


def fixed_point(w, x):
    """The z (n,) with z = tanh(w z + x), given by the equation, a solver, and a solver of the linearized equation."""
    iterate = lambda f, z: lax.while_loop(lambda z: fnp.max(abs(f(z))) > 1e-13, lambda z: z - f(z), z)
    linear = lambda g, y: np.linalg.solve(ft.jacfwd(g)(y), y)
    return lax.custom_root(lambda z: z - fnp.tanh(w @ z + x), 0.0 * x, iterate, linear)


def unrolled(w, x):
    return lax.fori_loop(0, 200, lambda _, z: fnp.tanh(w @ z + x), 0.0 * x)


# %%
# A function of SciPy, whose derivative is the same function again.


class Bessel(ft.Function):
    """J_n(x) by SciPy; its derivative needs J of n - 1 and of n + 1 (DLMF 10.6.1), which follow the same rule."""

    host = True  # forward gets NumPy arrays, even when compiled code calls it
    vmap_method = "broadcast"
    forward = staticmethod(lambda n, x: scipy.special.jv(n, x))
    shape = staticmethod(lambda n, x: x)  # the type of the result

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.n, ctx.x = inputs

    @staticmethod
    def backward(ctx, g):
        return None, 0.5 * g * (Bessel.apply(ctx.n - 1, ctx.x) - Bessel.apply(ctx.n + 1, ctx.x))


def main():
    read_digits()
    x = np.array([-800.0, 0.0, 800.0])
    naive = ft.jit(ft.vmap(ft.grad(lambda x: fnp.log(1.0 + fnp.exp(x)))))
    forward, reverse = ft.jvp(log1pexp, (x,), (np.ones(3),))[1], ft.vmap(ft.grad(log1pexp))(x)
    print(f"\nslope of log(1 + exp(x)) at {x}: by the formula {naive(x)}, by rules {forward} {reverse}")
    w, x = np.random.default_rng(0).normal(0.0, 0.1, (30, 30)), np.linspace(-1.0, 1.0, 30)
    root, steps = (ft.grad(lambda w, f=f: fnp.sum(f(w, x) ** 2))(w) for f in (fixed_point, unrolled))
    print(
        f"\nz = tanh(w z + x): its gradient is {np.abs(root - steps).max():.0e} from that through 200 steps"
    )
    j = partial(Bessel.apply, 2)
    slope, bend = ft.grad(j), ft.grad(ft.grad(j))
    equation = ft.jit(ft.vmap(lambda x: x**2 * bend(x) + x * slope(x) + (x**2 - 4.0) * j(x)))
    print(f"\nBessel's equation holds to {np.abs(equation(np.linspace(0.5, 20.0, 100))).max():.0e}")


# %%
# Bessel's function of order 2 with its first four derivatives, all of them from one rule and SciPy's `jv`.


def draw():
    import matplotlib.pyplot as plt

    x, axes, f = np.linspace(0.0, 15.0, 301), plt.subplots()[1], partial(Bessel.apply, 2)
    for order in range(5):
        label = "$J_2$" if order == 0 else "$J_2" + "'" * order + "$"
        axes.plot(x, ft.vmap(f)(x), label=label, alpha=1 - 0.12 * order)
        f = ft.grad(f)
    axes.axhline(0.0, color="gray", linewidth=0.8)
    axes.set(xlabel="x", xlim=(0, 15))
    axes.legend(ncols=5, loc="lower right")
    plt.show()


if __name__ == "__main__":
    main()
    with suppress(ImportError):  # Matplotlib is optional
        draw()
