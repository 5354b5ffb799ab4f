"""Options: process-wide values, patches of a context, environment variables."""

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import functrans as ft
from functrans.errors import ConfigError, FunctransError
from functrans.runtime.config import Config, config, trace_key
from functrans.runtime.passes import STAGES


def test_defaults():
    fresh = Config({})
    assert (fresh.specialize_below, fresh.strict) == (16, False)
    assert (fresh.linalg_errors, fresh.backend) == ("raise", "llvm")
    assert (fresh.disable_jit, fresh.verify) == (False, False)


def test_patch_nests_and_restores_on_exceptions():
    fresh = Config({})
    with fresh.patch(strict=True, specialize_below=3):
        with pytest.raises(ZeroDivisionError), fresh.patch(specialize_below=5, verify=True):
            assert (fresh.strict, fresh.specialize_below, fresh.verify) == (True, 5, True)
            raise ZeroDivisionError
        assert (fresh.strict, fresh.specialize_below, fresh.verify) == (True, 3, False)
    assert (fresh.strict, fresh.specialize_below) == (False, 16)


def test_one_patch_object_may_be_entered_again():
    fresh = Config({})
    patch = fresh.patch(strict=True)
    with patch, fresh.patch(strict=False), patch:
        assert fresh.strict
    assert not fresh.strict


def test_patch_decorates_and_keeps_the_name():
    fresh = Config({})

    @fresh.patch(backend="python")
    def countdown(n):
        return [fresh.backend] if n == 0 else [fresh.backend, *countdown(n - 1)]

    assert countdown.__name__ == "countdown"
    assert countdown(2) == ["python"] * 3
    assert fresh.backend == "llvm"


def test_setting_is_process_wide_and_below_patches():
    fresh = Config({})
    seen = []
    fresh.specialize_below = 4
    with fresh.patch(specialize_below=2):
        fresh.specialize_below = 8
        fresh.strict = True
        seen.append((fresh.specialize_below, fresh.strict))
        thread = threading.Thread(target=lambda: seen.append((fresh.specialize_below, fresh.strict)))
        thread.start()
        thread.join()
    assert seen == [(2, True), (8, True)]
    assert fresh.specialize_below == 8


def test_threads_patch_independently():
    fresh = Config({})
    barrier = threading.Barrier(32)
    wrong = []

    def work(i):
        with fresh.patch(specialize_below=i):
            barrier.wait()
            for _ in range(50):
                if fresh.specialize_below != i or fresh.trace_key()[0] != i:
                    wrong.append(i)
            barrier.wait()
        if fresh.specialize_below != 16:
            wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_tasks_patch_independently():
    fresh = Config({})

    async def work(i):
        with fresh.patch(specialize_below=i):
            await asyncio.sleep(0)
            return fresh.specialize_below

    async def main():
        return await asyncio.gather(*(work(i) for i in range(1, 6)))

    assert asyncio.run(main()) == [1, 2, 3, 4, 5]


def test_trace_key_holds_the_options_that_affect_tracing():
    fresh = Config({})
    start = fresh.trace_key()
    assert hash(start) == hash(fresh.trace_key())
    for change in [
        {"specialize_below": 2},
        {"strict": True},
        {"linalg_errors": "nan"},
        {"backend": "python"},
        {"disable_jit": True},
    ]:
        with fresh.patch(**change):
            assert fresh.trace_key() != start, change
    with fresh.patch(verify=True):
        assert fresh.trace_key() == start
    with fresh.patch(strict=True):
        before = fresh.trace_key()
        fresh.specialize_below = 7
        assert fresh.trace_key() != before
    assert fresh.trace_key() != start
    fresh.specialize_below = 16
    assert fresh.trace_key() == start
    assert trace_key() == config.trace_key()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("backend", "gpu", "'llvm' or 'python'"),
        ("linalg_errors", None, "'raise' or 'nan'"),
        ("specialize_below", -1, "at least 0"),
        ("specialize_below", 2.5, "integer"),
        ("specialize_below", -7, "at least 0"),
        ("specialize_below", True, "integer"),
        ("strict", 1, "True or False"),
    ],
)
def test_a_bad_value_names_the_option_and_the_choices(name, value, words):
    fresh = Config({})
    before = repr(fresh)
    for attempt in (lambda: setattr(fresh, name, value), lambda: fresh.patch(**{name: value})):
        with pytest.raises(ConfigError, match=words) as caught:
            attempt()
        assert f"config.{name}" in str(caught.value)
        assert repr(value) in str(caught.value)
        assert isinstance(caught.value, ValueError)
    assert repr(fresh) == before


