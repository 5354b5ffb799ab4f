"""Jaxprs and pytree structures as JSON, for files that other processes read.

Everything is plain data. Primitives are written by name, arrays and numbers by their bytes, classes of structures by
module and name, from which they are imported. Other values, such as a user's function, are refused.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core import Atom, Aval, Eqn, ExportError, Jaxpr, Literal, Primitive, Var, is_bfloat16
from ..core.dtypes import KEY
from ..core.low_precision import as_dtype
from ..core.values import ShapeLike
from ..frontend.pytree import LEAF, PyTreeDef
from ..frontend.pytree.definition import rebuild
from ..primitives import ops
from ..runtime.libraries import package_of
from ..runtime.module_getattr import load_module

_PLAIN = (bool, int, str, type(None))


def encode_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> dict[str, Any]:
    """A jaxpr as JSON data; of its constants, the number of those that are in `consts`, which the reader has.

    Raises
    ------
    ExportError
        If a parameter of an equation is not plain data; the message names the equation and the user's line.
    """
    number: dict[Atom, int] = {}
    known = {id(c): ["known", i] for i, c in enumerate(consts)}

    def define(v: Var) -> list[Any]:
        number[v] = len(number)
        return _encode_aval(v.aval)

    def atom(a: Atom) -> Any:
        return {"v": encode(a.value)} if isinstance(a, Literal) else number[a]

    homes: list[tuple[str, str]] = []

    def equation(eqn: Eqn) -> list[Any]:
        try:
            homes.append((eqn.primitive.name, _home(eqn.primitive)))
            params = {name: encode(value) for name, value in eqn.params.items()}
        except _Unknown as unknown:
            raise ExportError(
                f"{jaxpr.name} cannot be exported: its operation '{eqn.primitive.name}' holds {unknown}. An export "
                "contains numbers, arrays and operations, but no Python functions: remove callbacks",
                eqn.source,
            ) from None
        return [eqn.primitive.name, [atom(a) for a in eqn.invars], params, [define(v) for v in eqn.outvars]]

    return {
        "name": jaxpr.name,
        "in": [define(v) for v in jaxpr.invars],
        "consts": [[define(v), known.get(id(c)) or encode(np.asarray(c))] for v, c in jaxpr.constants],
        "eqns": [equation(e) for e in jaxpr.eqns],
        "out": [atom(a) for a in jaxpr.outvars],
        "primitives": dict(homes),
    }


def decode_jaxpr(data: dict[str, Any], consts: Sequence[Any] = ()) -> Jaxpr:
    """The jaxpr encoded as JSON data, with the `consts` that `encode_jaxpr` had.

    Raises
    ------
    LookupError, TypeError, ValueError
        If the data do not encode one.
    """
    variables: list[Var] = []

    def define(aval: list[Any]) -> Var:
        variables.append(Var(_decode_aval(aval)))
        return variables[-1]

    def atom(x: Any) -> Atom:
        if isinstance(x, dict):
            return Literal(decode(x["v"]))
        return variables[_natural(x)]

    invars = [define(a) for a in data["in"]]
    constants = [(define(a), consts[c[1]] if c[0] == "known" else decode(c)) for a, c in data["consts"]]
    homes = data.get("primitives")  # 0.2.0 writes none
    if homes is None:
        primitives = known_primitives()
    else:
        primitives = {name: _primitive(name, module) for name, module in homes.items()}
    eqns = []
    for name, operands, params, results in data["eqns"]:
        inputs = [atom(a) for a in operands]
        values = {key: decode(value) for key, value in params.items()}
        eqns.append(Eqn(primitives[name], inputs, [define(a) for a in results], values))
    return Jaxpr(
        invars,
        eqns,
        [atom(a) for a in data["out"]],
        constvars=[v for v, _ in constants],
        consts=[c for _, c in constants],
        name=_text(data["name"]),
    )


#: The modules that load those with primitives.
_COLLECTIONS = (
    "primitives.special_ops", "control.checkpoint", "control.cond", "control.scan",
    "control.while_loop", "control.callbacks.callback", "control.ranks.collectives", "custom.custom_call",
)  # fmt: skip


def known_primitives() -> dict[str, Primitive]:
    """All primitives by name."""
    for module in _COLLECTIONS:
        load_module(f"functrans.{module}")
    ops.later.load_all()
    return {prim.name: prim for _, prim in _loaded_primitives()}


def _loaded_primitives() -> Iterator[tuple[str, Primitive]]:
    """Each loaded module of functrans with each primitive that it defines or imports."""
    for name, module in list(sys.modules.items()):
        if name.startswith("functrans.") and module is not None:
            for value in list(vars(module).values()):
                if isinstance(value, Primitive):
                    yield name, value


#: The module from which a reader imports each primitive.
_homes: dict[Primitive, str] = {}


def _home(prim: Primitive) -> str:
    if prim not in _homes:
        names: dict[Primitive, list[str]] = {}
        for module, found in _loaded_primitives():
            names.setdefault(found, []).append(module)
        _homes.update({found: min(modules, key=_rank) for found, modules in names.items()})
    if prim not in _homes:
        raise _Unknown(f"a primitive that functrans does not have ('{prim.name}')")
    return _homes[prim]


def _rank(module: str) -> tuple[int, int]:
    """The least for the module that loads the fewest others: a definition in a low room, rather than a collection."""
    room = module.split(".")[1]
    rooms = ("primitives", "control", "custom")
    return rooms.index(room) if room in rooms else len(rooms) + (room == "lowering"), -module.count(".")


def _primitive(name: str, module: str) -> Primitive:
    if not module.startswith("functrans."):
        raise ValueError(f"{module} does not belong to functrans")
    values = list(vars(importlib.import_module(module)).values())
    return {value.name: value for value in values if isinstance(value, Primitive)}[name]


def _encode_aval(aval: Aval) -> list[Any]:
    if type(aval) is not Aval:
        raise ExportError(f"values of type {aval} cannot be exported: they belong to a process")
    return [list(aval.shape), _dtype_name(aval.dtype), aval.weak]


def _decode_aval(data: list[Any]) -> Aval:
    shape, dtype, weak = data
    if type(weak) is not bool or not isinstance(dtype, str):
        raise TypeError(f"{data} is no type of an array")
    return Aval(tuple(map(_natural, shape)), _dtype(dtype), weak)


def _text(x: Any) -> str:
    if type(x) is not str:
        raise TypeError(f"{x!r} is no text")
    return x


def _natural(x: Any) -> int:
    if type(x) is not int or not 0 <= x < 1 << 63:
        raise TypeError(f"{x!r} is no natural number")
    return x


# --- structures ---------------------------------------------------------------------------------------------


def encode_tree(tree: PyTreeDef) -> Any:
    """A pytree's structure as JSON data; raises `ExportError` for a class that other processes cannot import."""
    if tree == LEAF:
        return None
    kind, aux, children = tree.__reduce__()[1]
    try:
        own = ["class", _global_name(aux)] if isinstance(aux, type) else encode(aux)
        return [_global_name(kind), own, [encode_tree(c) for c in children]]
    except _Unknown as unknown:
        raise ExportError(
            f"arguments and results of the structure {tree} cannot be exported: one is or holds {unknown}"
        ) from None


