"""A neural differential equation
==============================

Let a neural network be a differential equation, and fit it to fur records of hares and lynxes.

The data are those of lotka_volterra.py, 1900 to 1920. This model knows no biology::

    dz/dt = network(z),    z = logarithms of both numbers, scaled to mean 0 and deviation 1

It is fitted in two steps: the network to the slopes of the record, then the whole solution to the record itself. The
gradient of the solution comes from the adjoint equation, or through the steps of the solver.

    python examples/neural_ode.py --gradient direct
"""

import argparse
from contextlib import suppress

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.example_libraries import stax
from functrans.experimental.ode import odeint
from functrans.scipy.optimize import minimize

PELTS = np.array([
    [30.0, 4.0], [47.2, 6.1], [70.2, 9.8], [77.4, 35.2], [36.3, 59.4], [20.6, 41.7], [18.1, 19.0], [21.4, 13.0],
    [22.0, 8.3], [25.4, 9.1], [27.1, 7.4], [40.3, 8.0], [57.0, 12.3], [76.6, 19.5], [52.3, 45.7], [19.5, 51.1],
    [11.2, 29.7], [7.6, 15.8], [14.6, 9.7], [16.2, 10.1], [24.7, 8.6],
])  # hare and lynx, thousands  # fmt: skip
YEARS = np.arange(len(PELTS), dtype=float)
LOGS = np.log(PELTS)
MEAN, SPREAD = LOGS.mean(axis=0), LOGS.std(axis=0)
Z = (LOGS - MEAN) / SPREAD
PUBLISHED_PERIOD = 9.6  # years, of Canada's lynx, by Elton & Nicholson 1942
PUBLISHED_SPREAD = 0.25  # of the logarithms about the Lotka-Volterra model, by Carpenter
DECAY = 1e-3  # weight of the squares of the parameters

init, network = stax.serial(stax.Dense(12), stax.Tanh, stax.Dense(12), stax.Tanh, stax.Dense(2))


def slope(z, t, net):
    return network(net, z)


def decay(net):
    return sum([fnp.sum(x**2) for x in ft.tree.leaves(net)])


def slope_loss(net):
    """The mean square difference from the slopes of the record."""
    return fnp.mean((network(net, Z) - np.gradient(Z, axis=0)) ** 2) + DECAY * decay(net)


# %%
# The solver controls its error. Its gradient comes in both ways, by a word.


def solution(params, times, gradient="adjoint"):
    """The states at some times (n, 2), the first of which is that of the parameters' start."""
    return odeint(slope, params["start"], times, params["net"], rtol=1e-6, atol=1e-6, gradient=gradient)


def loss(params, gradient="adjoint"):
    """The mean square difference of the solution from the record."""
    return fnp.mean((solution(params, YEARS, gradient) - Z) ** 2) + DECAY * decay(params["net"])


def fit(gradient, steps=300):
    """The parameters, and their loss."""
    _, net = init(ft.random.key(0), (2,))
    net = minimize(slope_loss, net, method="L-BFGS", options={"maxiter": 500}).x
    found = minimize(
        lambda params: loss(params, gradient),
        {"net": net, "start": Z[0]},
        method="L-BFGS",
        options={"maxiter": steps},
    )
    return found.x, float(found.fun)


def period(params):
    """The time between the two peaks of the lynx, in years."""
    times = np.linspace(0.0, 20.0, 2001)
    lynx = np.asarray(solution(params, times)[:, 1])
    peaks = times[1:-1][(lynx[1:-1] > lynx[:-2]) & (lynx[1:-1] >= lynx[2:])]
    return float(np.diff(peaks[:2])[0])


# %%
# The fit, and figures of others to judge it by.


def main():
    parser = argparse.ArgumentParser(description="A neural differential equation")
    parser.add_argument(
        "--gradient", choices=("adjoint", "direct"), default="direct", help="how it is computed"
    )
    options = parser.parse_args()
    params, least = fit(options.gradient)
    error = np.sqrt(np.mean(((solution(params, YEARS) - Z) * SPREAD) ** 2))
    print(f"loss {least:.4f} by {options.gradient} gradients")
    print(f"typical error of the logarithms: {error:.3f}; of the published model: {PUBLISHED_SPREAD}")
    print(f"period: {period(params):.2f} years; published: {PUBLISHED_PERIOD}")
    return params


def draw(params):
    """The record as dots, the solution as lines."""
    import matplotlib.pyplot as plt

    axes = plt.subplots()[1]
    times = np.linspace(0.0, 20.0, 401)
    lines = np.exp(solution(params, times) * SPREAD + MEAN)
    for i, name in enumerate(("hare", "lynx")):
        axes.plot(1900 + times, lines[:, i], color=f"C{i}", label=name)
        axes.plot(1900 + YEARS, PELTS[:, i], "o", color=f"C{i}")
    axes.set(xlabel="year", ylabel="pelts (thousands)", xticks=range(1900, 1921, 4))
    axes.legend()
    plt.show()


if __name__ == "__main__":
    params = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(params)
