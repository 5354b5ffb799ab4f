"""A hidden Markov model of earthquakes
====================================

Calm and restless years: the number of major earthquakes of each year, explained by a hidden state.

The counts are those of the world's earthquakes of magnitude 7 or more from 1900 to 2006. In each state they have a
Poisson distribution; the state is a stationary Markov chain. Zucchini and MacDonald ("Hidden Markov Models for Time
Series", 2009, section 3) publish fits for two and three states.

    python examples/hidden_markov.py
"""

from contextlib import suppress

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, nn
from functrans.scipy.optimize import minimize
from functrans.scipy.stats import poisson

COUNTS = np.array([
    13, 14, 8, 10, 16, 26, 32, 27, 18, 32, 36, 24, 22, 23, 22, 18, 25, 21, 21, 14, 8, 11, 14, 23, 18, 17, 19,
    20, 22, 19, 13, 26, 13, 14, 22, 24, 21, 22, 26, 21, 23, 24, 27, 41, 31, 27, 35, 26, 28, 36, 39, 21, 17, 22,
    17, 19, 15, 34, 10, 15, 22, 18, 15, 20, 15, 22, 19, 16, 30, 27, 29, 23, 20, 16, 21, 21, 25, 16, 18, 15, 18,
    14, 10, 15, 8, 15, 6, 11, 8, 7, 18, 16, 13, 12, 13, 20, 15, 16, 12, 18, 15, 16, 13, 15, 16, 11, 11,
])  # fmt: skip
PUBLISHED = {2: (342.3183, (15.472, 26.125)), 3: (329.4603, (13.146, 19.721, 29.714))}

# %%
# The likelihood of the counts, by the forward recursion in logarithms. The parameters are free numbers; a softmax makes
# the rows of the transition matrix, a linear system its stationary distribution.


def log_likelihood(log_start, log_move, log_density):
    """Shapes: log_start (m,), log_move (m, m), log_density (years, m), of a count given the state."""

    def step(log_state, log_seen):
        return nn.logsumexp(log_state[:, None] + log_move, axis=0) + log_seen, None

    last, _ = lax.scan(step, log_start + log_density[0], log_density[1:])
    return nn.logsumexp(last)


def model(params):
    """The arguments of the likelihood."""
    move = nn.softmax(params["move"], axis=1)
    m = len(params["log_rate"])
    start = fnp.linalg.solve((np.eye(m) - move + 1.0).T, np.ones(m))
    density = poisson.logpmf(COUNTS[:, None], fnp.exp(params["log_rate"]))
    return fnp.log(start), fnp.log(move), density


def fit(m):
    """The parameters of most likelihood with m states, and its negative logarithm."""
    start = {"log_rate": np.log(np.linspace(12.0, 28.0, m)), "move": 2.0 * np.eye(m)}
    found = minimize(lambda p: -log_likelihood(*model(p)), start, method="BFGS")
    return found.x, float(found.fun)


# %%
# How probable is a state in a year, given all counts? There is no need of a backward recursion: the derivative of the
# log likelihood with respect to the log density of that year is that probability.

posterior = ft.jit(ft.grad(log_likelihood, argnums=2))


@ft.jit
def viterbi(log_start, log_move, log_density):
    """The most probable path of states (years,)."""

    def forward(best, log_seen):
        through = best[:, None] + log_move
        return fnp.max(through, axis=0) + log_seen, fnp.argmax(through, axis=0)

    last, origins = lax.scan(forward, log_start + log_density[0], log_density[1:])
    end = fnp.argmax(last)
    _, path = lax.scan(lambda state, origin: (origin[state], origin[state]), end, origins, reverse=True)
    return fnp.concatenate([path, end[None]])


def main():
    for m, (known, known_rates) in PUBLISHED.items():
        params, loss = fit(m)
        rates = np.sort(np.exp(params["log_rate"]))
        print(f"{m} states: -log L {loss:.4f}, rates {np.round(rates, 3)}")
        print(f"published  -log L {known:.4f}, rates {np.array(known_rates)}")
    arguments = model(params)
    chances = posterior(*arguments)
    print(f"largest difference of a year's probabilities from 1: {np.abs(chances.sum(axis=1) - 1).max():.0e}")
    return rates, np.asarray(chances), np.asarray(viterbi(*arguments))


# %%
# Three states: the probability of each, and the rates along the most probable path.


def draw(rates, chances, path):
    import matplotlib.pyplot as plt

    years, names = 1900 + np.arange(len(COUNTS)), ("calm", "usual", "restless")
    top, bottom = plt.subplots(2, 1, sharex=True, height_ratios=(2, 1), figsize=(7.6, 4.4))[1]
    top.plot(years, COUNTS, "o", color="gray", markersize=3, label="counted")
    top.step(years, rates[path], where="mid", color="C1", label="rate on the most probable path")
    top.set(ylabel="earthquakes a year", ylim=(0, None))
    top.legend()
    bottom.stackplot(years, chances.T, labels=names, colors=("C2", "C0", "C1"), alpha=0.8)
    bottom.set(ylabel="probability", xlabel="year", xlim=(1900, 2006), ylim=(0, 1))
    bottom.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    plt.show()


if __name__ == "__main__":
    fitted = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*fitted)
