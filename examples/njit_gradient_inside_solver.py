"""Newton's method in Numba
========================

A solver of your own in Numba, with derivatives by functrans: Newton's method, in parallel for a thousand samples.

432 men released from prison were followed for a year. In Weibull's model of the week of the next arrest, log(week) =
intercept + x @ beta + scale * W, where W has Gumbel's distribution; for the men who were not arrested only the
probability of a later week counts. The estimates minimise the negative logarithm of the likelihood. Their errors are
found by the bootstrap: the fit is repeated for samples of 432 men, drawn from these with replacement.

Newton's method below is ordinary `@njit` code. It calls the gradient and the Hessian, which functrans derives and
compiles, as it calls any other jitted function; so `prange` runs the fits on all cores, without Python.

    python examples/njit_gradient_inside_solver.py
"""

import argparse
import csv
import json
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import numba
import numpy as np

import functrans as ft
import functrans.numpy as fnp

ROSSI = Path(__file__).parent / "data" / "rossi.csv"
# Estimates and standard errors of the Weibull model, as the library lifelines gives them for these data.
PUBLISHED = {"intercept": (3.990, 0.419), "fin": (0.272, 0.138), "age": (0.041, 0.016), "race": (-0.225, 0.220),
             "wexp": (0.107, 0.152), "mar": (0.311, 0.273), "paro": (0.059, 0.140),
             "prio": (-0.066, 0.021)}  # fmt: skip


# %%
# The likelihood, with its derivatives by functrans.


def negative_log_likelihood(theta, x, log_week, arrested, count):
    """Shapes: theta (9,), log(scale) last; x (men, 8), ones first; count (men,): how often each is in the sample."""
    z = (log_week - x @ theta[:-1]) * fnp.exp(-theta[-1])
    return count @ (fnp.exp(z) - arrested * (z - theta[-1]))


value_and_gradient = ft.jit(ft.value_and_grad(negative_log_likelihood))
hessian = ft.jit(ft.hessian(negative_log_likelihood))


# %%
# The solver is plain `@njit` code, and the bootstrap a `prange` over it.


@numba.njit
def newton(theta, x, log_week, arrested, count):
    """Minimise by Newton steps, damped (Levenberg) where the function is not convex or a step does not go down."""
    value, gradient = value_and_gradient(theta, x, log_week, arrested, count)
    damping = 1.0
    for _ in range(100):
        if np.abs(gradient).max() < 1e-6:
            return theta
        curvature = hessian(theta, x, log_week, arrested, count) + damping * np.eye(len(theta))
        step = np.linalg.solve(curvature, gradient)
        new_value, new_gradient = value_and_gradient(theta - step, x, log_week, arrested, count)
        if gradient @ step > 0 and new_value <= value + 1e-12 * abs(value):
            theta, value, gradient = theta - step, new_value, new_gradient
            damping *= 0.01
        else:
            damping *= 100.0
    raise ValueError("no convergence in 100 steps")


@numba.njit(parallel=True)
def bootstrap(theta, x, log_week, arrested, counts):
    """The estimates for each sample, a row of `counts`."""
    fits = np.empty((len(counts), len(theta)))
    for i in numba.prange(len(counts)):
        fits[i] = newton(theta, x, log_week, arrested, counts[i])
    return fits


def read(path):
    """The arguments of the likelihood after `theta`, for the whole sample."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    covariates = [[float(row[name]) for name in list(PUBLISHED)[1:]] for row in rows]
    week, arrest = (np.array([float(row[name]) for row in rows]) for name in ("week", "arrest"))
    return np.column_stack([np.ones(len(rows)), covariates]), np.log(week), arrest, np.ones(len(rows))


# %%
# Estimates and errors beside published ones.


def main():
    parser = argparse.ArgumentParser(description="Newton's method in Numba")
    parser.add_argument("--samples", type=int, default=1000, help="bootstrap samples (default: 1000)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    x, log_week, arrested, _ = data = read(ROSSI)
    start = np.zeros(x.shape[1] + 1)
    start[0] = log_week.mean()
    # Numba must know what the functions return: one call from Python says so, for arrays of any sizes.
    value_and_gradient(start, *data)
    hessian(start, *data)

    theta = newton(start, *data)
    drawn = np.random.default_rng(0).multinomial(len(x), np.full(len(x), 1 / len(x)), options.samples)
    counts = drawn.astype(float)
    bootstrap(theta, x, log_week, arrested, counts[:1])  # compiles
    began = perf_counter()
    fits = bootstrap(theta, x, log_week, arrested, counts)
    errors = fits.std(axis=0)
    seconds = perf_counter() - began
    if options.json:
        print(json.dumps({"coef": theta.tolist(), "se": errors.tolist(), "seconds": seconds}))
        return theta, fits
    print(f"{'':10}{'estimate':>10}{'published':>10}{'bootstrap error':>17}{'published':>10}")
    for name, coefficient, error in zip(PUBLISHED, theta, errors):
        print(
            f"{name:10}{coefficient:10.3f}{PUBLISHED[name][0]:10.3f}{error:17.3f}{PUBLISHED[name][1]:10.3f}"
        )
    threads = numba.get_num_threads()
    print(
        f"{options.samples} fits in {seconds:.2f} s on {threads} threads, {1e6 * seconds / options.samples:.0f} us each"
    )
    return theta, fits


# %%
# A thousand fits: what each covariate does to the time until the next arrest, if it is one larger.


def draw(theta, fits):
    import matplotlib.pyplot as plt

    axes, names = plt.subplots()[1], list(PUBLISHED)[1:]
    parts = axes.violinplot(100 * (np.exp(fits[:, 1:8]) - 1), showextrema=False, widths=0.8)
    for body in parts["bodies"]:
        body.set_alpha(0.35)
    place = np.arange(1, 8)
    axes.plot(place, 100 * (np.exp(theta[1:8]) - 1), "o", color="C0", label="estimate, and bootstrap")
    axes.plot(
        place,
        [100 * (np.exp(PUBLISHED[name][0]) - 1) for name in names],
        "k_",
        markersize=18,
        label="published",
    )
    axes.axhline(0.0, color="gray", linewidth=0.8)
    axes.set(xticks=place, xticklabels=names, ylabel="longer until the next arrest (%)", ylim=(-75, 200))
    axes.legend(loc="upper left")
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
