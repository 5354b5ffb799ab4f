"""Forecast of carbon dioxide
==========================

Forecast the carbon dioxide above Mauna Loa by a Gaussian process whose kernel is learnt from the record.

The covariance is a sum of four terms (Rasmussen & Williams 2006, section 5.4.3): a slow trend; a yearly cycle whose
shape may change over the decades; irregularities that die out within a year; noise. Eight numbers describe them, and
are fitted with gradients: we write the likelihood, with a Cholesky factor, and functrans derives the gradient.

    python examples/co2_gp.py
"""

import csv
from contextlib import suppress
from pathlib import Path

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

import functrans as ft
import functrans.numpy as fnp
from functrans.scipy.linalg import solve_triangular

CO2 = Path(__file__).parent / "data" / "co2.csv"
SPLIT = 1992.0  # the model learns from the record before it, and forecasts the ten years after it
START = {"trend": 50.0, "trend_years": 50.0, "wave": 3.0, "wave_years": 100.0, "wave_shape": 1.0,
         "medium": 0.5, "medium_years": 1.0, "noise": 0.2}  # ppmv, and years  # fmt: skip


def monthly(path):
    """Times (in years) and means (ppmv) of the months that have a value."""
    months = {}
    for row in csv.DictReader(path.read_text().splitlines()):
        if row["co2"]:
            months.setdefault((int(row["date"][:4]), int(row["date"][4:6])), []).append(float(row["co2"]))
    return np.array([y + (m - 0.5) / 12 for y, m in months]), np.array([np.mean(v) for v in months.values()])


# %%
# The model: four causes, each with a size and a time.


def covariance(p, s, t):
    """Covariance of the signal at times s (n,) with that at times t (m,), without noise: (n, m)."""
    apart = abs(s[:, None] - t)
    trend = p["trend"] ** 2 * fnp.exp(-0.5 * (apart / p["trend_years"]) ** 2)
    yearly = (np.sin(np.pi * apart) / p["wave_shape"]) ** 2
    wave = p["wave"] ** 2 * fnp.exp(-0.5 * (apart / p["wave_years"]) ** 2 - 2.0 * yearly)
    return trend + wave + p["medium"] ** 2 * fnp.exp(-apart / p["medium_years"])


def cholesky(p, t):
    """Lower triangular factor of the covariance of measurements at times t."""
    return fnp.linalg.cholesky(covariance(p, t, t) + p["noise"] ** 2 * np.eye(len(t)))


# %%
# The likelihood is an ordinary function with a Cholesky factor in it.


def negative_log_likelihood(logs, t, y):
    """Negative log likelihood of measurements y (n,) at times t (n,); logs (8,): the logarithms of the parameters."""
    low = cholesky(dict(zip(START, fnp.exp(logs))), t)
    white = solve_triangular(low, y, lower=True)
    return 0.5 * white @ white + fnp.sum(fnp.log(fnp.diagonal(low))) + 0.5 * len(t) * np.log(2 * np.pi)


def forecast(p, t, y, ahead):
    """Mean and standard deviation of measurements at times ahead (m,), given y (n,) at times t (n,)."""
    low, cross = cholesky(p, t), covariance(p, ahead, t)
    explained = np.sum(cross * cho_solve((low, True), cross.T).T, axis=1)
    variance = sum(p[cause] ** 2 for cause in ("trend", "wave", "medium", "noise")) - explained
    return y.mean() + cross @ cho_solve((low, True), y - y.mean()), np.sqrt(variance)


# %%
# Fit by quasi-Newton steps with compiled gradients, and compare the forecast with what came.


def main():
    t, y = monthly(CO2)
    past, ahead = t < SPLIT, np.arange(SPLIT, 2012.0, 1 / 24)
    objective = ft.jit(ft.value_and_grad(negative_log_likelihood))
    fit = minimize(objective, np.log([*START.values()]), (t[past], y[past] - y[past].mean()), jac=True)
    p = dict(zip(START, np.exp(fit.x)))
    print(*(f"{name:13}{value:8.2f}" for name, value in p.items()), sep="\n")
    print(f"log likelihood {-fit.fun:.2f} after {fit.nfev} evaluations with gradient")
    error = forecast(p, t[past], y[past], t[~past])[0] - y[~past]
    print(f"forecast of {len(error)} months: root mean square error {np.sqrt(np.mean(error**2)):.2f} ppmv")
    return t, y, ahead, *forecast(p, t[past], y[past], ahead)


def draw(t, y, ahead, mean, spread):
    """The record, and the forecast with two standard deviations on either side."""
    import matplotlib.pyplot as plt

    axes = plt.subplots()[1]
    axes.fill_between(ahead, mean - 2 * spread, mean + 2 * spread, color="C1", alpha=0.3, linewidth=0)
    axes.plot(ahead, mean, color="C1", label=f"forecast from the data before {SPLIT:.0f}")
    axes.plot(t, y, "k.", markersize=2, label="measured, monthly means")
    axes.set(xlabel="year", ylabel="carbon dioxide (ppmv)", xlim=(1958, 2012))
    axes.legend()
    plt.show()


if __name__ == "__main__":
    predicted = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*predicted)
