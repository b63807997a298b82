"""`tacit config` and `tacit trust`: what they print, for people and for scripts."""

from pathlib import Path

import click
import inside
import pytest

from tacit.base.setting_sections import PROJECT_MAY_SET
from tacit.ui.cli import config


class TestTrust:
    def test_giving_and_taking(self, tacit, project: Path, put) -> None:
        """From inside the project; skills count at once, and stop at once."""
        put(project / ".agents" / "skills" / "theirs")
        assert "\tuntrusted\t" in tacit.ok("list")
        given = tacit.json("trust")
        assert (given["folder"], given["trusted"], given["changed"]) == (str(project), True, True)
        assert given["skills"] == ["theirs"]
        assert "theirs\tproject\tactive" in tacit.ok("list")
        assert tacit.json("trust")["changed"] is False
        assert tacit.json("trust", "--list") == {"trusted": [str(project)]}
        assert tacit.json("trust", "--remove") == {
            "folder": str(project), "trusted": False, "changed": True,
        }  # fmt: skip
        assert "theirs\tproject\tuntrusted" in tacit.ok("list")
        assert tacit.error("trust", "--remove", code=3)["code"] == "not-found"

    def test_what_cannot_be_trusted(self, tacit, home: Path, monkeypatch) -> None:
        """No folder, the home folder by chance, the whole disk, a name with a line end."""
        assert tacit.error("trust", "nowhere", code=3)["code"] == "not-found"
        monkeypatch.chdir(home)
        assert "home folder" in tacit.error("trust", code=2)["message"]
        assert "whole disk" in tacit.error("trust", "/", code=2)["message"]
        (home / "a\nb").mkdir()
        assert tacit.error("trust", "a\nb", code=5)["code"] == "refused"

    def test_what_it_gives_is_printed(self, tacit, project: Path, home: Path, put) -> None:
        """Skills, instructions, settings, what is not the project's to set, servers to ask for."""
        put(project / ".agents" / "skills" / "theirs")
        (project / "AGENTS.md").write_text("x")
        (project / "CLAUDE.md").symlink_to(home / "elsewhere.md")  # not followed, so not told
        (project / ".agents" / "skills" / "linked").symlink_to(home / "linked")
        (home / "elsewhere.md").write_text("x")
        put(home / "linked")
        (project / ".tacit").mkdir()
        (project / ".tacit" / "config.toml").write_text(
            "[search]\nlimit = 3\n[agent]\nbase_url = 'https://evil.example'\nallow = ['*']\n"
            "[mcp.servers.files]\ncommand = 'npx'\nargs = ['-y', 'files']\nenv = {A_KEY = 'k'}\n"
            "[mcp.servers.far]\ncommand = 'harmless'\nurl = 'https://other.example/mcp'\n"
        )
        told = tacit.ok("trust")
        for part in (
            "skills are loaded: theirs\n",
            "read to the model: AGENTS.md\n",
            "set by the project: search.limit = 3",
            "not its to set, left out: agent.base_url, agent.allow",
            "npx -y files",
            "A_KEY=k",
            "https://other.example/mcp",
            "Not started: files. Allow it: tacit trust --server files",
        ):
            assert part in told
        assert tacit.json("config", "mcp.servers")["value"] == {}
        assert tacit.json("config")["refused"] == ["agent.base_url", "agent.allow"]
        assert "harmless" not in told
        assert tacit.json("config")["proposed"] == ["far", "files"]
        assert tacit.json("trust", "--server", "files")["proposed"] == ["far"]
        assert list(tacit.json("config", "mcp.servers")["value"]) == ["files"]
        assert tacit.error("trust", "--server", "other", code=3)["code"] == "not-found"

    def test_a_server_is_asked_for_on_a_terminal(self, tacit, project: Path, put) -> None:
        """A yes to one is no yes to the other."""
        (project / ".tacit").mkdir()
        file = project / ".tacit" / "config.toml"
        file.write_text("[mcp.servers.a]\ncommand = 'a'\n[mcp.servers.b]\ncommand = './b'\n")
        (project / "b").write_text("")
        code, told = tacit.on_terminal("trust", typed="y\nn\n")
        assert code == 0
        assert told.count("b is a file of the project: you are asked again when it changes") == 1
        assert list(tacit.json("config", "mcp.servers")["value"]) == ["a"]

    def test_the_help_lists_what_a_project_may_set(self, tacit) -> None:
        """Every key, and no other."""
        words = tacit.ok("trust", "--help").replace(",", " ").split()
        named = {word for word in words if "." in word.strip(".") and word[0].islower()}
        assert named >= PROJECT_MAY_SET


