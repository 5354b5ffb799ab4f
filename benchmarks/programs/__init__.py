"""Programs that a researcher writes, once for all contestants; see `program.Program`.

=================== ==========================================================================
`linear_algebra`    determinants, matrix functions, factorizations and their derivatives
`networks`          perceptrons, convolutions, attention, recurrent and graph networks
`dynamics`          differential equations, mechanics, quantum circuits, robots
`solvers`           differential equations by adaptive steps, minima by BFGS
`statistics`        likelihoods, samplers, mixtures, state-space models
`arrays`            searching, Fourier transforms, scattering, images, trees of many arrays
=================== ==========================================================================
"""

from .arrays import ARRAYS
from .dynamics import DYNAMICS
from .linear_algebra import LINEAR_ALGEBRA
from .networks import NETWORKS
from .solvers import SOLVERS
from .statistics import STATISTICS

PROGRAMS = [*LINEAR_ALGEBRA, *NETWORKS, *DYNAMICS, *SOLVERS, *STATISTICS, *ARRAYS]
