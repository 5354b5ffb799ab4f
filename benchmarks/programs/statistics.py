"""Likelihoods, samplers, mixtures, state-space models."""

from __future__ import annotations

import math

import numpy

from .program import Program, value_and_grad


def sampler(starts, momenta, precision, *, np, lax, api):
    """Hamiltonian Monte Carlo without rejection: chains under vmap, 50 trajectories of 10 leaps."""
    force = api.grad(lambda q: -0.5 * q @ precision @ q - 0.25 * np.sum(q**4))

    def leap(_, state):
        q, p = state
        p = p + 0.05 * force(q)
        q = q + 0.1 * p
        return q, p + 0.05 * force(q)

    def chain(q, ps):
        def trajectory(q, p):
            q, p = lax.fori_loop(0, 10, leap, (q, p))
            return q, q

        return lax.scan(trajectory, q, ps)[1]

    return api.vmap(chain)(starts, momenta)


def _chains(count):
    def data(rng):
        a = rng.normal(size=(5, 5))
        return rng.normal(size=(count, 5)), rng.normal(size=(count, 50, 5)), a @ a.T / 5 + numpy.eye(5)

    return data


def cox(beta, x, event, *, np):
    """Negative log partial likelihood, rows by falling time."""
    risk = x @ beta
    top = np.max(risk)
    return -np.sum(event * (risk - (np.log(np.cumsum(np.exp(risk - top))) + top)))


def _survival(rng):
    return (
        0.1 * rng.normal(size=10),
        rng.normal(size=(5000, 10)),
        (rng.uniform(size=5000) < 0.6).astype(float),
    )


def poisson_newton(beta, x, y, *, np, api):
    """A Newton step of Poisson regression, by gradient and Hessian."""

    def loss(b):
        score = x @ b
        return np.sum(np.exp(score) - y * score)

    return beta - np.linalg.solve(api.hessian(loss)(beta), api.grad(loss)(beta))


def _counts(rng):
    x = rng.normal(size=(2000, 20)) / 5
    return numpy.zeros(20), x, rng.poisson(numpy.exp(x @ rng.normal(size=20))).astype(float)


def mixture(parameters, x, *, np):
    """Negative log likelihood of a mixture of eight Gaussians with diagonal covariance."""
    weights, means, scales = parameters
    z = (x[:, None] - means) * np.exp(-scales)
    each = -0.5 * np.sum(z * z, axis=-1) - np.sum(scales, axis=-1)
    each = each + weights - np.log(np.sum(np.exp(weights)))
    top = np.max(each, axis=1, keepdims=True)
    return -np.mean(np.log(np.sum(np.exp(each - top), axis=1)) + top[:, 0])


def _clusters(rng):
    return (numpy.zeros(8), rng.normal(size=(8, 4)), numpy.zeros((8, 4))), rng.normal(size=(5000, 4))


def kalman(parameters, ys, *, np, lax):
    """Negative log likelihood of a linear Gaussian state-space model of four dimensions, two observed."""
    transition, noise = parameters
    observed = np.eye(2, 4)
    process, error = np.exp(noise[0]) * np.eye(4), np.exp(noise[1]) * np.eye(2)

    def step(state, y):
        mean, covariance = transition @ state[0], transition @ state[1] @ transition.T + process
        innovation = y - observed @ mean
        spread = observed @ covariance @ observed.T + error
        gain = np.linalg.solve(spread, observed @ covariance).T
        likelihood = innovation @ np.linalg.solve(spread, innovation) + np.linalg.slogdet(spread)[1]
        return (mean + gain @ innovation, covariance - gain @ observed @ covariance), likelihood

    return 0.5 * np.sum(lax.scan(step, (np.zeros(4), np.eye(4)), ys)[1])


def _series(rng):
    return (0.9 * numpy.eye(4) + 0.05 * rng.normal(size=(4, 4)), numpy.array([-1.0, -0.5])), rng.normal(
        size=(200, 2)
    )


def hidden_markov(parameters, symbols, *, np, lax):
    """Log likelihood of a hidden Markov model, by the forward algorithm in logarithms."""
    start, transition, emission = parameters

    def normalized(x):
        top = np.max(x, axis=-1, keepdims=True)
        return x - top - np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True))

    log_transition, log_emission = normalized(transition), normalized(emission)

    def step(alpha, symbol):
        joint = alpha[:, None] + log_transition
        top = np.max(joint, axis=0)
        return np.log(np.sum(np.exp(joint - top), axis=0)) + top + log_emission[:, symbol], None

    alpha, _ = lax.scan(step, normalized(start) + log_emission[:, symbols[0]], symbols[1:])
    top = np.max(alpha)
    return np.log(np.sum(np.exp(alpha - top))) + top


def _symbols(rng):
    return (rng.normal(size=8), rng.normal(size=(8, 8)), rng.normal(size=(8, 12))), rng.integers(0, 12, 500)


def garch(parameters, returns, *, np, lax):
    """Negative log likelihood of a GARCH(1, 1) model."""
    omega, alpha, beta = np.exp(parameters[0]), np.exp(parameters[1]), np.exp(parameters[2])

    def step(variance, r):
        variance = omega + alpha * r * r + beta * variance
        return variance, np.log(variance) + r * r / variance

    return 0.5 * np.sum(lax.scan(step, omega, returns)[1])


def svgd(particles, *, np, api):
    """A step of Stein's variational gradient descent with a Gaussian kernel."""
    score = api.vmap(api.grad(lambda x: -0.5 * np.sum(x * x) + np.sum(np.cos(2 * x))))(particles)
    difference = particles[:, None] - particles[None]
    kernel = np.exp(-0.5 * np.sum(difference**2, axis=-1))
    drift = kernel @ score + np.sum(kernel[..., None] * difference, axis=1)
    return particles + 0.1 * drift / particles.shape[0]


