"""Attribute access on modules: public names, suggestions for missing ones, and loading on first use.

`module_attributes` serves public modules: ``dir`` lists the public names, a missing name raises an error that suggests
the nearest one, and parts load on first use. `lazy_import` returns a stand-in for a module that loads on first use.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from ..errors import NoAttributeError
from .context import imports, loading


def nearest_names(name: str, known: Any, n: int = 3) -> list[str]:
    """Similar names, most similar first, including those that contain it or are part of it."""
    names = sorted(k for k in known if not k.startswith("_"))
    close = difflib.get_close_matches(name, names, n=n, cutoff=0.6)
    lower = name.lower()
    close += [
        k for k in names if len(k) > 2 and (k.lower() in lower or lower in k.lower()) and k not in close
    ]
    return close[:n]


def module_attributes(
    module: str,
    names: dict[str, Any],
    hints: dict[str, str] | None = None,
    parts: Collection[str] = (),
    further: Callable[[str], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a module with an ``__all__``.

    Parameters
    ----------
    module : str
        The module's name, for the message.
    names : dict
        Its ``globals()``.
    hints : dict from str to str, optional
        The replacement to suggest for particular names.
    parts : collection of str, optional
        Submodules that load on first access.
    further : callable, optional
        Names that are not listed: ``further(name)`` returns the object, or None if there is none.
    """

    def __getattr__(name: str) -> Any:
        if name in parts:
            with imports():
                return import_module(f"{module}.{name}")
        value = None if further is None else further(name)
        if value is not None:
            return value
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        hint = (hints or {}).get(name)
        advice = partial(_advice, module, name, names["__all__"]) if hint is None else lambda: hint
        raise NoAttributeError(f"{module} has no '{name}'", advice=advice)

    def __dir__() -> list[str]:
        return sorted({*names["__all__"], *[n for n in names if n.startswith("__")]})

    return __getattr__, __dir__


#: The modules that a name is looked for in, the likeliest first.
PUBLIC = (
    "functrans", "functrans.numpy", "functrans.lax", "functrans.nn", "functrans.numpy.linalg",
    "functrans.scipy.special", "functrans.random", "functrans.numpy.fft", "functrans.scipy.linalg",
    "functrans.scipy.stats", "functrans.scipy.signal", "functrans.scipy.ndimage",
    "functrans.scipy.optimize", "functrans.scipy.integrate", "functrans.scipy.interpolate",
    "functrans.scipy.fft", "functrans.scipy.sparse", "functrans.scipy.sparse.linalg",
    "functrans.scipy.spatial", "functrans.scipy.spatial.transform", "functrans.scipy.cluster.vq",
    "functrans.ops", "functrans.image", "functrans.tree_util", "functrans.tree", "functrans.flatten_util",
    "functrans.debug", "functrans.testing", "functrans.distributed", "functrans.sharding",
    "functrans.experimental", "functrans.experimental.checkify", "functrans.experimental.jet",
    "functrans.experimental.ode", "functrans.experimental.multihost_utils", "functrans.nn.initializers",
    "functrans.lax.linalg", "functrans.checkpoint_policies", "functrans.custom_derivatives",
    "functrans.custom_batching", "functrans.ad_checkpoint", "functrans.export", "functrans.ir",
    "functrans.aot", "functrans.ref", "functrans.dtypes", "functrans.typing", "functrans.test_util",
    "functrans.example_libraries.optimizers", "functrans.example_libraries.stax", "functrans.profiler",
    "functrans.extend", "functrans.testing.domains",
)  # fmt: skip
#: Names of other libraries that functrans has under none, or under another one.
FOREIGN = {
    "no_grad": "Nothing is recorded outside grad and vjp; lax.stop_gradient(x) is x without its derivative",
    "enable_grad": "Derivatives are made by grad(f), vjp or jvp: there is no mode to switch",
    "backward": "Derivatives are made from functions: grad(f)(x), or vjp(f, x) for a cotangent of your own",
    "requires_grad": "Pass what you differentiate as an argument: grad(f, argnums=...)",
    "Variable": "Pass what you differentiate as an argument: grad(f, argnums=...)",
    "elementwise_grad": "Write vmap(grad(f)), or grad(lambda x: f(x).sum()) for functions of each element",
    "pmap": "functrans has one device a process: use vmap, or shard_map for several processes",
    "rand": "Write random.uniform(key, shape), with a key made by random.key(0)",
    "randn": "Write random.normal(key, shape), with a key made by random.key(0)",
    "tree_multimap": "Write tree_util.tree_map, which takes several trees",
}


def homes(name: str, but: str = "") -> list[str]:
    """The dotted names that a name, or a module of this name, has in the modules for users; `but` is left out."""
    found: dict[int, str] = {}
    for module in PUBLIC:
        loaded = import_module(module)
        if module.rpartition(".")[2] == name:
            found.setdefault(id(loaded), module)
        elif module != but and name in loaded.__all__:
            found.setdefault(id(getattr(loaded, name)), f"{module}.{name}")
    return [*found.values()]


def counterpart(name: str) -> str | None:
    """What to write instead of a function of SciPy that needs numbers; None for other names.

    Parameters
    ----------
    name : str
        With its public module: ``"scipy.ndimage.gaussian_filter"``.
    """
    if not name.startswith("scipy."):
        return None
    module, _, function = f"functrans.{name}".rpartition(".")
    if module in PUBLIC and function in import_module(module).__all__:
        return f"Call {module}.{function}"
    elsewhere = homes(function)
    if elsewhere:
        return f"Call {' or '.join(elsewhere[:3])}"
    return (
        f"functrans has no {name}: run it in a `functrans.pure_callback`, or in a `functrans.Function` with "
        "`host = True` and a derivative of its own"
    )


def _advice(module: str, name: str, known: Collection[str]) -> str:
    if name in FOREIGN:
        return FOREIGN[name]
    elsewhere = homes(name, module)
    if elsewhere:
        return f"Write {' or '.join(elsewhere[:3])}"
    close = nearest_names(name, known)
    return f"Nearest: {', '.join(close)}" if close else "See dir() for the available names"


class _LazyModule(ModuleType):
    """See `lazy_import`."""

    def __getattr__(self, name: str) -> Any:
        with loading:
            return self._load(name)

    def _load(self, name: str) -> Any:
        if self.__name__ not in sys.modules:
            with imports():
                import_module(self.__name__)
        module = import_module(self.__name__)
        try:
            value = getattr(module, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            try:
                value = import_module(f"{self.__name__}.{name}")
            except ModuleNotFoundError:
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None
        if isinstance(value, ModuleType):  # other values may be replaced in the module
            self.__dict__[name] = value
        return value


def lazy_import(name: str) -> Any:
    """A module that is imported when one of its names is first used; submodules are names as well.

    Parameters
    ----------
    name : str
        Absolute.

    Examples
    --------
    >>> calendar = lazy_import("calendar")
    >>> calendar.isleap(2024)
    True
    """
    return _LazyModule(name)
