"""The words of the coverage table: how a case file says what a function is called with, and what must come out."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any

import numpy as np
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats

from functrans.core.trace import Tracer
from functrans.scipy import stats

HERE = Path(__file__).parent
#: Each is a namespace of its own.
DISTRIBUTIONS = [name for name in stats.__all__ if isinstance(getattr(stats, name), ModuleType)]
#: The namespaces that are covered, and where the function of the same name is found that is the default oracle.
NAMESPACES: dict[str, Any] = {
    "functrans.numpy": np,
    "functrans.numpy.linalg": np.linalg,
    "functrans.numpy.fft": np.fft,
    "functrans.lax": np,
    "functrans.lax.linalg": None,
    "functrans.nn": None,
    "functrans.ops": None,
    "functrans.random": None,
    "functrans.scipy.special": scipy.special,
    "functrans.scipy.linalg": scipy.linalg,
    "functrans.scipy.signal": scipy.signal,
    "functrans.scipy.fft": scipy.fft,
    "functrans.scipy.integrate": scipy.integrate,
    "functrans.scipy.ndimage": scipy.ndimage,
    "functrans.image": None,
    "functrans.scipy.cluster.vq": scipy.cluster.vq,
    "functrans.scipy.stats": scipy.stats,
    **{f"functrans.scipy.stats.{name}": getattr(scipy.stats, name) for name in DISTRIBUTIONS},
}
#: Solvers, which call the user's functions: tests/scipy has their tests.
SOLVERS = {"functrans.scipy.integrate": ("quad", "solve_ivp")}
#: What a test does beside the first value; an entry may leave one out with a reason.
ASPECTS = ("value", "jit", "vmap", "derivative", "numpy", "0-d", "empty", "strides", "float32", "int")
#: Those that compare with the oracle.
OF_ORACLES = ("value", "0-d", "empty", "strides", "float32", "int")


# --- arguments ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """An array argument that is drawn: traced, mapped and differentiated (the others are constants)."""

    shape: tuple[int, ...]
    make: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    integers: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] | None = None

    def draw(
        self, random: np.random.Generator, shape: tuple[int, ...] | None = None, dtype: Any = None
    ) -> np.ndarray:
        """An array; of `dtype`, if this argument can have another."""
        shape = self.shape if shape is None else shape
        if self.integers is None or dtype is None:
            return self.make(random, shape)
        if np.dtype(dtype).kind in "iu":
            return self.integers(random, shape).astype(dtype)
        found = self.make(random, shape)
        return found.astype(np.complex64 if found.dtype.kind == "c" else dtype)


def _apart(random: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Numbers in no order that keep a distance, so that max, sort and floor have no kink near by."""
    size = int(np.prod(shape))
    places = random.permutation(size) + 0.5 + random.uniform(-0.3, 0.3, size)
    return (low + (high - low) * places / max(size, 1)).reshape(shape)


