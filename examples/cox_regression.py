"""Cox regression
==============

Cox's proportional hazards model: a real likelihood, fitted by Newton's method with compiled derivatives.

432 men released from prison were followed for a year. Did financial aid prevent another arrest? In Cox's model a man
with covariates x is arrested at the rate base(t) * exp(x @ beta), with an unknown base(t). Given that one of the men
who are free is arrested, the probability that it is this man depends only on beta. The product of these probabilities
is the partial likelihood. We write it by hand; functrans derives its derivatives and kernels.

    python examples/cox_regression.py --show    the estimates, then the traced program and its kernel
"""

import argparse
import csv
import timeit
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp

ROSSI = Path(__file__).parent / "data" / "rossi.csv"
# Coefficient and standard error as published for these data, with Efron's treatment of ties.
PUBLISHED = {"fin": (-0.379, 0.191), "age": (-0.057, 0.022), "race": (0.314, 0.308), "wexp": (-0.150, 0.212),
             "mar": (-0.434, 0.382), "paro": (-0.085, 0.196), "prio": (0.091, 0.029)}  # fmt: skip


def negative_log_likelihood(beta, covariates, arrested, weights):
    """Shapes: beta (7,), covariates (men, 7), arrested (men,) of 0 and 1, weights (arrests, men)."""
    score = covariates @ beta
    return fnp.sum(fnp.log(weights @ fnp.exp(score))) - arrested @ score


# %%
# The order of the d arrests of one week is unknown (Efron 1977): at the first, each of the d men counts 1, at the
# second 1 - 1/d, since one is already gone, and so on.


def efron_weights(week, arrested):
    """The weight of each man among those still free at each arrest: (arrests, men), men sorted by week."""
    at = week[arrested == 1]
    gone = np.arange(len(at)) - np.searchsorted(at, at)
    among_tied = (week == at[:, None]) * arrested
    return (week >= at[:, None]) - among_tied * (gone / among_tied.sum(axis=1))[:, None]


def read(path=ROSSI):
    """Covariates (centred), arrested and weights."""
    rows = csv.DictReader(path.read_text().splitlines())
    table = np.array([[float(row[name]) for name in ("week", "arrest", *PUBLISHED)] for row in rows])
    week, arrested, *covariates = table[np.argsort(table[:, 0], kind="stable")].T
    covariates = np.stack(covariates, axis=1)
    return covariates - covariates.mean(axis=0), arrested, efron_weights(week, arrested)


# %%
# Newton's method, each step halved until the function does not increase.


def newton(objective, hessian, x):
    """Minimise a convex function."""
    for _ in range(50):
        value, gradient = objective(x)
        step = np.linalg.solve(hessian(x), gradient)
        if gradient @ step < 1e-8:
            return x - step
        while not objective(x - step)[0] <= value:
            step = step / 2
        x = x - step
    raise SystemExit("no convergence in 50 steps: some covariate predicts the arrests exactly")


def main():
    parser = argparse.ArgumentParser(description="Cox regression")
    parser.add_argument("--show", action="store_true", help="also print the traced program and its kernel")
    options = parser.parse_args()
    data, zero = read(), np.zeros(len(PUBLISHED))
    eager = ft.value_and_grad(negative_log_likelihood)
    compiled, hessian = ft.jit(eager), ft.jit(ft.hessian(negative_log_likelihood))
    first = timeit.timeit(lambda: compiled(zero, *data), number=1)
    beta = newton(lambda b: compiled(b, *data), lambda b: hessian(b, *data), zero)
    error = np.sqrt(np.diag(np.linalg.inv(hessian(beta, *data))))
    print(f"{'computed':>20}{'published':>21}")
    for name, coefficient, spread in zip(PUBLISHED, beta, error):
        print(f"{name:6}{coefficient:12.6f}  ({spread:.6f})" + "{:10.3f}  ({:.3f})".format(*PUBLISHED[name]))
    numpy = np.median(timeit.repeat(lambda: eager(beta, *data), number=1, repeat=50))
    later = np.median(timeit.repeat(lambda: compiled(beta, *data), number=1, repeat=500))
    print(f"\nvalue and gradient by NumPy {1e3 * numpy:.3f} ms, first compiled call {1e3 * first:.0f} ms,")
    print(f"later calls {1e3 * later:.3f} ms; {compiled.cache_info()}")
    if options.show:
        lowered = compiled.lower(beta, *data)
        print("", lowered.jaxpr, lowered.as_text("python"), sep="\n")
    return np.asarray(beta), error


# %%
# A hazard ratio below 1 means fewer arrests: financial aid lowers the rate by a third, though not beyond doubt.


def draw(beta, error):
    import matplotlib.pyplot as plt

    axes, place = plt.subplots()[1], np.arange(len(beta))
    ends = np.exp(beta + 1.96 * error * np.array([[-1], [1]]))
    axes.hlines(place, *ends, linewidth=3, alpha=0.5, label="95% interval")
    axes.plot(np.exp(beta), place, "o", label="computed")
    axes.plot(
        np.exp([known for known, _ in PUBLISHED.values()]), place, "k|", markersize=16, label="published"
    )
    axes.axvline(1.0, color="gray", linewidth=0.8, zorder=0)
    axes.set(yticks=place, yticklabels=PUBLISHED, xscale="log", xlabel="hazard ratio")
    axes.set(xticks=(ticks := (0.4, 0.6, 0.8, 1, 1.5, 2)), xticklabels=ticks)
    axes.minorticks_off()
    axes.legend(loc="lower right")
    plt.show()


if __name__ == "__main__":
    estimates = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*estimates)
