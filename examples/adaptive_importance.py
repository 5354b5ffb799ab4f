"""Adaptive importance sampling
============================

A mixture of normal distributions learns to look like a density, by gradients, until its samples can be used.

The target is a banana (Haario and others 1999): a normal distribution, bent. Its integral is 1 and its moments are
known, so all estimates have a true value beside them. The proposal is a mixture of eight normal distributions, which
know nothing at first. In each round samples are drawn from it and weighted, and Adam lowers the cross-entropy between
target and proposal (Cappé and others 2008). The effective number of samples tells how well it fits.

    python examples/adaptive_importance.py
"""

from contextlib import suppress

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, nn, random
from functrans.example_libraries import optimizers
from functrans.scipy.stats import norm

COMPONENTS, SAMPLES, ROUNDS = 8, 1000, 400
BEND, WIDE = 0.1, 5.0


def log_target(x):
    """The logarithm of the density at x (2,); its integral over the plane is 1."""
    return norm.logpdf(x[0], 0.0, WIDE) + norm.logpdf(x[1] + BEND * (x[0] ** 2 - WIDE**2), 0.0, 1.0)


# %%
# The proposal: weights, means and triangular factors of its components, as free numbers.


def factors(params):
    """Lower triangular (COMPONENTS, 2, 2), of the covariances."""
    diagonal = fnp.exp(params["log_diagonal"])
    return diagonal[:, :, None] * np.eye(2) + params["lower"][:, None, None] * np.tri(2, k=-1)


def log_proposal(params, x):
    """The logarithm of the density of the mixture at x (2,)."""
    low, away = factors(params), x - params["mean"]
    first = away[:, 0] / low[:, 0, 0]
    second = (away[:, 1] - low[:, 1, 0] * first) / low[:, 1, 1]
    size = fnp.sum(params["log_diagonal"], axis=1) + np.log(2 * np.pi)
    return nn.logsumexp(nn.log_softmax(params["logit"]) - size - 0.5 * (first**2 + second**2))


def draw_samples(params, key, n):
    keys = random.split(key)
    which = random.categorical(keys[0], params["logit"], shape=(n,))
    noise = random.normal(keys[1], (n, 2))
    return params["mean"][which] + fnp.einsum("nij,nj->ni", factors(params)[which], noise)


def weigh(params, x):
    """Logarithms of the importance weights of samples (n, 2), and the effective share of them."""
    logs = ft.vmap(log_target)(x) - ft.vmap(log_proposal, (None, 0))(params, x)
    return logs, fnp.exp(2 * nn.logsumexp(logs) - nn.logsumexp(2 * logs)) / len(logs)


# %%
# A round of the adaptation. The samples and their weights are data: the gradient does not go through them. All rounds
# are one loop in one kernel.


@ft.jit
def adapt(start, key):
    """The adapted parameters, and the effective share of the samples of each round."""
    init, update, current = optimizers.adam(optimizers.inverse_time_decay(0.1, 100, 1.0))

    def one_round(state, i):
        params = current(state)
        x = draw_samples(params, random.fold_in(key, i), SAMPLES)
        logs, share = weigh(params, x)
        weights = nn.softmax(logs)
        loss = lambda p: -weights @ ft.vmap(log_proposal, (None, 0))(p, x)
        return update(i, ft.grad(loss)(params), state), share

    state, shares = lax.scan(one_round, init(start), fnp.arange(ROUNDS))
    return current(state), shares


@ft.jit
def estimate(params, key):
    """The integral, means and variances by many samples, with their errors; the effective share."""
    x = draw_samples(params, key, 200_000)
    logs, share = weigh(params, x)
    w = fnp.exp(logs)
    values = fnp.concatenate([fnp.ones((len(x), 1)), x, x**2], axis=1)
    products = w[:, None] * values
    return fnp.mean(products, axis=0), fnp.std(products, axis=0) / fnp.sqrt(len(x)), share


def main():
    rng = np.random.default_rng(0)
    start = {"logit": np.zeros(COMPONENTS), "mean": rng.normal(0.0, 4.0, (COMPONENTS, 2)),
             "log_diagonal": np.full((COMPONENTS, 2), 1.0), "lower": np.zeros(COMPONENTS)}  # fmt: skip
    params, shares = adapt(start, random.key(0))
    print("effective share of the samples:")
    for name, p in ("at the start", start), ("adapted", params):
        print(f"  {name:13}{float(estimate(p, random.key(1))[2]):6.1%}")
    values, errors, _ = estimate(params, random.key(2))
    true = 1.0, 0.0, 0.0, WIDE**2, 1.0 + 2 * BEND**2 * WIDE**4
    for row in zip(
        ("integral", "mean of x", "mean of y", "mean of x^2", "mean of y^2"), values, errors, true
    ):
        print("{:13}{:9.4f} +- {:.4f}   true {:7.4f}".format(*row))
    return start, params, np.asarray(shares)


# %%
# The target in colours, and ellipses of one standard deviation of the components: those that matter are solid.


def draw(start, params, shares):
    import matplotlib.pyplot as plt

    x, y = np.linspace(-14, 14, 160), np.linspace(-14, 6, 160)
    density = np.exp(ft.vmap(ft.vmap(log_target))(np.stack(np.meshgrid(x, y), axis=-1)))
    panels = plt.subplots(1, 3, width_ratios=(3, 3, 2), figsize=(7.6, 3.0))[1]
    circle = np.stack([np.cos(angle := np.linspace(0, 2 * np.pi, 80)), np.sin(angle)])
    for axes, p, title in zip(panels, (start, params), ("at the start", "adapted")):
        axes.contourf(x, y, density, levels=10)
        for weight, mean, low in zip(nn.softmax(p["logit"]), p["mean"], factors(p)):
            axes.plot(
                *(mean[:, None] + low @ circle), "-" if weight > 0.03 else ":", color="white", linewidth=1
            )
        axes.set(title=title, xlabel="x", xlim=(-14, 14), ylim=(-14, 6))
    panels[0].set(ylabel="y")
    panels[2].plot(100 * shares, linewidth=1)
    panels[2].set(xlabel="round", ylabel="effective samples (%)", ylim=(0, 100), xlim=(0, ROUNDS))
    plt.show()


if __name__ == "__main__":
    adapted = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*adapted)
