"""Hares and lynxes
================

Fit a model of predator and prey to fur records, with gradients through the solver of a differential equation.

The data are pelts that the Hudson's Bay Company bought from 1900 on (Elton & Nicholson 1942; numbers as in Howard 2009,
"Modeling Basics", and Carpenter 2018, "Predator-Prey Population Dynamics: the Lotka-Volterra model in Stan"). The model
is::

    dhare/dt = (alpha - beta lynx) hare        dlynx/dt = (-gamma + delta hare) lynx

The fit maximizes the posterior density under Carpenter's priors.

    python examples/lotka_volterra.py
"""

from contextlib import suppress

import numpy as np
from scipy.optimize import minimize

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

PELTS = np.array([
    [30.0, 4.0], [47.2, 6.1], [70.2, 9.8], [77.4, 35.2], [36.3, 59.4], [20.6, 41.7], [18.1, 19.0], [21.4, 13.0],
    [22.0, 8.3], [25.4, 9.1], [27.1, 7.4], [40.3, 8.0], [57.0, 12.3], [76.6, 19.5], [52.3, 45.7], [19.5, 51.1],
    [11.2, 29.7], [7.6, 15.8], [14.6, 9.7], [16.2, 10.1], [24.7, 8.6],
])  # hare and lynx, thousands  # fmt: skip
STEPS = 50  # solver steps per year
NAMES = "alpha", "beta", "gamma", "delta", "first hare", "first lynx", "hare spread", "lynx spread"
PRIOR_MEAN = np.array([1.0, 0.05, 1.0, 0.05, *np.log([10.0, 10.0]), -1.0, -1.0])  # rates, logarithms
PRIOR_SPREAD = np.array([0.5, 0.05, 0.5, 0.05, 1.0, 1.0, 1.0, 1.0])
PUBLISHED = (0.55, 0.028, 0.80, 0.024)  # posterior means of the rates by Carpenter


# %%
# The solver is the classical Runge-Kutta method, in a native loop.


def slope(rates, z):
    """The time derivative of (hare, lynx)."""
    alpha, beta, gamma, delta = rates
    return fnp.stack([(alpha - beta * z[1]) * z[0], (-gamma + delta * z[0]) * z[1]])


def populations(rates, first, years):
    """Hares and lynxes at the beginning of each year (years, 2), by the classical Runge-Kutta method."""
    h = 1.0 / STEPS

    def step(_, z):
        k1 = slope(rates, z)
        k2 = slope(rates, z + h / 2 * k1)
        k3 = slope(rates, z + h / 2 * k2)
        return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(rates, z + h * k3))

    return lax.scan(lambda z, _: (lax.fori_loop(0, STEPS, step, z), z), first, None, length=years)[1]


# %%
# The posterior density looks at the solution once a year. Its gradient goes back through all 1,000 steps.


def negative_log_posterior(logs):
    """Negative log posterior of the logarithms of the parameters (8,): counts are log-normal about the solution."""
    rates, first, spread = fnp.exp(logs[:4]), fnp.exp(logs[4:6]), fnp.exp(logs[6:])
    errors = (np.log(PELTS) - fnp.log(populations(rates, first, len(PELTS)))) / spread
    prior = (fnp.concatenate([rates, logs[4:]]) - PRIOR_MEAN) / PRIOR_SPREAD
    return 0.5 * fnp.sum(errors**2) + len(PELTS) * fnp.sum(logs[6:]) + 0.5 * fnp.sum(prior**2)


# %%
# Fit, and compare the rates with the published posterior means.


def guess():
    """Starting values: fit d log(hare)/dt = alpha - beta lynx (and so on) to differences of the record."""
    (hare, lynx), growth = PELTS.T, np.gradient(np.log(PELTS), axis=0)
    (beta, alpha), (delta, gamma) = np.polyfit(lynx, growth[:, 0], 1), np.polyfit(hare, growth[:, 1], 1)
    return np.array([alpha, -beta, -gamma, delta, *PELTS[0], 0.3, 0.3])


def main():
    fit = minimize(ft.jit(ft.value_and_grad(negative_log_posterior)), np.log(guess()), jac=True)
    parameters = np.exp(fit.x)
    print(*(f"{name:15}{value:8.3f}" for name, value in zip(NAMES, parameters)), sep="\n")
    print(f"{fit.nfev} evaluations with gradient, largest slope {np.abs(fit.jac).max():.1e}")
    print("relative difference from the published rates:", *np.round(parameters[:4] / PUBLISHED - 1, 3))
    return parameters


def draw(parameters):
    """The record as dots, the solution as lines."""
    import matplotlib.pyplot as plt

    axes = plt.subplots()[1]
    line = populations(parameters[:4] / 12, parameters[4:6], 12 * 20 + 1)  # rates per month
    for i, name in enumerate(("hare", "lynx")):
        axes.plot(1900 + np.arange(len(line)) / 12, line[:, i], color=f"C{i}", label=name)
        axes.plot(1900 + np.arange(len(PELTS)), PELTS[:, i], "o", color=f"C{i}")
    axes.set(xlabel="year", ylabel="pelts (thousands)", xticks=range(1900, 1921, 4))
    axes.legend()
    plt.show()


if __name__ == "__main__":
    parameters = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(parameters)
