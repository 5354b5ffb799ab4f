"""The names in `exports.py` stand in lists that were made from the systems' own libraries.

The distribution of Zig on PyPI contains such lists, for linking programs for macOS and Windows.
"""

import re
import subprocess
import sys
import zipfile

import exports
import pytest

_WINDOWS = ("ucrtbase", "api-ms-win-crt-", "kernel32.", "ntdll.")
#: The compiler's library defines it; functrans has its own.
_IN_NO_LIBRARY = {"_fltused"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zig")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d"]
    subprocess.run([*command, str(folder), "ziglang"], check=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def names_in(wheel, is_wanted):
    texts = [wheel.read(name).decode("latin-1") for name in wheel.namelist() if is_wanted(name)]
    assert texts
    return {name for text in texts for name in re.findall(r"[\w$.]+", text)}


@pytest.mark.slow
def test_macos(wheel):
    exported = names_in(wheel, lambda name: name.endswith("/darwin/libSystem.tbd"))
    asked = {
        f"_{name}" for triple in ("arm64-apple-darwin", "x86_64-apple-darwin") for name in exports.of(triple)
    }
    assert asked - exported == set()
    assert "_no_such_function" not in exported


@pytest.mark.slow
def test_windows(wheel):
    def is_wanted(name):
        return "/mingw/lib" in name and name.rpartition("/")[2].startswith(_WINDOWS)

    exported = names_in(wheel, is_wanted)
    assert exports.of("x86_64-pc-windows-msvc") - exported == _IN_NO_LIBRARY
    assert "hypotf" not in exported
