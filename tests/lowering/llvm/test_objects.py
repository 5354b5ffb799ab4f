"""Object code: what LLVM's passes share from one module to the next."""

from collections import Counter

from functrans.lowering.llvm import objects
from functrans.lowering.processor import processor

TEXT = "define i64 @one() {\n  ret i64 1\n}\n"


def test_pass_builders_are_renewed(monkeypatch):
    """A builder calls the callbacks of all its runs, so compiling would get slower and slower."""
    runs, builders = Counter(), []
    run = objects._run

    def counted(passes, module, builder):
        builders.append(builder)  # alive, so that no other has its id
        runs[id(builder)] += 1
        run(passes, module, builder)

    monkeypatch.setattr(objects, "_run", counted)
    for _ in range(3 * objects._RUNS):
        objects.compile_object(TEXT, "one", processor())
    assert sum(runs.values()) == 6 * objects._RUNS
    assert max(runs.values()) <= objects._RUNS
