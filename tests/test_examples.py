"""The examples are programs that run, and that use what is public alone."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
import tacit.testing

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PAGE = Path(__file__).parent.parent / "docs" / "python.md"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, home: Path) -> None:
    """Each example runs in an empty home and prints something."""
    if "review" in path.stem:
        pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_uses_public_names_only(path: Path) -> None:
    """Nothing is imported from below `tacit` but the test kit, and no private name."""
    public = {"tacit": tacit.__all__, "tacit.testing": tacit.testing.__all__}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tacit"):
            assert {alias.name for alias in node.names} <= set(public[node.module or ""])


def test_each_public_name_is_there_and_on_the_page() -> None:
    """What `import tacit` offers can be loaded, and docs/python.md names it."""
    page = PAGE.read_text(encoding="utf-8")
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
        assert f"`{name}" in page, name
