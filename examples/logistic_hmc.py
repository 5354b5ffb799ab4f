"""The O-rings of the Challenger
=============================

Bayesian logistic regression by Hamiltonian Monte Carlo, with random numbers drawn inside the compiled sampler.

Before the Challenger accident, O-rings had been damaged in 7 of 23 launches (Dalal, Fowlkes and Hoadley 1989). The
model is logit P(damage) = a + b (temperature - 70), with priors a ~ normal(0, 5) and b ~ normal(0, 1). What does it say
of 31 degrees Fahrenheit, the temperature on that morning?

The chains are one kernel: each iteration splits its key, draws a momentum, follows the gradient and accepts or not.

    python examples/logistic_hmc.py
"""

import csv
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, nn, random
from functrans.scipy import stats

DATA = Path(__file__).parent / "data" / "challenger.csv"
PUBLISHED = (15.0429, -0.2322)  # maximum likelihood, as a line in the temperature itself
CHAINS, WARMUP, KEPT = 4, 500, 5000
SIZE, STEPS = 0.25, 8  # of a step of the leapfrog, in units of the spread; on average
SPREAD = np.array([0.6, 0.11])  # rough standard deviations of a and b


def read(path=DATA):
    """Temperatures minus 70, and whether there was damage."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    return np.array([float(r["temperature"]) - 70 for r in rows]), np.array(
        [r["distress"] == "1" for r in rows]
    )


# %%
# The posterior, by a distribution of `functrans.scipy.stats`.


def log_likelihood(q, x, damaged):
    """Of q = (a, b)."""
    logits = q[0] + q[1] * x
    return fnp.sum(fnp.where(damaged, nn.log_sigmoid(logits), nn.log_sigmoid(-logits)))


def log_posterior(q, x, damaged):
    """Unnormalized."""
    prior = stats.norm.logpdf(q[0], 0.0, 5.0) + stats.norm.logpdf(q[1], 0.0, 1.0)
    return log_likelihood(q, x, damaged) + prior


# %%
# A chain, with its random numbers.


def chain(key, x, damaged):
    """Samples (iterations, 2), and whether each was accepted."""
    density = ft.value_and_grad(lambda z: log_posterior(z * SPREAD, x, damaged))

    def iteration(z, key):
        keys = random.split(key, 3)
        p = random.normal(keys[0], (2,))
        before, slope = density(z)

        def step(_, state):
            z, p, slope = state
            p = p + 0.5 * SIZE * slope
            z = z + SIZE * p
            slope = density(z)[1]
            return z, p + 0.5 * SIZE * slope, slope

        steps = random.randint(keys[1], (), 1, 2 * STEPS)
        new, momentum, _ = lax.fori_loop(0, steps, step, (z, p, slope))
        gain = density(new)[0] - before - 0.5 * (momentum @ momentum - p @ p)
        accepted = fnp.log(random.uniform(keys[2])) < gain
        z = fnp.where(accepted, new, z)
        return z, (z * SPREAD, accepted)

    key, start = random.split(key)
    return lax.scan(iteration, random.normal(start, (2,)), random.split(key, WARMUP + KEPT))[1]


# %%
# Estimates beside the published ones, then samples.


def main():
    x, damaged = read()
    best = ft.scipy.optimize.minimize(lambda q: -log_likelihood(q, x, damaged), fnp.zeros(2), method="BFGS").x
    print(f"maximum likelihood {best[0] - 70 * best[1]:8.4f} {best[1]:8.4f}   published {PUBLISHED}")
    samples, accepted = ft.jit(ft.vmap(chain, in_axes=(0, None, None)))(
        random.split(random.key(0), CHAINS), x, damaged
    )
    q = np.asarray(samples)[:, WARMUP:]
    print(f"{CHAINS} chains of {KEPT} samples, {np.mean(accepted):.0%} accepted")
    for name, draws in zip("ab", np.moveaxis(q, -1, 0)):
        means = draws.reshape(CHAINS * 25, -1).mean(axis=1)
        print(
            f"{name} {draws.mean():8.4f} +- {means.std(ddof=1) / np.sqrt(len(means)):.4f} (sd {draws.std():.4f})"
        )
    risk = 1 / (1 + np.exp(-(q[..., 0] + q[..., 1] * (31 - 70))))
    print(
        f"probability of damage at 31 degrees: {risk.mean():.3f}, 95% of it above {np.quantile(risk, 0.05):.3f}"
    )
    return x, damaged, q.reshape(-1, 2)


# %%
# The probability of damage by temperature: its mean, and 90% of the posterior. It was 31 degrees on that morning.


def draw(x, damaged, q):
    import matplotlib.pyplot as plt

    axes, at = plt.subplots()[1], np.linspace(28, 84, 120)
    risk = 1 / (1 + np.exp(-(q[:, :1] + q[:, 1:] * (at - 70))))
    low, high = np.quantile(risk, [0.05, 0.95], axis=0)
    axes.fill_between(at, low, high, alpha=0.25, linewidth=0)
    axes.plot(at, risk.mean(axis=0), label="probability of damage, 90% interval")
    axes.plot(x + 70, damaged, "k|", markersize=12, label="launches: damaged, or not")
    axes.axvline(31, color="C1", linestyle="--", linewidth=1.2)
    axes.annotate("28 January 1986", (31, 0.5), (32, 0.5), color="C1")
    axes.set(xlabel="temperature (°F)", ylabel="probability of damage", xlim=(28, 84))
    axes.legend(loc="lower left", bbox_to_anchor=(0.06, 0.08))
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
