"""numpyro: NUTS on the eight schools, 200 steps of adaptation and 200 samples."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from numpyro.infer.reparam import LocScaleReparam

EFFECTS = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
ERRORS = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]


@numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)})
def schools(sigma, y):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def program():
    mcmc = MCMC(NUTS(schools), num_warmup=200, num_samples=200, progress_bar=False)

    def sample(key):
        mcmc.run(key, jnp.array(ERRORS), jnp.array(EFFECTS))
        return mcmc.get_samples()

    return sample, (jax.random.PRNGKey(0),)
