"""The LLVM texts that clang makes of C sources."""

import re

import pytest

from functrans.lowering.llvm.c import generate, native_call
from functrans.lowering.llvm.c.texts import text_of

CLANG = generate.clang()
needs_clang = pytest.mark.skipif(CLANG is None, reason=f"needs clang {generate.CLANG}")


def test_every_source_and_every_text_is_listed():
    files = {p.name for p in generate.FOLDER.iterdir()}
    assert {x for x in files if x.endswith(".ll")} == set(generate.TEXTS)
    assert {x for x in files if x.endswith(".c")} == {source for source, *_ in generate.TEXTS.values()}


@needs_clang
@pytest.mark.parametrize("name", generate.TEXTS)
def test_the_text_is_that_of_the_source(name):
    """If not: ``python -m functrans.lowering.llvm.c.generate``."""
    assert (generate.FOLDER / name).read_text() == generate.generated(CLANG, name)


@pytest.mark.parametrize("name", generate.TEXTS)
def test_the_text_says_nothing_of_the_compiler_s_target(name):
    text = (generate.FOLDER / name).read_text()
    assert not re.search(r"x86|target|attributes|#\d|!\w|zeroext|lifetime|captures", text)


def test_the_text_of_calls_has_a_number_for_each_declaration():
    import llvmlite.binding as llvm

    declared = re.findall(r"@functrans\.(\w+) = external", (generate.FOLDER / "call.ll").read_text())
    numbers = {name: 1000 + i for i, name in enumerate(sorted(declared))}
    assert set(numbers) == {*native_call._OFFSETS, "tidy"}
    text = text_of("call.ll", numbers)
    llvm.parse_assembly(text, llvm.create_context()).verify()
    for name, number in numbers.items():
        width = 32 if name == "tidy" else 64
        assert f"@functrans.{name} = internal constant i{width} {number}," in text


def test_the_functions_are_those_of_the_table():
    text = (generate.FOLDER / "call.ll").read_text()
    table = re.search(r"@table = internal constant \[\d+ x ptr\] \[(.*?)\]", text)[1]
    assert re.findall(r"@functrans\.(\w+)", table) == list(native_call._FUNCTIONS)
