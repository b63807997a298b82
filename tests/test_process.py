"""What the tests share a process with: nothing that one of them remembers reaches the next."""

import ast
import os
import re
from pathlib import Path

from tacit.base.event_bus import bus

SOURCE = Path(__file__).parents[1] / "src"


# As the formatter writes it; to parse all modules takes seconds.
_MAY_REMEMBER = re.compile(
    r"^(?: +global |\S.*= (?:\[\]|\{\}|(?:list|dict|set|deque|defaultdict)\())", re.MULTILINE
)


def _memory(tree: ast.Module) -> set[str]:
    """Names of a module that a function binds anew, or that begin as an empty container."""
    found = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        else:
            continue
        if _is_empty(value):
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _is_empty(value: ast.expr | None) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id="list" | "dict" | "set" | "deque" | "defaultdict")):
            return True
    return False


def test_all_that_a_module_remembers_is_forgotten_after_a_test(
    memory: dict[str, set[str]],
) -> None:
    """A module that begins to remember something has to be named in `conftest.py`."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if _MAY_REMEMBER.search(text) and (names := _memory(ast.parse(text))):
            found[".".join(path.relative_to(SOURCE).with_suffix("").parts)] = names
    assert found == memory


def test_a_test_begins_with_a_new_bus() -> None:
    """Nobody listens and nothing has failed, whatever ran before."""
    assert not bus.errors
    assert not bus._listeners
    bus.subscribe(object, lambda event: 1 // 0)
    bus.publish("left behind")
    os.environ["TACIT_LEFT_BEHIND"] = "1"


def test_and_so_does_the_next() -> None:
    """The same, in whichever order the two run."""
    assert not bus.errors
    assert not bus._listeners
    assert "TACIT_LEFT_BEHIND" not in os.environ
    bus.subscribe(object, lambda event: 1 // 0)
    bus.publish("left behind")
