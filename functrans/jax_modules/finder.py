"""The import hook that gives modules of functrans under JAX's names, and their metadata."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

from ..errors import JaxImportedError, NoAttributeError, NoJaxModuleError
from ..runtime.module_getattr import nearest_names
from .names import MISSING, MODULES, VERSION

_ROOTS = ("jax", "jaxlib")


class JaxModule(ModuleType):
    """A module of JAX whose names are functrans's objects, found when they are first used."""

    def __getattr__(self, name: str) -> Any:
        row = MODULES[self.__name__]
        place = row.names.get(name)
        if place is not None:
            value = located(place)
        elif f"{self.__name__}.{name}" in MODULES:
            value = import_module(f"{self.__name__}.{name}")
        else:
            value = self._in_sources(name, row.sources)
        self.__dict__[name] = value
        return value

    def _in_sources(self, name: str, sources: Sequence[str]) -> Any:
        if not name.startswith("__") or name == "__array_api_version__":
            for source in sources:
                module = located(source)
                try:
                    return getattr(module, name)
                except AttributeError:
                    continue
        elif name == "__all__" and sources:
            return public_names(self.__name__)
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise NoAttributeError(
            f"{self.__name__}.{name} does not exist in functrans. {advice(self.__name__, name)}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *public_names(self.__name__)})


def located(place: str) -> Any:
    """The object at ``"module:name"``, or the module at ``"module"``."""
    module, _, name = place.partition(":")
    value = import_module(module)
    for part in name.split(".") if name else ():
        value = getattr(value, part)
    return value


def public_names(module: str) -> list[str]:
    """The names that a module of JAX has here, without submodules that are not imported."""
    row = MODULES[module]
    listed = {name for source in row.sources for name in getattr(located(source), "__all__", ())}
    return sorted(listed | {name for name in row.names if not name.startswith("_")})


def advice(module: str, name: str) -> str:
    """What to use instead of a name that does not exist."""
    cure = MISSING.get(f"{module}.{name}") or MISSING.get(module)
    if cure is not None:
        return cure
    known = public_names(module)
    close = nearest_names(name, known)
    return (
        f"Nearest: {', '.join(close)}" if close else f"docs/jax_libraries.md says what there is of {module}"
    )


class _JaxLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return JaxModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        row = MODULES[module.__name__]
        module.__doc__ = (
            f"``{module.__name__}`` on functrans: {', '.join(row.sources) or 'names of several modules'}."
        )
        module.__dict__.update(row.constants)


class _JaxDistribution(Distribution):
    """What `importlib.metadata` says of ``jax`` and ``jaxlib``."""

    def __init__(self, name: str):
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\nSummary: functrans\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(path)


class JaxFinder(DistributionFinder):
    """Finds the modules of `names.MODULES`; all others below ``jax`` raise an error with the cure."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of JAX; None for other modules."""
        root, _, _ = fullname.partition(".")
        if root not in _ROOTS:
            return None
        if fullname in MODULES:
            return ModuleSpec(fullname, _JaxLoader(), origin="functrans", is_package=True)
        parent, _, name = fullname.rpartition(".")
        if parent not in MODULES:
            parent, name = root, fullname.removeprefix(f"{root}.")
        raise NoJaxModuleError(f"{fullname} does not exist in functrans. {advice(parent, name)}")

    def find_distributions(self, context: Any = None) -> Iterator[Distribution]:
        """The metadata of ``jax`` and ``jaxlib``."""
        return iter(
            [_JaxDistribution(root) for root in _ROOTS if context is None or context.name in (None, root)]
        )


def install() -> None:
    """Let ``import jax`` give functrans, in this process.

    Raises
    ------
    JaxImportedError
        If JAX itself is imported.
    """
    if any(isinstance(finder, JaxFinder) for finder in sys.meta_path):
        return
    real = sys.modules.get("jax")
    if real is not None:
        raise JaxImportedError(
            f"functrans.as_jax: JAX itself was imported before (from {getattr(real, '__file__', '?')}): write "
            "`import functrans.as_jax` before the first import of jax or of a library that uses it, or run "
            "`python -m functrans.as_jax script.py`"
        )
    sys.meta_path.insert(0, JaxFinder())
