"""The command line as a whole."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import click
import pytest

from tacit import __version__
from tacit.base.atomic_files import TemporaryFolder
from tacit.ui.cli import app
from tacit.ui.cli import command as declared_commands
from tacit.ui.cli.app import commands
from tacit.ui.cli.command import leaving_in_order

HEAVY = {
    "rich", "msgspec", "tantivy", "ahocorasick_rs", "yaml", "asyncio", "filelock", "platformdirs",
    "pydantic",
}  # fmt: skip


class TestStart:
    def imported(self, *command: str) -> set[str]:
        """The top-level modules that a command line loads."""
        run = [sys.executable, "-X", "importtime", *command]
        out = subprocess.run(run, capture_output=True, text=True, check=False).stderr
        return {line.rpartition("|")[2].strip().split(".")[0] for line in out.split("\n")}

    @pytest.mark.parametrize("option", ["--version", "--help", "-V", "-h"])
    def test_version_and_help_load_nothing_heavy(self, option: str) -> None:
        """Neither rich nor structs nor YAML nor the search engine."""
        loaded = self.imported("-m", "tacit", option)
        assert not HEAVY & loaded
        assert "tacit" in loaded
        if option in ("--version", "-V"):
            assert not {"click", "re", "typing", "pathlib"} & (loaded - self.imported("-c", ""))

    def test_importing_the_package_defines_names_only(self) -> None:
        """No module of its own below it, and none that is heavy."""
        code = "import sys, tacit; print(*[m for m in sys.modules if m.startswith('tacit.')])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.split() == []
        assert not (HEAVY | {"click", "pathlib"}) & (
            self.imported("-c", "import tacit") - self.imported("-c", "")
        )

    def test_every_public_name_is_there(self) -> None:
        """`tacit.X` works for each, and `dir` knows them."""
        import tacit

        for name in tacit.__all__:
            assert getattr(tacit, name) is not None
        assert set(tacit.__all__) <= set(dir(tacit))
        with pytest.raises(AttributeError, match="nonsense"):
            _ = tacit.nonsense  # type: ignore[attr-defined]

    def test_a_warm_list_loads_nothing_heavy(self, skills: Path) -> None:
        """The everyday command starts at once."""
        program = "import sys; sys.argv[1:] = ['list']; from tacit.__main__ import main; main()"
        self.imported("-c", program)
        time.sleep(2.1)  # what was written just before the look is read again
        self.imported("-c", program)
        loaded = self.imported("-c", program) - self.imported("-c", "")
        assert not loaded & (HEAVY | {"click", "pathlib", "json", "collections", "re", "typing"})

    @pytest.mark.parametrize(
        "line", ["inbox", "jobs", "config", "search skills", "show using-tacit"]
    )
    def test_everyday_commands_load_what_they_need(self, line: str) -> None:
        """No YAML, no TOML, nothing that starts programs or compares texts."""
        self.imported("-m", "tacit", *line.split())  # fills the caches
        loaded = self.imported("-m", "tacit", *line.split())
        assert "msgspec" in loaded
        assert not loaded & {"yaml", "subprocess", "tomllib", "difflib", "email", "socket", "rich"}

    def test_version(self, tacit) -> None:
        """One line."""
        for option in ("--version", "-V"):  # before the command line is loaded, and after
            assert (
                tacit.ok(option, env={**os.environ}) == tacit.ok(option) == f"tacit {__version__}\n"
            )


class TestHelp:
    def test_the_program(self, tacit) -> None:
        """Every command is listed with its line, and there are examples."""
        text = tacit.ok("--help")
        for name, known in commands().items():
            assert f"  {name}" in text
            assert known.about.split()[0] in text
        assert "Examples:" in text

    @pytest.mark.parametrize("name", commands())
    def test_each_command(self, tacit, name: str) -> None:
        """Examples that name the command, and --json."""
        text = tacit.ok(name, "--help")
        assert text == tacit.ok(name, "-h")
        examples = text.split("Examples:")[1]
        assert f"tacit {name}" in examples
        assert "--json" in text

    def test_each_word_of_a_group(self) -> None:
        """The commands below a command have examples that name them, too."""
        for name in commands():
            group = app.tacit.get_command(click.Context(app.tacit), name)
            for word, below in getattr(group, "commands", {}).items():
                assert f"tacit {name} {word}" in (below.epilog or ""), f"{name} {word}"

    def test_what_is_read_is_what_is_declared(self) -> None:
        """The help, which reads sources, knows just the commands that importing them gives."""
        for noun in declared_commands.NOUNS:
            import_module(f"tacit.ui.cli.{noun}")
        declared = {
            name: declaration for name, (declaration, _) in declared_commands.registered.items()
        }
        assert {found.name: found for found in declared_commands.declarations()} == declared
        assert set(app._ORDER) <= set(commands())
        assert {found.section for found in declared.values()} == set(declared_commands.SECTIONS)

    def test_every_module_with_commands_is_a_noun(self) -> None:
        """A module that declares a command is among those that are read."""
        folder = Path(declared_commands.__file__).parent
        declaring = [
            path.stem
            for path in folder.glob("*.py")
            if path.stem != "command" and "ui.cli.command import" in path.read_text()
        ]
        assert sorted({*declaring} - {"app"}) == sorted(declared_commands.NOUNS)

    @pytest.mark.parametrize(
        "words",
        [("curate", "status"), ("daemon", "status"), ("memory", "list"), ("schedule", "list")],
    )
    def test_json_before_the_word_of_a_group(
        self, tacit, home: Path, words: tuple[str, str]
    ) -> None:
        """`tacit memory --json list` is `tacit memory list --json`."""
        group, word = words
        said = json.loads(tacit.ok(group, "--json", word))
        assert said.keys() == tacit.json(group, word).keys()

    def test_without_arguments(self, tacit) -> None:
        """The help, and the exit code of a wrong call."""
        done = tacit(env={**os.environ})
        assert done.returncode == 2
        assert "Usage: tacit" in done.stdout


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["serach", "x"], "did you mean search"),
            (["docter"], "did you mean doctor"),
            (["xyzzy"], "tacit --help"),
            (["list", "--jsn"], "--json"),
            (["list", "--scope", "nowhere"], "'project', 'user', 'extra', 'bundled'"),
            (["search"], "WORDS"),
            (["search", " "], "nothing to search for"),
            (["search", "-n", "0", "x"], "-n"),
            (["show"], "NAME"),
            (["completion", "tcsh"], "bash"),
            (["catalogue", "--budget", "-1"], "budget"),
        ],
    )
    def test_a_wrong_call(self, tacit, arguments: list[str], says: str) -> None:
        """Exit code 2, on standard error, with what was meant."""
        done = tacit(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr
        assert "Traceback" not in done.stderr
        assert says in " ".join(tacit.error(*arguments, code=2).values())
        assert tacit.error(*arguments, code=2)["code"] == "usage"

    def test_a_skill_that_is_not_there(self, tacit, skills: Path) -> None:
        """Exit code 3, and the nearest names."""
        for command in ("show", "lint"):
            assert tacit.error(command, "git-rebas", code=3) == {
                "code": "not-found",
                "message": "there is no skill 'git-rebas'",
                "hint": "did you mean git-rebase?",
            }

    def test_a_bad_configuration(self, tacit, home: Path) -> None:
        """Exit code 4 from every command that needs the settings; the file and line are named."""
        file = home / ".config" / "tacit" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text("[search]\nlimt = 3\n")
        for command in (["list"], ["search", "x"], ["config"], ["catalogue"], ["show", "x"]):
            error = tacit.error(*command, code=4)
            assert error["code"] == "bad-config"
            assert str(file) in error["message"]
            assert error["hint"] == "did you mean 'search.limit'?"

    def test_a_deleted_working_directory(self, tacit, home: Path) -> None:
        """A sentence, not a fault of ours."""
        gone = home / "gone"
        for command in ("list", "list --json", "config", "search x"):
            gone.mkdir(exist_ok=True)
            shell = f"cd {gone} && rmdir {gone} && {tacit.program} {command}"
            done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
            assert done.returncode == 3
            assert "working directory does not exist" in done.stderr

    @pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["--help"]])
    def test_a_full_disk(self, tacit, skills: Path, arguments: list[str]) -> None:
        """Output that cannot be written is an error with a message."""
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [tacit.program, *arguments], stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 9
        assert "No space left" in done.stderr
        assert "Traceback" not in done.stderr

    def test_data_that_cannot_be_written(self, tacit, home: Path, project: Path) -> None:
        """Exit code 9, and the place is named."""
        (home / "file").write_text("")
        done = tacit("trust", env={**os.environ, "TACIT_HOME": str(home / "file")})
        assert done.returncode == 9
        assert str(home / "file") in done.stderr

    def test_hostile_names_in_errors(self, tacit) -> None:
        """What a message repeats cannot steer the terminal."""
        code, text = tacit.on_terminal("show", "\x1b]0;owned\x07x", NO_COLOR="1")
        assert code == 3
        assert "\x1b" not in text
        assert "\x07" not in text

    @pytest.mark.parametrize("name", commands())
    def test_words_that_are_not_utf_8(
        self, name: str, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Every command refuses such a word by name, before it does anything."""
        assert app.run([name, "caf\udce9 bar"]) == 2
        assert "'caf\\xe9 bar' is not UTF-8" in capsys.readouterr().err

    def test_a_fault_of_ours_is_said_to_be_one(self) -> None:
        """Exit code 70 and how to report it; with TACIT_DEBUG the whole trace."""
        code = """
import sys
from tacit.ui.cli import app
import tacit.skills.library as library
def fail(*_): raise ZeroDivisionError("oops")
library.Library.__init__ = fail
sys.exit(app.run(["list", "--json"]))
"""
        run = [sys.executable, "-c", code]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        assert done.returncode == 70
        assert json.loads(done.stderr)["error"]["code"] == "internal"
        debug = {**os.environ, "TACIT_DEBUG": "1"}
        done = subprocess.run(run, capture_output=True, text=True, check=False, env=debug)
        assert "Traceback" in done.stderr


class TestPipes:
    @pytest.mark.parametrize("arguments", ["list", "list --json", "lint", "show long", "--help"])
    def test_a_reader_that_goes_away(self, tacit, skills: Path, put, arguments: str) -> None:
        """As `head` does: silent, and a success."""
        for number in range(300):
            put(skills / f"s{number}", description="x" * 900, text=None)
        put(skills / "long", body="line\n" * 30_000)
        shell = f"{tacit.program} {arguments} | head -1; echo ${{PIPESTATUS[0]}} >&2"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
        assert done.stderr in ("0\n", "1\n" if arguments == "lint" else "0\n")
        assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_told_to_end_puts_away_what_it_began(number: signal.Signals) -> None:
    """A closed terminal, and `kill`: the folder of a session goes, and then nothing is changed."""
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as left, leaving_in_order(), TemporaryFolder() as folder:
        os.kill(os.getpid(), number)
    assert left.value.code == 128 + number
    assert not os.path.exists(folder)
    assert signal.getsignal(number) == before
