"""Eight schools
=============

Sample the posterior of eight schools by Hamiltonian Monte Carlo, a sampler that follows gradients.

Eight schools measured the effect of coaching on test scores (Rubin 1981). The true effects theta come from a normal
distribution with mean mu and spread tau, which we want to know::

    y ~ normal(theta, sigma)    theta = mu + tau z    z ~ normal(0, 1)    mu ~ normal(0, 5)    tau ~ half-Cauchy(0, 5)

The whole sampler is one compiled kernel: trajectories, their steps, and the gradient in each step are nested loops, and
`vmap` runs the chains. NumPy draws the random numbers beforehand.

    python examples/hmc.py
"""

from contextlib import suppress

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # points, of schools A to H
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])  # their standard errors
CHAINS, WARMUP, KEPT = 4, 1000, 10_000  # chains, and trajectories of each
STEPS = 10  # steps of a trajectory, on average


# %%
# The posterior, and the path of a particle that falls in it.


def log_posterior(q):
    """Unnormalized log density of q (10,): mu, log tau, and z of each school."""
    mu, log_tau, z = q[0], q[1], q[2:]
    tau = fnp.exp(log_tau)
    likelihood = -0.5 * fnp.sum(((EFFECT - mu - tau * z) / SIGMA) ** 2)
    prior = -0.5 * fnp.sum(z**2) - 0.5 * (mu / 5) ** 2 - fnp.log1p((tau / 5) ** 2)
    return likelihood + prior + log_tau  # the last term, since we sample log tau instead of tau


def trajectory(q, p, size, steps):
    """Leapfrog: the particle that starts at q with momentum p, after a number of steps."""
    slope = ft.grad(log_posterior)

    def step(_, state):
        q, p = state
        q = q + size * p
        return q, p + size * slope(q)

    p = p + 0.5 * size * slope(q)
    q, p = lax.fori_loop(0, steps, step, (q, p))
    return q, p - 0.5 * size * slope(q)


# %%
# A chain accepts or refuses the ends of trajectories. It is one nested loop.


def chain(q, noise):
    """Samples (trajectories, 10) and whether each was accepted, from a point and random numbers."""

    def sample(state, noise):
        q, log_size = state
        momentum, uniform, steps, rate = noise
        q_new, p_new = trajectory(q, momentum, fnp.exp(log_size), steps)
        energy = log_posterior(q) - 0.5 * momentum @ momentum
        gain = log_posterior(q_new) - 0.5 * p_new @ p_new - energy
        accepted = fnp.log(uniform) < gain
        q = lax.cond(accepted, lambda: q_new, lambda: q)
        # Warm-up adapts the step size so that 4 of 5 trajectories are accepted.
        log_size = log_size + rate * (fnp.where(accepted, 1.0, 0.0) - 0.8)
        return (q, log_size), (q, accepted)

    return lax.scan(sample, (q, fnp.log(0.1)), noise)[1]


# %%
# NumPy draws, `vmap` runs four chains, `jit` makes them one kernel.


def random_numbers(seed):
    """For each chain and trajectory: momentum, acceptance, number of steps, and the rate of adapting the step size."""
    rng = np.random.default_rng(seed)
    shape = (CHAINS, WARMUP + KEPT)
    start = rng.normal(size=(CHAINS, 10))
    rate = np.where(np.arange(shape[1]) < WARMUP, (1 + np.arange(shape[1])) ** -0.6, 0.0)
    steps = rng.integers(1, 2 * STEPS, shape)  # random, so that trajectories do not close
    return start, (rng.normal(size=(*shape, 10)), rng.uniform(size=shape), steps, np.tile(rate, (CHAINS, 1)))


def mean_and_error(draws, batches=50):
    """The mean of draws (chains, n), and its Monte Carlo standard error from the means of batches."""
    means = draws.reshape(len(draws) * batches, -1).mean(axis=1)
    return means.mean(), means.std(ddof=1) / np.sqrt(len(means))


def main():
    samples, accepted = ft.jit(ft.vmap(chain))(*random_numbers(0))
    q = np.asarray(samples)[:, WARMUP:]
    print(f"{q.shape[0]} chains of {q.shape[1]} trajectories, {np.mean(accepted[:, WARMUP:]):.0%} accepted")
    mu, tau = q[..., 0], np.exp(q[..., 1])
    for name, draws in [("mu", mu), ("tau", tau)]:
        mean, error = mean_and_error(draws)
        print(f"{name:9}{mean:6.2f} +- {error:.2f} (sd {draws.std():.2f})")
    for name, z in zip("ABCDEFGH", np.moveaxis(q[..., 2:], -1, 0)):
        mean, error = mean_and_error(mu + tau * z)
        print(f"school {name} {mean:6.2f} +- {error:.2f}")
    return mu.ravel(), tau.ravel(), (mu[..., None] + tau[..., None] * q[..., 2:]).reshape(-1, 8)


# %%
# The model shrinks the effects of single schools towards each other, the more the smaller their spread is.


def draw(mu, tau, theta):
    import matplotlib.pyplot as plt

    (left, right), place = plt.subplots(1, 2, width_ratios=(3, 2))[1], np.arange(8)
    left.errorbar(EFFECT, place + 0.15, xerr=SIGMA, fmt="o", color="C5", label="measured")
    left.errorbar(
        theta.mean(axis=0), place - 0.15, xerr=theta.std(axis=0), fmt="o", color="C0", label="posterior"
    )
    left.set(yticks=place, yticklabels="ABCDEFGH", xlabel="effect of coaching (points)", ylabel="school")
    left.invert_yaxis()
    left.legend(loc="center right")
    right.plot(mu[::40], tau[::40], ".", markersize=2, alpha=0.5)
    right.set(xlabel=r"mean $\mu$", ylabel=r"spread $\tau$", yscale="log", ylim=(0.02, 40), title="samples")
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
