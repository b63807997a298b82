"""What a command is for, in the many shapes in which agents type one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.traces.command_line import joined_commands, simple_commands
from tacit.traces.command_purposes import manner, plain_form, purpose, purposes, work_class

TABLE = {
    "nl -ba src/config.rs": "",
    "go version": "",
    "/d/posh/bin/posh.exe print primary": "posh print",
    "python3 build.py": "build.py",
    "VERSION=1.2.3 python3 build.py": "build.py",
    "read -r VERSION < VERSION; export VERSION; python3 build.py": "build.py",
    "V=$(cat VERSION) W=`date` python3.11 -u scripts/build.py --fast": "build.py",
    "python -m pytest -q tests": "pytest",
    "python -m pip install -r requirements.txt": "pip install",
    "python manage.py migrate": "manage.py migrate",
    "python - <<'EOF'\nimport os\nos.remove('x')\nEOF": "",
    "python -c 'print(1)'": "",
    "cat > a.sh <<EOF\nmake all\nEOF\nsh a.sh": "a.sh",
    "cat <<EOF > x\ngit push\nEOF": "",
    'git commit -m "fix; then && git push"': "git commit",
    "git -C /work/app push origin main": "git push",
    "git status && git diff": "",
    "git add -A && git commit -m x": "git commit",
    "npm run build -- --watch": "npm run build",
    "npm --prefix web run test:unit": "npm run test:unit",
    "(cd app && npm test) 2>&1 | tail -20": "npm test",
    "npx -y prettier --write .": "prettier",
    "yarn build > out.txt 2>&1": "yarn build",
    "uv run --with httpx pytest -x": "pytest",
    "uv sync": "uv sync",
    "poetry run pytest": "pytest",
    "bundle exec rspec": "rspec",
    "sudo -u deploy systemctl restart nginx": "systemctl restart",
    "timeout -k 5 30 make -j4 check": "make check",
    "env -u HOME FOO=1 cargo test --all": "cargo test",
    "bash -lc 'npm ci && npm run lint'": "npm run lint",
    "./gradlew build": "gradlew build",
    "./scripts/deploy.sh staging": "deploy.sh",
    "docker compose -f dev.yml up -d": "docker compose up",
    "docker-compose up": "docker compose up",
    "docker ps": "",
    "Get-Content a.txt | Select-Object -First 3": "",
    "Push-Location board; go test ./...": "go test",
    "$h='x'; Test-Path a": "",
    "Invoke-Pester -Path tests": "Invoke-Pester",
    "kubectl -n prod apply -f x.yml": "kubectl apply",
    "gh pr create --fill": "gh pr create",
    "for f in *.py; do ruff check $f; done": "ruff check",
    "if [ -f Makefile ]; then make build; fi": "make build",
    "while true; do date; done": "",
    "ls -la; cat README.md | head": "",
    "rm -rf dist && mkdir dist": "",
    "terraform plan \\\n  -out=x # see": "terraform plan",
    "diff <(ls a) <(ls b)": "",
    "node --version": "",
    "$TOOL build": "",
    'echo "never closed': "",
    "# only a comment": "",
    "": "",
    "a" * 200: "",
}


@pytest.mark.parametrize(("command", "wanted"), TABLE.items())
def test_purpose(command: str, wanted: str) -> None:
    """Program and task, whatever stands around them; nothing where it only looks."""
    assert purpose(command) == wanted


@given(st.text(alphabet="ab./-=$(){}<>|&;\"'`\\\n #E!é", max_size=80))
def test_any_text_has_a_harmless_purpose(text: str) -> None:
    """No text raises, and a purpose is a few plain words that stay on one line."""
    found = purpose(text)
    assert len(found) < 200
    assert not set(found) & set("`\"'\n\\$<>|;&#")
    assert all(isinstance(word, str) for words in simple_commands(text) for word in words)


def test_what_joins_commands_is_kept() -> None:
    """Pipes and lists are told apart, also around brackets."""
    found = joined_commands("(cd a && npm test) 2>&1 | tail -3; echo done")
    assert [(command.words[0], command.joined) for command in found] == [
        ("cd", "&&"), ("npm", "|"), ("tail", ";"), ("echo", ""),
    ]  # fmt: skip


def test_all_purposes_of_a_line() -> None:
    """Each once, in order; a program that runs another keeps the name of both."""
    assert purposes("npm run fmt && npm test | tail && npm test") == ["npm run fmt", "npm test"]
    assert purposes("wrap bun run test") == ["wrap bun run test"]
    assert purposes("./bin/test -x") == ["bin/test"]


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("pytest", "test"), ("bin/test", "test"), ("npm run lint:fix", "lint"), ("tsc", "types"),
        ("mise run fmt", "format"), ("go build", "build"), ("make check", "build"),
        ("npm run check", "check"), ("git push", None), ("latest", None),
    ],
)  # fmt: skip
def test_classes_of_work(name: str, right: str | None) -> None:
    """The same end under different programs; words inside other words do not count."""
    assert work_class(name) == right


@pytest.mark.parametrize(
    ("command", "right"),
    [
        ('git commit -m "Fix the thing"', "git commit -m <message>"),
        ("git checkout -b feat/x", "git checkout -b <branch>"),
        ("git tag v1.2.3", "git tag <version>"),
        ("git show 1a2b3c4d", "git show <id>"),
        ("python -m pylint /p/app/src", "python -m pylint src"),
    ],
)
def test_what_differs_each_time_is_a_variable(command: str, right: str) -> None:
    """Messages, branches, versions and ids; files as seen from the project."""
    (found,) = joined_commands(command)
    assert plain_form(found.words, "/p/app") == right


def test_the_manner_of_a_call() -> None:
    """What is set before it, what runs it, where it lies, its options; nothing of its values."""

    def how(line: str) -> tuple[str, ...]:
        parts = joined_commands(line)
        return manner(parts, len(parts) - 1, "/p")

    assert how("source /p/.env && A=1 uv run --with x pytest -q") == (
        "source .env", "A=", "uv run", "-q",
    )  # fmt: skip
    assert how("export KEY=secret; mise x node -- npm test") == ("export KEY=", "mise exec")
    assert how("timeout 9 .venv/bin/pytest --maxfail 1") == (".venv/bin/", "--maxfail")
    assert how("python -m pytest") == ("python -m", "-m", "-m pytest")
    assert how("gh pr create --label docs --title 'a b'") == ("--label", "--label docs", "--title")
    assert "<<" in how('git commit -m "$(cat <<EOF\nx\nEOF\n)"')
    assert plain_form(("API_TOKEN=abc", "DEBUG=1", "x")) == "API_TOKEN=<value> DEBUG=1 x"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("docker compose exec -T web pytest -q", ("docker compose exec pytest", "test")),
        ("docker compose -f x.yml run --rm api npm test", ("docker compose run npm test", "test")),
        ("docker exec -it app sh -c 'cd /app && php artisan test'",
         ("docker exec app artisan test", "test")),
        ("docker exec db psql -c 'select 1'", ("docker exec db", None)),
        ("ssh box 'cd app && cargo test'", ("ssh box cargo test", "test")),
        ("kubectl exec -n a pod -- pytest", ("kubectl exec pytest", "test")),
        ('powershell.exe -NoProfile -Command "npm run build"', ("npm run build", "build")),
        ("cmd /c npm test", ("npm test", "test")),
        ("nix develop -c cargo test", ("nix develop cargo test", "test")),
        ("bash -n a.sh", ("bash -n", "check")),
        ("php -l a.php", ("php -l", "check")),
        ("python -m py_compile a.py", ("py_compile", "check")),
    ],
)  # fmt: skip
def test_what_is_handed_on_and_what_is_only_read(
    command: str, expected: tuple[str, str | None]
) -> None:
    """A check is a check wherever it runs; what else is done elsewhere is told by where."""
    assert (purpose(command), work_class(purpose(command))) == expected
