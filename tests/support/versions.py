"""Which versions of libraries are installed, for tests that compare with what newer ones give."""

from functools import cache
from importlib.metadata import version

from packaging.requirements import Requirement


@cache
def has(requirement: str) -> bool:
    """Whether the installed version satisfies a requirement such as ``numpy>=2.1``."""
    wanted = Requirement(requirement)
    return wanted.specifier.contains(version(wanted.name), prereleases=True)
