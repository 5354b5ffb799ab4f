"""Kalman filter and smoother
==========================

The level of the Nile, year by year: filtered, smoothed, and its variances learnt from the likelihood.

The flow at Aswan from 1871 to 1970 (Cobb 1978, in 1e8 cubic metres) is a level that wanders, and noise on top of it::

    flow[t] = level[t] + noise[t]         level[t + 1] = level[t] + drift[t]

Durbin and Koopman ("Time Series Analysis by State Space Methods", 2.10) report 15099 for the variance of the noise and
1469.1 for that of the drift. The matrices below describe any linear model; the local level needs but 1 x 1 of them.

    python examples/kalman_smoother.py
"""

import csv
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.scipy.optimize import minimize
from functrans.scipy.stats import multivariate_normal

NILE = Path(__file__).parent / "data" / "nile.csv"
PUBLISHED = {"noise": 15099.0, "drift": 1469.1}
MOVE, LOOK = np.eye(1), np.eye(1)  # state after a year, and observation, given the state


def read(path=NILE):
    """Years (n,) and flows (n, 1)."""
    table = [(int(row["year"]), float(row["flow"])) for row in csv.DictReader(path.read_text().splitlines())]
    years, flow = zip(*table)
    return np.array(years), np.array(flow)[:, None]


# %%
# The filter goes forward through the record. A step predicts the state of the next year, and corrects it by what was
# seen; the log density of what was seen, given all before it, adds up to the likelihood. `scan` makes it a native loop.


def kalman_filter(drift, noise, seen):
    """Means and covariances of states, predicted and corrected, and the log likelihood of all but the first."""

    def step(state, y):
        mean, cov = state
        spread = LOOK @ cov @ LOOK.T + noise
        gain = fnp.linalg.solve(spread, LOOK @ cov).T
        log_density = multivariate_normal.logpdf(y, LOOK @ mean, spread)
        corrected = mean + gain @ (y - LOOK @ mean), cov - gain @ LOOK @ cov
        predicted = MOVE @ corrected[0], MOVE @ corrected[1] @ MOVE.T + drift
        return predicted, ((mean, cov), corrected, log_density)

    first = seen[0], noise  # as after the first year, of which nothing was known before
    start = MOVE @ first[0], MOVE @ first[1] @ MOVE.T + drift
    _, (predicted, corrected, densities) = lax.scan(step, start, seen[1:])
    return predicted, corrected, fnp.sum(densities)


# %%
# The smoother (Rauch, Tung and Striebel 1965) comes back: it corrects each state by what was learnt after it.


def smoother(predicted, corrected):
    """Means (n, 1) and covariances (n, 1, 1) of states, given the whole record."""

    def step(after, now):
        (mean, cov), (next_mean, next_cov) = now
        gain = fnp.linalg.solve(next_cov, MOVE @ cov).T
        smooth = mean + gain @ (after[0] - next_mean), cov + gain @ (after[1] - next_cov) @ gain.T
        return smooth, smooth

    last = ft.tree.map(lambda x: x[-1], corrected)
    pairs = ft.tree.map(lambda x: x[:-1], corrected), ft.tree.map(lambda x: x[1:], predicted)
    _, smooth = lax.scan(step, last, pairs, reverse=True)
    return ft.tree.map(lambda x, end: fnp.concatenate([x, end[None]]), smooth, last)


# %%
# The likelihood has the two variances as parameters. Its gradient and its Hessian, through the filter, give the
# estimates and their errors.


def negative_log_likelihood(logs, seen):
    drift, noise = fnp.exp(logs[0]) * np.eye(1), fnp.exp(logs[1]) * np.eye(1)
    return -kalman_filter(drift, noise, seen)[2]


def main():
    years, flow = read()
    objective = lambda logs: negative_log_likelihood(logs, flow)
    found = minimize(objective, np.log([np.var(flow) / 2] * 2), method="trust-exact")
    errors = np.sqrt(np.diag(np.linalg.inv(ft.jit(ft.hessian(objective))(found.x))))
    for name, log, error in zip(("drift", "noise"), np.asarray(found.x), errors):
        print(
            f"variance of the {name} {np.exp(log):8.1f} +- {np.exp(log) * error:6.1f}   published {PUBLISHED[name]}"
        )
    print(f"log likelihood {-float(found.fun):.2f}   published -632.55")
    drift, noise = np.exp(found.x)[:, None, None]
    predicted, corrected, _ = ft.jit(kalman_filter)(drift, noise, flow)
    smooth = ft.jit(smoother)(predicted, corrected)
    return years, flow[:, 0], *(np.asarray(x).ravel() for x in (*corrected, *smooth))


# %%
# The filter lags behind the building of the first Aswan dam in 1898; the smoother, which knows what came, does not.


def draw(years, flow, filtered, _, level, variance):
    import matplotlib.pyplot as plt

    axes, spread = plt.subplots()[1], 1.645 * np.sqrt(variance)
    axes.plot(years, flow, "o", color="gray", markersize=3, label="measured")
    axes.plot(years[1:], filtered, color="C1", linewidth=1.2, label="filtered level")
    axes.plot(years[1:], level, color="C0", label="smoothed level, 90% interval")
    axes.fill_between(years[1:], level - spread, level + spread, color="C0", alpha=0.2, linewidth=0)
    axes.axvline(1898.5, color="gray", linestyle=":", linewidth=1)
    axes.set(xlabel="year", ylabel="flow ($10^8$ m³ a year)", xlim=(1871, 1970))
    axes.legend(loc="upper right")
    plt.show()


if __name__ == "__main__":
    levels = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*levels)
