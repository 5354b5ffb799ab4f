"""A variational fit: the normal distribution nearest to a posterior, by gradients through its samples.

The posterior is that of examples/logistic_hmc.py. The fit maximizes the evidence lower bound
E[log posterior(q)] + entropy, where q = mean + L z, z ~ normal(0, 1), and L is lower triangular: samples are a function
of the parameters ("reparameterised", Kingma and Welling 2014), so that the gradient goes through them.

    python examples/variational_fit.py
"""

import numpy as np
from logistic_hmc import log_posterior, read

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, random
from functrans.example_libraries import optimizers

SAMPLES, STEPS = 64, 3000  # of z in each step; steps of Adam


def elbo(params, key, x, damaged):
    """The evidence lower bound, up to a constant, by random samples."""
    scale = params["lower"] * fnp.tri(2, k=-1) + fnp.diag(fnp.exp(params["log_diagonal"]))
    samples = params["mean"] + random.normal(key, (SAMPLES, 2)) @ scale.T
    inside = fnp.mean(ft.vmap(log_posterior, in_axes=(0, None, None))(samples, x, damaged))
    return inside + fnp.sum(params["log_diagonal"])


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


if __name__ == "__main__":
    main()
