"""Derivatives of a Numba loop
===========================

Fit a model to the Nile's floods: the likelihood is a loop for Numba, functrans differentiates it twice.

The data are the yearly flow at Aswan from 1871 to 1970 (Cobb 1978, in 1e8 cubic metres). Flow is a level that wanders,
and noise on top of it; a Kalman filter gives the likelihood of the two variances. Durbin and Koopman ("Time Series
Analysis by State Space Methods", 2.10) report 15099 for the noise and 1469.1 for the level.

    python examples/differentiate_my_loop.py
"""

import math
from contextlib import suppress

import numpy as np
from scipy.optimize import minimize

import functrans as ft

FLOW = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=float)  # fmt: skip
PUBLISHED = (15099.0, 1469.1)
PUBLISHED_LIKELIHOOD = -632.55  # diffuse, as here: of the flows after the first


# %%
# The likelihood is a loop as one writes it for Numba: numbers, branches, an exception.


@ft.njit
def negative_log_likelihood(logs, flow):
    """Of the flows after the first, given the first; `logs` are the logarithms of the two variances."""
    noise, drift = math.exp(logs[0]), math.exp(logs[1])
    level, variance = flow[0], noise
    total = 0.0
    for t in range(1, len(flow)):
        variance += drift
        spread = variance + noise
        if spread <= 0.0:
            raise ValueError("the variance of a forecast is not positive")
        error = flow[t] - level
        total += 0.5 * (math.log(2.0 * math.pi * spread) + error * error / spread)
        gain = variance / spread
        level += gain * error
        variance *= 1.0 - gain
    return total


@ft.njit
def levels(logs, flow):
    """The filtered level of each year."""
    noise, drift = math.exp(logs[0]), math.exp(logs[1])
    out = np.empty_like(flow)
    out[0], variance = flow[0], noise
    for t in range(1, len(flow)):
        variance += drift
        gain = variance / (variance + noise)
        out[t] = out[t - 1] + gain * (flow[t] - out[t - 1])
        variance *= 1.0 - gain
    return out


# %%
# `grad` and `hessian` differentiate the loop, and SciPy's trust region follows them.


def fit(flow):
    """The variances with the highest likelihood, and their standard errors."""
    value_and_slope = ft.jit(ft.value_and_grad(negative_log_likelihood))
    curvature = ft.jit(ft.hessian(negative_log_likelihood))
    start = np.log([np.var(flow) / 2, np.var(flow) / 2])
    best = minimize(value_and_slope, start, args=(flow,), jac=True, hess=curvature, method="trust-exact")
    covariance = np.linalg.inv(curvature(best.x, flow))
    variances = np.exp(best.x)
    return variances, variances * np.sqrt(np.diag(covariance)), best


def main():
    """Print the fit, and how one year's flow moves the last level."""
    variances, errors, best = fit(FLOW)
    for name, value, error, published in zip(("noise", "level"), variances, errors, PUBLISHED, strict=True):
        print(f"variance of the {name}: {value:8.1f} +- {error:6.1f}   published {published:8.1f}")
    print(f"log-likelihood {-best.fun:.2f}   published {PUBLISHED_LIKELIHOOD:.2f}")
    weights = ft.grad(lambda flow: levels(best.x, flow)[-1])(FLOW)
    print("weights of the last five years in the last level:", np.round(weights[-5:], 3))
    return best.x, variances, errors


# %%
# The log-likelihood about its maximum, with the region of 95%: the drift is known to a factor of ten, no better.


def draw(best, variances, errors):
    import matplotlib.pyplot as plt

    noise, drift = np.linspace(8.8, 10.1, 60), np.linspace(4.0, 10.0, 60)
    loss = ft.jit(ft.vmap(ft.vmap(negative_log_likelihood, (0, None)), (0, None)))
    values = loss(np.stack(np.meshgrid(noise, drift), axis=-1), FLOW) - loss(best[None, None], FLOW)
    figure, axes = plt.subplots()
    filled = axes.contourf(np.exp(noise), np.exp(drift), -values, levels=np.arange(-8, 0.1, 0.5))
    axes.contour(np.exp(noise), np.exp(drift), values, levels=[3.0], colors="white", linewidths=1.5)
    axes.plot(*variances, "o", color="C1", label="computed")
    axes.plot(*PUBLISHED, "x", color="C3", markersize=10, label="published")
    axes.set(yscale="log", xlabel="variance of the noise", ylabel="variance of the level's drift")
    axes.legend(loc="upper right")
    figure.colorbar(filled, label="log-likelihood below its maximum")
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