def bootstrap(x, y, picks, *, np, api):
    """Least squares on 200 resamples."""
    return api.vmap(lambda i: np.linalg.solve(x[i].T @ x[i], x[i].T @ y[i]))(picks)


def _resamples(rng):
    return rng.normal(size=(300, 5)), rng.normal(size=300), rng.integers(0, 300, (200, 300))


def factorization(parameters, rows, columns, ratings, *, np):
    """Squared error of a low-rank model of ratings, with decay."""
    left, right = parameters
    error = ratings - np.sum(left[rows] * right[columns], axis=1)
    return np.mean(error**2) + 1e-3 * (np.mean(left**2) + np.mean(right**2))


def _ratings(rng):
    factors = rng.normal(size=(1000, 16)), rng.normal(size=(800, 16))
    return factors, rng.integers(0, 1000, 20000), rng.integers(0, 800, 20000), rng.normal(size=20000)


def transport(cost, *, np, lax):
    """Sinkhorn's regularised optimal transport between uniform weights: 50 rounds in logarithms."""
    n, m = cost.shape

    def logsum(x, axis):
        top = np.max(x, axis=axis, keepdims=True)
        return np.squeeze(np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top, axis)

    def round_(_, potentials):
        f, g = potentials
        f = -0.1 * (logsum((g - cost) / 0.1, 1) - math.log(m))
        return f, -0.1 * (logsum((f[:, None] - cost) / 0.1, 0) - math.log(n))

    f, g = lax.fori_loop(0, 50, round_, (np.zeros(n), np.zeros(m)))
    return np.mean(f) + np.mean(g)


def flow(parameters, x, *, np):
    """Negative log likelihood under six affine coupling layers."""
    total = 0.0
    for n, (w, b, s, t) in enumerate(parameters):
        fixed, changed = (x[:, :2], x[:, 2:]) if n % 2 else (x[:, 2:], x[:, :2])
        hidden = np.tanh(fixed @ w + b)
        scale = np.tanh(hidden @ s)
        changed = changed * np.exp(scale) + hidden @ t
        total = total + np.sum(scale, axis=1)
        x = np.concatenate([fixed, changed] if n % 2 else [changed, fixed], axis=1)
    return np.mean(0.5 * np.sum(x**2, axis=1) - total)


def _couplings(rng):
    layers = [
        (
            rng.normal(size=(2, 32)),
            numpy.zeros(32),
            rng.normal(size=(32, 2)) / 9,
            rng.normal(size=(32, 2)) / 9,
        )
        for _ in range(6)
    ]
    return layers, rng.normal(size=(1000, 4))


def levenberg_marquardt(parameters, t, y, *, np, api):
    """A damped least-squares step on a sum of exponentials."""

    def residual(p):
        return p[0] * np.exp(-p[1] * t) + p[2] * np.exp(-p[3] * t) - y

    jacobian = api.jacfwd(residual)(parameters)
    return parameters - np.linalg.solve(
        jacobian.T @ jacobian + 0.01 * np.eye(4), jacobian.T @ residual(parameters)
    )


def _decay(rng):
    t = numpy.linspace(0, 4, 500)
    return (
        numpy.array([1.0, 0.5, 2.0, 3.0]),
        t,
        numpy.exp(-t) + 0.5 * numpy.exp(-4 * t) + 0.01 * rng.normal(size=500),
    )


def per_example(weights, x, y, *, np, api):
    """A gradient for each row, clipped to length one, and their mean: private gradient descent."""
    each = api.vmap(api.grad(lambda w, x, y: np.logaddexp(0.0, -y * (x @ w))), in_axes=(None, 0, 0))(
        weights, x, y
    )
    norms = np.sqrt(np.sum(each**2, axis=1, keepdims=True))
    return np.mean(each / np.maximum(1.0, norms), axis=0)


def _signed(rng):
    return rng.normal(size=100), rng.normal(size=(5000, 100)), rng.choice([-1.0, 1.0], 5000)


STATISTICS = [
    Program("HMC, 64 chains of 5 dimensions", sampler, _chains(64), 1e-6),
    Program("HMC, 256 chains of 5 dimensions", sampler, _chains(256), 1e-6),
    Program("Cox regression, 5000x10, gradient", value_and_grad(cox), _survival),
    Program("Poisson regression, 2000x20, Newton step", poisson_newton, _counts),
    Program("mixture of 8 Gaussians, 5000x4, gradient", value_and_grad(mixture), _clusters),
    Program("Kalman filter, 200 steps, gradient", value_and_grad(kalman), _series, 1e-6, rows=(1,)),
    Program("hidden Markov model, 500 steps, gradient", value_and_grad(hidden_markov), _symbols, rows=(1,)),
    Program(
        "GARCH, 5000 steps, gradient",
        value_and_grad(garch),
        lambda rng: (numpy.array([-2.0, -2.0, -0.5]), rng.normal(size=5000)),
        rows=(1,),
    ),
    Program("SVGD, 200 particles", svgd, lambda rng: (rng.normal(size=(200, 3)),)),
    Program("bootstrap, 200 regressions", bootstrap, _resamples),
    Program("matrix factorization, 20000 ratings, gradient", value_and_grad(factorization), _ratings),
    Program(
        "optimal transport 100x120, gradient",
        value_and_grad(transport),
        lambda rng: (rng.uniform(size=(100, 120)),),
    ),
    Program("normalizing flow, 6 layers, gradient", value_and_grad(flow), _couplings),
    Program("Levenberg-Marquardt step", levenberg_marquardt, _decay, 1e-6),
    Program("per-example gradients, 5000x100", per_example, _signed),
]