def _whole(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (1 + random.permutation(int(np.prod(shape)))).reshape(shape)


def R(*shape: int, low: float = 0.3, high: float = 0.9) -> Drawn:
    """Real numbers between `low` and `high`, all different."""
    return Drawn(shape, lambda random, s: _apart(random, s, low, high), _whole)


def Z(*shape: int) -> Drawn:
    """Complex numbers of the first quadrant."""
    return Drawn(
        shape, lambda random, s: _apart(random, s, 0.3, 0.9) + 1j * _apart(random, s, 0.2, 0.8), _whole
    )


def I(*shape: int, low: int = 0, high: int = 5) -> Drawn:  # noqa: E743
    """Integers from `low` to `high` - 1, which stay integers."""
    return Drawn(shape, lambda random, s: np.asarray(random.integers(low, high, s)))


def B(*shape: int) -> Drawn:
    """Booleans."""
    return Drawn(shape, lambda random, s: np.asarray(random.integers(0, 2, s)).astype(bool))


def M(*shape: int, dtype: Any = float) -> Drawn:
    """Well conditioned matrices: small numbers, and about 2 to 3 on the diagonal."""

    def make(random: np.random.Generator, s: tuple[int, ...]) -> np.ndarray:
        x = 0.5 * random.uniform(-1, 1, s)
        x = x + 0.5j * random.uniform(-1, 1, s) if np.dtype(dtype).kind == "c" else x
        return x + np.eye(*s[-2:]) * np.linspace(2, 3, s[-1]) if len(s) > 1 else x

    return Drawn(shape, make, _whole)


def PD(*shape: int, dtype: Any = float) -> Drawn:
    """Symmetric (Hermitian) positive definite matrices."""

    def make(random: np.random.Generator, s: tuple[int, ...]) -> np.ndarray:
        x = M(dtype=dtype).make(random, s)
        return (x @ np.swapaxes(x, -1, -2).conj()) if len(s) > 1 else x

    return Drawn(
        shape, make, lambda random, s: make(random, s).real.astype(int) if len(s) > 1 else _whole(random, s)
    )


# --- calls and entries --------------------------------------------------------------------------------------


class Call:
    """The arguments of one call; those that are `Drawn`, also within lists, tuples and dicts, are drawn anew."""

    eager = False
    sized = False

    def __init__(self, *args: Any, **kwargs: Any):
        self.args = args
        self.kwargs = kwargs
        self.drawn: list[Drawn] = list(_drawn((args, kwargs)))

    def values(
        self, seed: int = 0, shape: Callable[[Drawn], Any] = lambda d: None, dtype: Any = None
    ) -> list[np.ndarray]:
        """One array for each drawn argument."""
        random = np.random.default_rng(seed)
        return [d.draw(random, shape(d), dtype) for d in self.drawn]

    def __call__(self, f: Callable[..., Any], values: Iterable[Any]) -> Any:
        """`f` of the arguments, with `values` for the drawn ones."""
        rest = iter(values)
        args, kwargs = _filled((self.args, self.kwargs), rest)
        return f(*args, **kwargs)

    def expected(self, oracle: Callable[..., Any], values: Iterable[Any]) -> Any:
        """What the oracle gives for these arguments."""
        return self(oracle, values)


class Eager(Call):
    """A call that cannot be compiled or mapped, since the shape of its result depends on numbers."""

    eager = True


class Sized(Call):
    """A call that says the size of its result (`size=`, `length=`), so that it can be compiled; its oracle finds it."""

    sized = True

    def expected(self, oracle: Callable[..., Any], values: Iterable[Any]) -> Any:
        """What the oracle gives, which is not told the size."""
        kept = {k: v for k, v in self.kwargs.items() if k not in ("size", "length")}
        return Call(*self.args, **kept)(oracle, values)


def _drawn(x: Any) -> Iterator[Drawn]:
    if isinstance(x, Drawn):
        yield x
    elif isinstance(x, (tuple, list, dict)):
        for part in x.values() if isinstance(x, dict) else x:
            yield from _drawn(part)


def _filled(x: Any, values: Iterator[Any]) -> Any:
    if isinstance(x, Drawn):
        return next(values)
    if isinstance(x, dict):
        return {k: _filled(v, values) for k, v in x.items()}
    return type(x)(_filled(v, values) for v in x) if type(x) in (tuple, list) else x


@dataclass
class Entry:
    """A public function (or several of one kind, separated by blanks) and how it is tested; see README.md."""

    name: str
    calls: tuple[Call, ...]
    oracle: Callable[..., Any] | None
    differentiable: bool | str
    order: int
    skip: Mapping[str, str]
    rtol: float
    through: Callable[..., Any] | None
    slow: bool
    needs: Mapping[str, tuple[str, str]]
    namespace: str = field(default="")

    def __init__(
        self,
        name: str,
        *calls: Call,
        oracle: Callable[..., Any] | None = None,
        differentiable: bool | str = True,
        order: int = 2,
        skip: Mapping[str, str] | None = None,
        rtol: float = 1e-11,
        through: Callable[..., Any] | None = None,
        slow: bool = False,
        needs: Mapping[str, tuple[str, str]] | None = None,
    ):
        self.name, self.calls, self.oracle, self.order, self.rtol = name, calls, oracle, order, rtol
        self.differentiable, self.skip, self.namespace = differentiable, skip or {}, ""
        self.through, self.slow, self.needs = through, slow, needs or {}
        if not calls:
            raise ValueError(f"{name}: an entry wants a Call")
        for aspect in self.skip:
            if aspect not in ASPECTS:
                raise ValueError(f"{name}: there is no aspect {aspect!r}; there are {', '.join(ASPECTS)}")
        for aspect in self.needs:
            if aspect not in OF_ORACLES:
                raise ValueError(
                    f"{name}: {aspect!r} does not depend on the oracle: {', '.join(OF_ORACLES)} do"
                )

    @property
    def id(self) -> str:
        """The name with its namespace, as users write it."""
        return id_of(self.namespace, self.name)

    @property
    def function(self) -> Callable[..., Any]:
        """The function under test."""
        return getattr(importlib.import_module(self.namespace), self.name)

    def called(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """What the calls are of: the function, or what is done with it."""
        return f if self.through is None else partial(self.through, f)

    @property
    def subject(self) -> Callable[..., Any]:
        """The function under test, as the calls call it."""
        return self.called(self.function)

    @property
    def counterpart(self) -> Callable[..., Any] | None:
        """NumPy's or SciPy's function of the same name."""
        found = getattr(NAMESPACES[self.namespace], self.name, None)
        return None if found is None else self.called(found)

    @property
    def reference(self) -> Callable[..., Any]:
        """The oracle."""
        found = self.counterpart if self.oracle is None else self.called(self.oracle)
        if found is None:
            raise ValueError(
                f"{self.id}: the entry wants an oracle, there is no function of this name elsewhere"
            )
        return found

    def seed(self, lane: int = 0) -> int:
        """Of the random numbers of this entry."""
        return zlib.crc32(self.id.encode()) + lane


# --- the table ----------------------------------------------------------------------------------------------


def id_of(namespace: str, name: str) -> str:
    """The name with its namespace, as users write it."""
    return f"{namespace.removeprefix('functrans.')}.{name}"


def public(namespace: str) -> dict[str, Callable[..., Any]]:
    """The functions of a namespace: neither classes and constants, nor what is NumPy's own."""
    try:
        module = importlib.import_module(namespace)
    except ModuleNotFoundError:
        return {}
    theirs = NAMESPACES[namespace]
    return {
        name: f
        for name in sorted(module.__all__)
        if callable(f := getattr(module, name))
        and not isinstance(f, (type, np.dtype, GenericAlias, ModuleType))
        and f is not getattr(theirs, name, None)
        and name not in SOLVERS.get(namespace, ())
    }


def leaves(x: Any) -> list[Any]:
    """The parts of nested tuples, lists and dicts."""
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in leaves(part)]
    return [leaf for k in x for leaf in leaves(x[k])] if isinstance(x, dict) else [x]


def arrays(x: Any) -> list[Any]:
    """Those parts that are arrays."""
    return [y for y in leaves(x) if isinstance(y, (np.ndarray, np.generic, Tracer))]


def load() -> dict[str, Entry]:
    """All entries of the files ``cases_*.py``, by id."""
    found: dict[str, Entry] = {}
    for path in sorted(HERE.glob("cases_*.py")):
        tables: Mapping[str, Iterable[Entry]] = importlib.import_module(path.stem).TABLES
        for namespace, entries in tables.items():
            for group in entries:
                for name in group.name.split():
                    entry = Entry.__new__(Entry)
                    entry.__dict__.update(group.__dict__, name=name, namespace=namespace)
                    if entry.id in found:
                        raise ValueError(f"{entry.id} has two entries, one of them in {path.name}")
                    found[entry.id] = entry
    return found


def covering(entries: Mapping[str, Entry]) -> dict[int, Entry]:
    """The entry of each function object: other names of it need none."""
    return {
        id(e.function): e for e in entries.values() if hasattr(importlib.import_module(e.namespace), e.name)
    }
