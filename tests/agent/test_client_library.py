"""The client library is imported as far as it is used, and wholly where that does not go."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tacit.agent import client_library

Make = Callable[..., Callable[[], ModuleType]]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Writes the modules of a package, and gives what imports it by parts."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(client_library, "_PARTED", frozenset(("parted",)))
    monkeypatch.setattr(client_library, "_ROOTS", {"parted"})

    def make(**modules: str) -> Callable[[], ModuleType]:
        (tmp_path / "parted").mkdir()
        for name, text in modules.items():
            (tmp_path / "parted" / f"{name}.py").write_text(text)
        return lambda: client_library.sparingly(lambda: import_module("parted"))

    yield make
    for name in [name for name in sys.modules if name.partition(".")[0] == "parted"]:
        del sys.modules[name]


def loaded() -> set[str]:
    return {name.partition(".")[2] for name in sys.modules if name.startswith("parted.")}


def test_a_name_brings_the_module_that_it_stands_in(package: Make) -> None:
    """In each form in which a package takes names from its modules; the others are not run."""
    parted = package(
        __init__="from .one import (\n    A,  # the first\n    B as Second,\n)\n"
        "from . import two\nfrom .three import C\nfrom parted.four import D\nimport json\n",
        one="A, B = 1, 2",
        two="E = 3",
        three="C = 4",
        four="D = 5",
    )()
    assert loaded() == set()
    assert (parted.A, parted.Second) == (1, 2)
    assert loaded() == {"one"}
    assert (parted.two.E, parted.D) == (3, 5)
    assert loaded() == {"one", "two", "four"}


def test_what_a_package_makes_itself_has_all_of_it_run(package: Make) -> None:
    """Its own names, what it is asked for by a star, and an unknown name's error are the same."""
    parted = package(
        __init__="from .one import A\nfrom .two import B\nSUM = A + B\n__all__ = ['SUM']\n",
        one="A = 1",
        two="B = 2",
    )()
    assert parted.A == 1
    assert parted.__all__ == ["SUM"]
    assert loaded() == {"one", "two"}
    assert parted.SUM == 3
    with pytest.raises(AttributeError, match="C"):
        _ = parted.C


def test_a_release_that_cannot_be_parted_is_imported_whole(package: Make) -> None:
    """Two modules need each other, in an order that the package alone knows."""
    package(
        __init__="from .two import B\nfrom .one import A\n",
        one="from .two import B\nA = B + 1",
        two="B = 1\nfrom .one import A",
    )
    assert client_library.sparingly(lambda: import_module("parted").A) == 2
    assert loaded() == {"one", "two"}
    assert not any(type(each).__module__ == client_library.__name__ for each in sys.meta_path)


def test_the_methods_of_a_dataclass_are_those_that_it_has_else(package: Make) -> None:
    """Compiled when they are called or before, they do the same."""
    text = (
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True, order=True)\nclass A:\n    x: int\n    y: str = 'b'\n"
    )
    kept = package(__init__="from .one import A\n", one=text)().A
    whole: dict[str, Any] = {"__name__": "parted.one"}
    exec(text, whole)
    for made in (kept, whole["A"]):
        assert repr(made(1)) == "A(x=1, y='b')"
        assert made(1) == made(1, "b") != made(2)
        assert hash(made(1)) == hash(made(1, "b"))
        assert made(1) < made(2)
        assert str(signature(made)) == "(x: int, y: str = 'b') -> None"
        assert made.__eq__.__qualname__ == "A.__eq__"
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
            made(1).x = 2


def test_a_module_of_functions_is_run_at_the_first_call(
    package: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes a function of it has one; what it has not is missed then."""
    monkeypatch.setattr(client_library, "_CALLED", frozenset(("parted.one",)))
    package(
        __init__="from .two import twice\n",
        one="import parted.three\ndef add(a, b): return a + b\n",
        two="from .one import add, other\ndef twice(a): return add(a, b=a)\n",
        three="",
    )
    twice = client_library.sparingly(lambda: import_module("parted").twice)
    assert loaded() == {"one", "two"}
    assert twice(2) == 4
    assert loaded() == {"one", "two", "three"}
    with pytest.raises(AttributeError, match="other"):
        sys.modules["parted.two"].other()


def test_a_model_is_built_without_the_librarys_own_agent() -> None:
    """Nor with the other way of OpenAI's to ask: that is another tenth of a second. Nor are its
    types needed to tell that an answer has no searches."""
    code = (
        "import sys; from tacit.agent import models;"
        "made = models.build(models.ModelChoice('openai:m', 'http://127.0.0.1:9/v1'));"
        "from pydantic_ai.models.openai import _web_search_requests as count;"
        "known = [*sys.modules]; assert count(made) == 0 == count.__wrapped__(made);"
        "print(made.model_id, *known)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name, *modules = ran.stdout.split()
    assert name == "openai:m"
    assert "pydantic_ai.direct" in modules
    left_out = {
        "pydantic_ai._agent_graph", "openai.resources.responses", "openai.types.graders", "griffe",
        "openai.types.responses.response",
    }  # fmt: skip
    assert not left_out.intersection(modules)
