"""Classes of `runtime.records` are what `dataclasses` makes, but that attributes of frozen ones can be set."""

import ast
import copy
import dataclasses
import pathlib
import pickle
import typing
from dataclasses import field

import pytest

import functrans
from functrans.runtime import records

ROOT = pathlib.Path(functrans.__file__).parent


def classes(dataclass, **options):
    """Some classes, made by a decorator."""

    @dataclass(**options)
    class Empty:
        pass

    @dataclass(**options)
    class One:
        x: int

    @dataclass(**options)
    class Several:
        x: int
        y: float = 2.0
        z: list = field(default_factory=list, compare=False)
        w: str = field(default="w", repr=False)

    @dataclass(**options)
    class Derived(Several):
        v: int = 0

    @dataclass(**options)
    class WithMethods:
        x: int

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

        def __repr__(self):
            return "own"

    @dataclass(**options)
    class WithEquality:
        x: int

        def __eq__(self, other):
            return True

    return Empty, One, Several, Derived, WithMethods, WithEquality


def objects(made):
    """Objects of these classes, several of each, with equal ones and attributes that are no numbers."""
    empty, one, several, derived, with_methods, with_equality = made
    return [
        *[empty(), empty(), one(1), one(1.0), one(2), one("x"), one((1, 2)), one([1])],
        *[several(1), several(1, 2), several(1, 3.0, [4]), several(1, z=[5]), several(1, w="v")],
        *[derived(1), derived(1, v=1), with_methods(1), with_methods(2), with_equality(1), with_equality(2)],
    ]


def hash_of(x):
    try:
        return hash(x)
    except TypeError as error:
        return str(error)


OPTIONS = [
    {},
    {"eq": False},
    {"frozen": True},
    {"frozen": True, "eq": False},
    {"slots": True},
    {"kw_only": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_objects_behave_as_those_of_dataclasses(options):
    ours, theirs = (objects(classes(d, **options)) for d in (records.dataclass, dataclasses.dataclass))
    assert [repr(x).partition(".<locals>.")[2] for x in ours] == [
        repr(x).partition(".<locals>.")[2] for x in theirs
    ]
    assert [[a == b for b in ours] for a in ours] == [[a == b for b in theirs] for a in theirs]
    assert [[a != b for b in ours] for a in ours] == [[a != b for b in theirs] for a in theirs]
    assert [type(x).__match_args__ for x in ours] == [type(x).__match_args__ for x in theirs]
    if options.get("eq", True):
        assert list(map(hash_of, ours)) == list(map(hash_of, theirs))
    else:
        by_identity = [[type(x).__hash__ is object.__hash__ for x in made] for made in (ours, theirs)]
        assert by_identity[0] == by_identity[1]
        assert {*by_identity[0]} == {True, False}
    for x in ours:
        if type(x).__name__ in ("Several", "Derived"):
            assert dataclasses.replace(x, x=9).x == 9
            assert dataclasses.asdict(x)["x"] == 1
            assert copy.deepcopy(x).w == x.w


def test_an_object_that_refers_to_itself_has_a_repr():
    @records.dataclass
    class Node:
        next: object = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


@records.dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    y: tuple = ()


def test_slots():
    x = Slotted(1, (2,))
    assert pickle.loads(pickle.dumps(x)) == x != Slotted(1)
    assert not hasattr(x, "__dict__")


def test_no_class_without_a_docstring_gets_its_signature():
    """Which `inspect` takes long to find."""

    @records.dataclass
    class Undocumented:
        x: int

    assert Undocumented.__doc__ == "Undocumented"


class Ours(records.NamedTuple):
    """A class with a docstring."""

    x: int
    y: "list[NoSuchName]" = 2  # noqa: F821
    z: tuple = ()

    @property
    def total(self):
        return self.x + self.y

    def __repr__(self):
        return f"Ours({self.x})"


class Theirs(typing.NamedTuple):
    """A class with a docstring."""

    x: int
    y: "list[NoSuchName]" = 2  # noqa: F821
    z: tuple = ()

    @property
    def total(self):
        return self.x + self.y

    def __repr__(self):
        return f"Ours({self.x})"


def test_named_tuples_are_those_of_typing():
    for make in (lambda c: c(1), lambda c: c(1, z=(3,)), lambda c: c(x=1, y=5)._replace(x=7)):
        ours, theirs = make(Ours), make(Theirs)
        assert ours == theirs
        assert (repr(ours), hash(ours), ours.total) == (repr(theirs), hash(theirs), theirs.total)
        assert ours._asdict() == theirs._asdict()
        assert pickle.loads(pickle.dumps(ours)) == ours
    for name in ("__doc__", "__module__", "_fields", "_field_defaults", "__match_args__"):
        assert getattr(Ours, name) == getattr(Theirs, name)
    assert list(Ours.__annotations__) == list(Theirs.__annotations__)
    assert (Ours.__name__, Ours.__qualname__, Ours.__bases__) == ("Ours", "Ours", (tuple,))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Ours()
    with pytest.raises(AttributeError):
        Ours(1).x = 2


def test_frozen_classes_of_the_package_that_users_hold_stop_who_sets_an_attribute():
    from functrans.runtime.module_getattr import PUBLIC

    held = set()
    for name in PUBLIC:
        module = __import__(name, fromlist=["_"])
        held |= {x for x in map(vars(module).get, module.__all__) if isinstance(x, type)}
    held = {x for x in held if dataclasses.is_dataclass(x)}
    assert len(held) > 10
    assert [x for x in held if not x.__dataclass_params__.frozen] == []


@pytest.mark.parametrize(("module", "name"), [("dataclasses", "dataclass"), ("typing", "NamedTuple")])
def test_modules_of_the_package_make_their_records_here(module, name):
    """But for dataclasses that users hold, and those below this room."""
    others = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == module
        if name in [a.name for a in node.names]
    }
    others = {path for path in others if not path.startswith("errors/")} - {"runtime/records.py"}
    assert sorted(others) == (sorted(HELD) if name == "dataclass" else [])


#: Modules with classes that users hold.
HELD = [
    "aot/pair.py", "core/primitive.py", "custom/jax_call.py", "distributed/fully_shard.py",
    "frontend/pytree/nodes.py", "frontend/structs.py", "lax/shapes.py", "testing/domain.py", "testing/domains.py",
]  # fmt: skip
