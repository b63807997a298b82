"""Secrets are taken out of every text of a struct, and nothing else is changed."""

import sys
import zlib
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit.base
from tacit.base import passwords, secret_formats, secrets, told_secrets
from tacit.base.patterns import Literals, late_pattern
from tacit.testing.sample_sessions import made
from tacit.traces.redaction import MAX_KNOWN, VERSION, Known, redacted, rules
from tacit.traces.store import Store
from tacit.traces.trace import Head, Text, ToolCall, Turn

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def nothing(text: str) -> tuple[str, dict[str, int]]:
    return text, {}


def marks(text: str) -> tuple[str, dict[str, int]]:
    found = text.count("SECRET-1")
    return text.replace("SECRET-1", "[gone]"), {"one": found} if found else {}


@given(arguments=st.dictionaries(st.text(max_size=5), ANY, max_size=4), prompt=st.text())
def test_what_holds_no_secret_is_the_same(arguments: dict, prompt: str) -> None:
    """A turn without secrets comes back equal, whatever its arguments are."""
    turn = Turn(3, prompt, (Text(prompt), ToolCall("1", "X", "other", arguments)))
    assert redacted(turn, nothing) == (turn, {})


@given(path=st.lists(st.sampled_from(["key", 0]), max_size=6))
def test_a_secret_at_any_depth_is_found(path: list) -> None:
    """However deep in lists and objects, once found and once counted."""
    value: object = "has SECRET-1 in it"
    for step in path:
        value = {"key": value} if step == "key" else [value]
    turn = Turn(0, "", (ToolCall("1", "X", "other", {"a": value}),))
    made, counts = redacted(turn, marks)
    assert "SECRET-1" not in repr(made)
    assert counts == {"one": 1}


def test_a_secret_in_a_key_is_found() -> None:
    """The names in arguments are texts too."""
    turn = Turn(0, "", (ToolCall("1", "X", "other", {"SECRET-1": 1}),))
    assert "SECRET-1" not in repr(redacted(turn, marks)[0])


def test_the_name_of_a_value_may_tell_that_it_is_a_secret() -> None:
    """A rule that needs the name before the value sees it."""

    def by_name(text: str) -> tuple[str, dict[str, int]]:
        if text.startswith("password="):
            return "password=[gone]", {"named": 1}
        return text, {}

    turn = Turn(0, "", (ToolCall("1", "X", "other", {"password": "hunter22", "x": "hunter22"}),))
    made, counts = redacted(turn, by_name)
    assert made.calls[0].arguments == {"password": "[gone]", "x": "hunter22"}
    assert counts == {"named": 1}


def test_fields_to_keep_are_kept() -> None:
    """What names a session is not changed."""
    head = Head("h", "SECRET-1", title="SECRET-1")
    made, _ = redacted(head, marks, frozenset({"session"}))
    assert (made.session, made.title) == ("SECRET-1", "[gone]")


@pytest.mark.parametrize(
    "value", ["/srv/App-2/x", "~/Keys-2/x", "configuration", "20240131", "aB3!"]
)
def test_a_value_that_may_stand_by_chance_is_not_looked_for(value: str) -> None:
    """Words, numbers, paths and short values are taken out only where something tells."""

    def told(found: dict[str, str]):
        def redact(text: str) -> tuple[str, dict[str, int]]:
            if text == f"is {value}":
                found[value] = "one"
                return "is [gone]", {"one": 1}
            return text, {}

        return redact

    turn = Turn(0, f"is {value}", (Text(f"see {value}"),))
    made, counts = Known(told).redacted_turn(turn)
    assert (made.prompt, made.steps[0].text, counts) == ("is [gone]", f"see {value}", {"one": 1})