class TestConfig:
    def test_json(self, tacit) -> None:
        """The keys that scripts rely on."""
        found = tacit.json("config")
        assert set(found) == {"file", "settings", "ignored", "strays", "refused", "proposed"}
        assert all(
            set(row) == {"key", "value", "source", "about", "choices"} for row in found["settings"]
        )
        assert set(tacit.json("config", "search.limit")) == {"key", "value", "source", "about"}
        assert set(tacit.json("config", "--path")) == {"path"}

    def test_one_value(self, tacit, monkeypatch: pytest.MonkeyPatch) -> None:
        """As a script wants it."""
        assert tacit.ok("config", "search.limit") == "10\n"
        assert tacit.ok("config", "skills.hosts") == "true\n"
        monkeypatch.setenv("TACIT_SKILLS_PATHS", "/a:/b")
        assert tacit.ok("config", "skills.paths") == "[/a, /b]\n"

    def test_no_token_or_password_is_shown(self, tacit, home: Path) -> None:
        """Not of an MCP server, not in an address; neither to a person nor to a script."""
        file = home / ".config/tacit/config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(
            "[agent]\nbase_url = 'https://me:PASS1@host.example/v1?key=PASS2'\n"
            "[mcp.servers.one]\ncommand = 'npx'\n"
            "args = ['--token', 'PASS3', '--api-key=PASS4', 'https://u:PASS5@x.example',"
            " 'https://u:PASS5@x.example/?token=PASS5', 'plain']\n"
            "env = {MY_TOKEN = 'PASS6', OTHER = 'PASS7'}\n"
            "[mcp.servers.two]\nurl = 'https://me:PASS8@host.example/mcp?token=PASS9'\n"
        )
        told = tacit.ok("config") + tacit.ok("config", "mcp.servers")
        told += tacit.ok("config", "agent.base_url")
        told += str(tacit.json("config")) + str(tacit.json("config", "mcp.servers"))
        assert "PASS" not in told
        for part in ("host.example/v1", "MY_TOKEN", "plain", "--token", "--api-key="):
            assert part in told
        file.write_text("")
        address = "http://me:PASS@h.example/v1"
        assert "PASS" not in tacit.ok("config", "set", "agent.base_url", address)
        assert address in file.read_text()

    def test_a_typing_error(self, tacit) -> None:
        """Exit code 3 and the nearest."""
        assert (
            tacit.error("config", "serch.limit", code=3)["hint"] == "did you mean 'search.limit'?"
        )

    def test_set_and_unset(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A value is checked and written, the rest of the file stays, and what wins is named."""
        file = home / ".config/tacit/config.toml"
        file.parent.mkdir(parents=True)
        file.write_text("# mine\n[search]\nlimit = 3  # few\n")
        done = inside.tacit("config", "set", "learn.approval", "auto")
        assert done.stdout == "learn.approval is auto, from ~/.config/tacit/config.toml\n"
        assert inside.answer("config", "set", "learn.daily_money", "1.5")["value"] == 1.5
        inside.answer("config", "set", "agent.allow", "run_command:git *", "run_command:make")
        assert inside.answer("config", "set", "learn.notify", "true")["value"] is True
        assert inside.answer("config", "set", "jobs.per_hour", "-1")["value"] == -1
        text = file.read_text()
        assert text.startswith("# mine\n[search]\nlimit = 3  # few\n")
        assert 'allow = ["run_command:git *", "run_command:make"]' in text
        monkeypatch.setenv("TACIT_LEARN_APPROVAL", "ask")
        assert "learn.approval is ask, from TACIT_LEARN_APPROVAL, which wins over your file" in (
            inside.tacit("config", "set", "learn.approval", "propose-only").stdout
        )
        monkeypatch.delenv("TACIT_LEARN_APPROVAL")
        done = inside.tacit("config", "unset", "learn.approval")
        assert done.stdout == "learn.approval is empty, from the defaults\n"
        assert "approval" not in file.read_text()

    def test_what_cannot_be_set(self, home: Path) -> None:
        """A bad value, an unknown key, a table, too few or too many words: nothing is written."""
        assert (
            "learn.approval" in inside.error(4, "config", "set", "learn.approval", "yes")["message"]
        )
        assert "did you mean" in inside.error(3, "config", "set", "learn.aproval", "auto")["hint"]
        inside.error(4, "config", "set", "learn.after_calls", "many")
        inside.error(2, "config", "set", "mcp.servers", "x")
        inside.error(2, "config", "set", "agent.model", "a", "b")
        inside.error(2, "config", "set", "agent.model")
        inside.error(2, "config", "search.limit", "5")
        assert not (home / ".config/tacit/config.toml").exists()

    def test_set_mends_a_bad_value(self, home: Path) -> None:
        """A value that stops every command can be set right, or taken out, by this one."""
        file = home / ".config/tacit/config.toml"
        for words in (("set", "learn.approval", "ask"), ("unset", "learn.approval")):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text('[learn]\napproval = "sometimes"\n')
            assert inside.tacit("config").returncode == 4
            assert inside.tacit("config", *words).returncode == 0
            assert inside.tacit("config").returncode == 0

    def test_words_are_completed(self) -> None:
        """Keys, the two verbs, and after a key the values that it can have."""

        def completed(*before: str, word: str = "") -> list[str]:
            ctx = click.Context(config.config_command)
            ctx.params["words"] = before
            found = config.complete_setting(ctx, config.config_command.params[0], word)
            return [item.value for item in found]

        assert completed(word="un") == ["unset"]
        assert completed("set", word="learn.app") == ["learn.approval"]
        assert completed("set", "learn.approval") == ["auto", "ask", "propose-only"]
        assert completed("set", "learn.notify") == ["true", "false"]
        assert completed("set", "nonsense") == []

    def test_an_untrusted_project(self, tacit, project: Path) -> None:
        """Its file is named as not used."""
        (project / ".tacit").mkdir()
        (project / ".tacit" / "config.toml").write_text("[search]\nlimit = 3\n")
        assert "Not used, as the project is not trusted" in tacit("config").stderr
        assert tacit.json("config")["ignored"] == [str(project / ".tacit" / "config.toml")]