def decode_tree(data: Any) -> PyTreeDef:
    """The structure encoded as JSON data; its classes must be importable and registered."""
    if data is None:
        return LEAF
    name, aux, children = data
    return rebuild(_global(name), decode(aux), tuple([decode_tree(c) for c in children]))


# --- values -------------------------------------------------------------------------------------------------


class _Unknown(Exception):
    """A value of a kind that has no encoding; the message describes it."""


def encode(value: Any) -> Any:
    """A parameter's value as JSON data: a list of a tag and its parts, unless JSON has the value."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (float, complex):
        return ["number", kind.__name__, _bytes(np.array(value))]
    if isinstance(value, np.dtype):
        return ["dtype", _dtype_name(value)]
    if isinstance(value, np.generic):
        return ["scalar", _dtype_name(value.dtype), _bytes(np.asarray(value))]
    if isinstance(value, np.ndarray):
        return ["array", _dtype_name(value.dtype), list(value.shape), _bytes(value)]
    if kind in (tuple, list):
        return [kind.__name__, [encode(v) for v in value]]
    if kind is frozenset:  # in one order in all processes
        return ["frozenset", sorted([encode(v) for v in value], key=repr)]
    if kind is dict:
        return ["dict", [[encode(k), encode(v)] for k, v in value.items()]]
    if isinstance(value, Jaxpr):
        return ["jaxpr", encode_jaxpr(value)]
    if isinstance(value, np.ufunc) and getattr(np, repr(value)[8:-2], None) is value:
        return ["ufunc", repr(value)[8:-2]]
    if hasattr(value, "__qualname__") and str(value.__module__).startswith("functrans."):
        return ["global", _global_name(value)]
    if package_of(kind) == "functrans":
        return _encode_record(value)
    raise _Unknown(f"a value of type {kind.__name__}" if not callable(value) else f"the function {value!r}")


def _encode_record(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return ["record", _global_name(kind), {f: encode(getattr(value, f)) for f in kind._fields}]
    if dataclasses.is_dataclass(value):
        return [
            "record",
            _global_name(kind),
            {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)},
        ]
    if hasattr(kind, "__members__"):
        return ["member", _global_name(kind), value.name]
    raise _Unknown(f"a value of type {kind.__name__}")


def decode(data: Any) -> Any:
    """The value encoded as JSON data."""
    if not isinstance(data, list):
        return data
    return _DECODERS[data[0]](*data[1:])


_DECODERS: dict[str, Callable[..., Any]] = {
    "number": lambda kind, data: _array("<f8" if kind == "float" else "<c16", (), data).item(),
    "dtype": lambda name: _dtype(name),
    "scalar": lambda dtype, data: _array(dtype, (), data)[()],
    "array": lambda dtype, shape, data: _array(dtype, shape, data),
    "tuple": lambda parts: tuple([decode(p) for p in parts]),
    "list": lambda parts: [decode(p) for p in parts],
    "frozenset": lambda parts: frozenset([decode(p) for p in parts]),
    "dict": lambda pairs: {decode(k): decode(v) for k, v in pairs},
    "jaxpr": decode_jaxpr,
    "ufunc": lambda name: getattr(np, name),
    "class": lambda name: _global(name),
    "global": lambda name: _global(name, "functrans."),
    "record": lambda name, fields: _global(name, "functrans.")(**{f: decode(v) for f, v in fields.items()}),
    "member": lambda name, member: _global(name, "functrans.")[member],
}


#: The name of the dtype of keys in files.
_KEY = "key"


def _dtype_name(dtype: np.dtype) -> str:
    # NumPy's codes for keys and bfloat16 only say how many bytes they have.
    return _KEY if dtype == KEY else dtype.name if is_bfloat16(dtype) else dtype.str


def _dtype(name: str) -> np.dtype:
    return KEY if name == _KEY else as_dtype(name)


def _bytes(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _array(dtype: str, shape: ShapeLike, data: str) -> np.ndarray:
    array = np.frombuffer(base64.b64decode(data), _dtype(dtype)).reshape(shape)
    array.flags.writeable = False
    return array


def _global_name(value: Any) -> str:
    name = f"{value.__module__}:{value.__qualname__}"
    try:
        known = _global(name)
    except (ImportError, AttributeError):
        known = None
    if value is not type(None) and known is not value:
        raise _Unknown(f"{value.__qualname__}, which cannot be imported from {value.__module__}")
    return name


def _global(name: str, package: str = "") -> Any:
    module, path = name.split(":")
    if not module.startswith(package):
        raise ValueError(f"{name} does not belong to functrans")
    if name == "builtins:NoneType":
        return type(None)
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value
