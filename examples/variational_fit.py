"""A variational fit
=================

The normal distribution nearest to a posterior, by gradients through its samples.

The posterior is that of examples/logistic_hmc.py. The fit maximizes the evidence lower bound
E[log posterior(q)] + entropy, where q = mean + L z, z ~ normal(0, 1), and L is lower triangular: samples are a function
of the parameters ("reparameterised", Kingma and Welling 2014), so that the gradient goes through them.

    python examples/variational_fit.py
"""

from contextlib import suppress

import numpy as np
from logistic_hmc import log_posterior, read

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, random
from functrans.example_libraries import optimizers

SAMPLES, STEPS = 64, 3000  # of z in each step; steps of Adam


# %%
# The bound, by samples that are functions of the parameters.


def elbo(params, key, x, damaged):
    """The evidence lower bound, up to a constant, by random samples."""
    scale = params["lower"] * fnp.tri(2, k=-1) + fnp.diag(fnp.exp(params["log_diagonal"]))
    samples = params["mean"] + random.normal(key, (SAMPLES, 2)) @ scale.T
    inside = fnp.mean(ft.vmap(log_posterior, in_axes=(0, None, None))(samples, x, damaged))
    return inside + fnp.sum(params["log_diagonal"])


# %%
# All steps of Adam are one compiled loop.


@ft.jit
def fit(key, x, damaged):
    """The parameters after all steps, and the bound along the way."""
    start = {"mean": fnp.zeros(2), "lower": fnp.zeros((2, 2)), "log_diagonal": fnp.array([-1.0, -3.0])}
    init, update, parameters = optimizers.adam(optimizers.inverse_time_decay(0.05, 300, 1.0))

    def step(state, i):
        loss = ft.value_and_grad(lambda p: -elbo(p, random.fold_in(key, i), x, damaged))
        value, slope = loss(parameters(state))
        return update(i, slope, state), -value

    state, bounds = lax.scan(step, init(start), fnp.arange(STEPS))
    return parameters(state), bounds


def main():
    params, bounds = fit(random.key(0), *read())
    spread = np.tril(params["lower"], -1) + np.diag(np.exp(params["log_diagonal"]))
    deviations = np.sqrt(np.diag(spread @ spread.T))
    for name, mean, deviation in zip("ab", params["mean"], deviations):
        print(f"{name} {mean:8.4f} (sd {deviation:.4f})")
    print(f"evidence lower bound {np.mean(bounds[:50]):.3f} -> {np.mean(bounds[-500:]):.3f}")
    return np.asarray(params["mean"]), spread


# %%
# The posterior in colours, and regions of the fit that hold 50% and 95%.


def draw(mean, spread):
    import matplotlib.pyplot as plt

    a, b = np.linspace(-4.5, 1.0, 120), np.linspace(-0.85, 0.05, 120)
    density = ft.jit(ft.vmap(ft.vmap(log_posterior, (0, None, None)), (0, None, None)))
    logs = np.asarray(density(np.stack(np.meshgrid(a, b), axis=-1), *read()))
    axes = plt.subplots(figsize=(6.0, 3.9))[1]
    axes.contourf(a, b, np.exp(logs - logs.max()), levels=12)
    circle = np.stack([np.cos(angle := np.linspace(0, 2 * np.pi, 100)), np.sin(angle)])
    for share, style in ((0.5, "-"), (0.95, "--")):
        ring = mean[:, None] + np.sqrt(-2 * np.log(1 - share)) * spread @ circle
        axes.plot(*ring, style, color="white", label=f"{share:.0%} of the fit")
    axes.set(xlabel="a", ylabel="b")
    axes.legend(labelcolor="white")
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