def test_only_so_many_values_are_looked_for() -> None:
    """A session full of passwords does not make the search of the rest slow without end."""
    known = Known(rules())
    values = [f"Vw9-kelp!Rq{n:03}z" for n in range(MAX_KNOWN + 20)]
    known.redacted_turn(Turn(0, "\n".join(f"password={value}" for value in values)))
    _, counts = known.redacted_turn(Turn(1, "\n".join(values)))
    assert counts == {"password": MAX_KNOWN}


_SECRET = "Vw9-kelp!Rq7z"
_SAID = (
    "all is – as far as I see – well", "the key is in the lock", "plain", f"密码: {_SECRET}",
    f"see https://ada:{_SECRET}@db.internal/x", f"curl -u ada:{_SECRET} https://x.org",
    f"x=1\npassword={_SECRET}\n", f"mysql -p{_SECRET}", "AKIA" + "QWERTZUIOPASDF7H",
    '{"token": "' + "k3J9" * 8 + '"}', "a\\nsk-ant-" + "aB3dE5" * 8,
)  # fmt: skip


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_one_look_at_a_turn_passes_over_nothing(data: st.DataObject) -> None:
    """What is taken out of a turn, short or long, is what a look at each of its texts finds."""
    said = lambda: data.draw(st.sampled_from(_SAID))  # noqa: E731
    named = {data.draw(st.sampled_from(["command", "password", "AccountKey"])): said()}
    call = ToolCall("1", "Bash", "shell", {"more": [said(), named], **named}, said(), error=said())
    long = "a few words\n" * (data.draw(st.booleans()) * 1200)
    turn = Turn(1, said(), (Text(said() + long), call, Text(said())))
    each = Known(lambda values: partial(secrets.redact, values=values))
    assert Known(rules()).redacted_turn(turn) == each.redacted_turn(turn)


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, 1])
def test_a_secret_is_taken_out_of_a_name_that_has_no_value(value: object) -> None:
    """The name of an argument is looked at whatever it is given."""
    key = "ghp_" + "aB3dE5gH7jK9" * 3
    call = ToolCall("1", "Bash", "shell", {key: value, "more": [{key: value}]})
    made, counts = Known(rules()).redacted_turn(Turn(0, "x", (call,)))
    assert key not in repr(made)
    assert set(counts) == {"github-token"}


def test_the_version_grows_with_the_rules() -> None:
    """Rules that changed have another version, or what is stored would keep what they find.

    When this fails: raise `redaction.VERSION`, and write both here.
    """
    tables = (vars(secret_formats), vars(passwords), vars(told_secrets))
    # Before its first use an expression is of another type than after it.
    kinds = ("re", late_pattern.__module__)
    patterns = [
        v.pattern
        for table in tables
        for v in table.values()
        if type(v).__module__ in kinds and not isinstance(v, Literals)
    ]
    rules = (
        secret_formats.FORMATS,
        secret_formats.COMMANDS,
        secret_formats.COMMAND_OPTIONS,
        patterns,
    )
    assert (VERSION, zlib.crc32(repr(rules).encode())) == (9, 771225325)


def test_who_only_reads_sessions_loads_no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are loaded when something is written."""
    monkeypatch.delattr(tacit.base, "secrets", raising=False)
    monkeypatch.setitem(sys.modules, "tacit.base.secrets", None)
    with Store.open() as store:
        assert store.sessions() == []
        with pytest.raises(ImportError):
            store.write(made(["hello", Text("there")]))


@pytest.mark.parametrize(
    "text",
    [
        "db.example.com:5432:shop:ann:Kx7vQ2mLw9Zr",
        "machine api.example.com login ann password Kx7vQ2mLw9Zr",
        "pw Kx7vQ2mLw9Zr\nnothing else",
    ],
)
def test_what_begins_a_short_text_is_seen_where_it_begins(text: str) -> None:
    """The name of the field that holds it does not stand before it."""
    turn = Turn(1, "go", (ToolCall("1", "Bash", "shell", {}, result=text),))
    clean, _ = Known(rules()).redacted_turn(turn)
    assert "Kx7vQ2mLw9Zr" not in str(clean)