def test_an_unknown_option_names_the_nearest():
    fresh = Config({})
    for attempt in (
        lambda: fresh.strickt,
        lambda: setattr(fresh, "strickt", True),
        lambda: fresh.patch(strickt=True),
    ):
        with pytest.raises(AttributeError, match="did you mean 'strict'") as caught:
            attempt()
        assert isinstance(caught.value, FunctransError)
    with pytest.raises(AttributeError, match="the options are specialize_below"):
        _ = fresh.zzzzzz
    assert not hasattr(fresh, "strickt")


def test_environment_variables_give_initial_values():
    fresh = Config(
        {"FUNCTRANS_SPECIALIZE_BELOW": "4", "FUNCTRANS_STRICT": "True", "FUNCTRANS_BACKEND": " python"}
    )
    assert (fresh.specialize_below, fresh.strict, fresh.backend) == (4, True, "python")
    assert Config({"FUNCTRANS_STRICT": "0"}).strict is False
    for name, text in [("SPECIALIZE_BELOW", "many"), ("STRICT", "maybe"), ("BACKEND", "gpu")]:
        with pytest.raises(ConfigError, match=f"environment variable FUNCTRANS_{name}.*{text}"):
            Config({f"FUNCTRANS_{name}": text})


def test_the_process_reads_its_environment():
    code = "from functrans.runtime.config import config; print(config.specialize_below)"
    environment = {**os.environ, "FUNCTRANS_SPECIALIZE_BELOW": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "7", done.stderr


METHODS = ("passes", "patch", "read", "runs", "trace_key", "update")


def test_every_option_is_documented():
    doc = inspect.cleandoc(Config.__doc__)  # which CPython does itself from 3.13 on
    for name in dir(config):
        assert f"\n{name} : " in doc or name in METHODS
    assert "backend : {'llvm', 'python'}" in Config.__doc__
    assert "Default 16." in Config.__doc__


def test_the_options_are_listed():
    assert "strict" in dir(config)
    assert repr(Config({})).startswith("Config(specialize_below=16, strict=False")


# --- optimisations by name ----------------------------------------------------------------------------------


def test_passes_can_be_turned_off_by_name():
    names = [p.name for p in config.passes]
    assert len(set(names)) == len(names)
    read_back = next(p for p in config.passes if p.name == "read_back")
    key = trace_key()
    with config.patch(without={"read_back"}):
        assert not config.runs(read_back)
        assert config.without == {"read_back"}
        assert trace_key() != key
    assert config.runs(read_back)
    assert trace_key() == key


@pytest.mark.parametrize("value", [["fuson"], "fuson", {"fusion", "fuson"}])
def test_an_unknown_pass_is_refused(value):
    with pytest.raises(ConfigError, match="unknown name 'fuson': did you mean 'fusion'"):
        config.without = value


@pytest.mark.parametrize("value", [3, [3], None])
def test_passes_are_turned_off_by_names_alone(value):
    with pytest.raises(ConfigError, match="must be a set of names"):
        config.without = value


def test_passes_in_the_environment():
    assert Config({"FUNCTRANS_WITHOUT": "fusion, read_back,"}).without == {"fusion", "read_back"}
    assert Config({"FUNCTRANS_WITHOUT": ""}).without == set()
    with pytest.raises(ConfigError, match="environment variable FUNCTRANS_WITHOUT has an unknown name"):
        Config({"FUNCTRANS_WITHOUT": "fusion,x"})


def test_each_pass_says_where_it_is():
    root = Path(ft.__file__).parent
    sources = "".join(f.read_text() for f in root.rglob("*.py"))
    for p in config.passes:
        assert (root / f"{p.where.replace('.', '/')}.py").is_file(), p.name
        assert p.stage in STAGES
        assert p.doc.endswith(".")
        assert f"runs({p.name.upper()})" in sources or f"runs(passes.{p.name.upper()})" in sources, p.name


def test_a_patch_takes_jaxs_names():
    with config.patch(jax_debug_nans=True, jax_enable_checks=True):
        assert (config.debug_nans, config.jax_debug_nans, config.verify) == (True, True, True)
    assert not config.debug_nans
