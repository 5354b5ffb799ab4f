"""Attribute access on modules: public names, suggestions for missing ones, and loading on first use.

`module_attributes` serves public modules: ``dir`` lists the public names, and a missing name raises an error that
suggests the nearest one. `on_demand` is a block of imports whose modules load when a name of theirs is first used, and
`lazy_import` a stand-in for such a module. `slots` holds modules of higher rooms that lower ones ask for.
"""

from __future__ import annotations

import builtins
import difflib
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from ..errors import NoAttributeError
from .context import imports, loading, new_lock
from .records import NamedTuple


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
    later: OnDemand | None = None,
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
    later : OnDemand, optional
        Names, also of submodules, that load when first used.
    further : callable, optional
        Names that are not listed: ``further(name)`` returns the object, or None if there is none.
    """

    def __getattr__(name: str) -> Any:
        if later is not None and name in later.homes:
            return later.load(name)
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


class _Home(NamedTuple):
    """What an import in a block of `OnDemand` binds: the module that has the name, and its name there."""

    module: str
    name: str


class _Origin:
    """Where such an import takes names from."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> _Home:
        return _Home(self._module, name)


#: Held while a block of `OnDemand` runs, in which nothing loads.
_blocks = new_lock()


class OnDemand:
    """The names that a block of `on_demand` imports.

    Attributes
    ----------
    homes : dict from str to _Home
        The names, and where each is.
    """

    def __init__(self, namespace: dict[str, Any]):
        self._namespace = namespace
        self._package: str = namespace["__package__"]
        self.homes: dict[str, _Home] = {}

    def origin(self, name: str, level: int) -> _Origin:
        """What ``from <level dots><name> import ...`` in the package takes names from."""
        above = self._package.rsplit(".", level - 1)[0]
        return _Origin(f"{above}.{name}" if name else above)

    def take(self) -> None:
        """Note what the block has bound, and unbind it."""
        self.homes.update({n: home for n, home in self._namespace.items() if type(home) is _Home})
        for name in self.homes:
            del self._namespace[name]

    def load(self, name: str) -> Any:
        """What a name stands for; it is bound in the module from now on."""
        module, own = self.homes[name]
        if module == self._package:
            value: Any = load_module(f"{module}.{own}")
        else:
            value = getattr(load_module(module), own)
        self._namespace[name] = value
        return value

    def load_all(self) -> None:
        """Load what all names stand for."""
        for name in self.homes:
            self.load(name)


@contextmanager
def on_demand(namespace: dict[str, Any]) -> Iterator[OnDemand]:
    """A block of imports from a package's own parts, in its ``__init__``: what they name loads when it is first used.

    ``from .part import name`` binds nothing. The package's ``__getattr__`` (see `module_attributes`) imports the part
    when it is asked for the name, and binds it then. ``from . import part`` is a submodule. So readers, type checkers
    and editors see ordinary imports. While the block runs, the function behind the import statement
    (``builtins.__import__``, which Python's documentation lets programs replace) is one that only notes the block's
    own imports, and passes on those of other threads.

    Parameters
    ----------
    namespace : dict
        The ``globals()`` of the package.
    """
    later = OnDemand(namespace)

    def note(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if globals is namespace:
            return later.origin(name, level)
        return imported(name, globals, locals, fromlist, level)

    with _blocks:
        imported = builtins.__import__
        builtins.__import__ = note
        try:
            yield later
        finally:
            builtins.__import__ = imported
    later.take()


class Slots:
    """Modules of higher rooms that lower ones ask for. `functrans/__init__.py` fills in stand-ins for them.

    Attributes
    ----------
    compiler : module
        Turns the jaxpr of a call into kernels: `functrans.api.compiled.known_programs`.
    numba : module
        What jitted functions are for code that Numba compiles: `functrans.interop.jitted.type`.
    operations : module
        Finds operations of all rooms by name: `functrans.api.autocast`.
    pictures : module
        Draws programs: `functrans.passes.pictures.picture`.
    world : module
        Knows of other processes: `functrans.distributed.world`.
    """

    compiler: Any
    numba: Any
    operations: Any
    pictures: Any
    world: Any


slots = Slots()
#: When this process imported functrans, in seconds since the epoch.
STARTED = time.time()


def load_module(name: str) -> ModuleType:
    """Import a module, if it has not been imported, for a name that is used now."""
    with loading:
        if name not in sys.modules:
            with imports():
                import_module(name)
        return import_module(name)


#: The special names that modules have of their own; the last says that `jax` is functrans.
_OF_MODULES = frozenset(("__all__", "__file__", "__path__", "__version__", "__functrans__"))


class _LazyModule(ModuleType):
    """See `lazy_import`."""

    def __getattr__(self, name: str) -> Any:
        if (
            name.startswith("__") and name not in _OF_MODULES
        ):  # someone looks what this is: `inspect`, doctest, pytest
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            value = getattr(load_module(self.__name__), name)
        except AttributeError:
            if name.startswith("__"):
                raise
            try:
                value = load_module(f"{self.__name__}.{name}")
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
