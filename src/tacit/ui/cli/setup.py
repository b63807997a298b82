"""`tacit setup`: choose a model, test it with one small request, and keep it in the settings."""

import sys

import click
import msgspec

from tacit.agent import models
from tacit.base import settings
from tacit.base.config_file import put
from tacit.base.errors import BadConfig, TacitError, Usage
from tacit.base.paths import shorten
from tacit.base.terminal import fit, one_line, plain
from tacit.ui.cli import output, trial

_EPILOG = """\b
Examples:
  tacit setup                                       asks, tests, writes
  tacit setup --check                               tests what is set, writes nothing
  tacit setup --model anthropic:claude-sonnet-4-5
  tacit setup --base-url http://127.0.0.1:11434/v1 --model qwen3

Keys are never written: they stay in the environment.
"""

FAILED = 11
_MOST_SERVED = 5


class Report(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    model: str
    base_url: str
    works: bool
    answer: str = ""
    seconds: float = 0.0
    why: str = ""
    hint: str = ""
    written: str = ""


@click.command(epilog=_EPILOG)
@click.option("--model", default="", help="provider:model; asks for nothing.")
@click.option("--base-url", default="", help="The address of a server of your own.")
@click.option("--check", is_flag=True, help="Only test what is set.")
@output.json_option
def command(model: str, base_url: str, check: bool, as_json: bool) -> int:
    """Choose a model, and test it.

    Looks for keys in the environment and for servers on this machine, sends one tiny request, and
    writes the choice to your config.toml. Everything else in that file stays as it is.
    """
    if check or model or base_url:
        return _directly(model, base_url, write=not check, as_json=as_json)
    if as_json or not sys.stdin.isatty():
        raise Usage("nobody is there to ask", "give --model (and --base-url), or --check")
    choice = _asked()
    return _try_and_keep(choice)


def _directly(model: str, base_url: str, *, write: bool, as_json: bool) -> int:
    set_now = settings.load().settings.agent
    # A model that is named leaves the address behind that was set for another.
    url = base_url or (set_now.base_url if not model else "")
    choice = models.find(model or ("" if base_url else set_now.model), url)
    if choice is None:
        raise _nothing(url)
    outcome = trial.try_model(choice)
    written = _write(choice) if write and outcome.works else ""
    if as_json:
        told = msgspec.structs.asdict(outcome)
        output.write_json(Report(choice.name, choice.base_url, written=written, **told))
    else:
        _tell(choice, outcome)
        if written:
            _tell_written(written, choice)
    return 0 if outcome.works else FAILED


def _asked() -> models.Choice:
    """Let the user choose among what was found, or name something else."""
    found = trial.found()
    if found:
        click.echo("Found:")
        for number, choice in enumerate(found, start=1):
            at = f" at {choice.base_url}" if choice.base_url else ""
            click.echo(f"  {number}  {plain(choice.name)}{at}  ({choice.why})")
        click.echo(f"  {len(found) + 1}  another model or another server")
        chosen = click.prompt("Which one", type=click.IntRange(1, len(found) + 1), default=1)
        if chosen <= len(found):
            return found[chosen - 1]
    else:
        click.echo("No key was found in the environment, and no server answers on this machine.")
        click.echo("To use a provider, set its key in your shell's profile, for example:")
        for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
            click.echo(f"  export {variable}=…")
        click.echo("For a model on this machine, start Ollama, LM Studio, llama.cpp or vLLM.")
    return _another()


def _another() -> models.Choice:
    click.echo("An OpenAI-compatible server has an address; a provider has none.")
    url = click.prompt("Address, or nothing", default="", show_default=False).strip()
    served = models.models_of(url) if url else []
    if served:
        names = ", ".join(plain(name) for name in served[:_MOST_SERVED])
        more = f" and {len(served) - _MOST_SERVED} more" if len(served) > _MOST_SERVED else ""
        click.echo(f"It offers: {names}{more}")
    name = click.prompt("Model (provider:model)", default=served[0] if served else None).strip()
    choice = models.find(name, url)
    assert choice is not None
    return choice


def _try_and_keep(choice: models.Choice) -> int:
    click.echo(f"Asking {plain(choice.name)} for one word …")
    outcome = trial.try_model(choice)
    _tell(choice, outcome)
    if not outcome.works and not click.confirm("Write it to the settings all the same?"):
        return FAILED
    _tell_written(_write(choice), choice)
    return 0 if outcome.works else FAILED


def _tell(choice: models.Choice, outcome: trial.Outcome) -> None:
    if outcome.works:
        answer = fit(one_line(outcome.answer), 60) or "(nothing)"
        click.echo(f"{plain(choice.name)} answered in {outcome.seconds:.1f} s: {answer}")
        return
    mark = click.style("failed:", fg="red")
    click.echo(f"{mark} {plain(choice.name)}: {one_line(outcome.why)}", err=True)
    if outcome.hint:
        click.echo(f"        {one_line(outcome.hint)}", err=True)


def _write(choice: models.Choice) -> str:
    return put({"agent.model": choice.name, "agent.base_url": choice.base_url or None})


def _tell_written(path: str, choice: models.Choice) -> None:
    click.echo(f"Written to {shorten(path)}. Start: tacit chat")
    try:
        loaded = settings.load()
    except TacitError:
        return
    for key, wanted in (("agent.model", choice.name), ("agent.base_url", choice.base_url)):
        source = loaded.sources.get(key, "")
        if source not in ("", path) and getattr(loaded.settings.agent, key[6:]) != wanted:
            click.echo(f"note: {key} is overruled here by {shorten(source)}", err=True)


def _nothing(url: str) -> BadConfig:
    if url:
        return BadConfig(f"no model is offered at {url}", "start the server, or name one: --model")
    return BadConfig(
        "no model: no key is set, and no local server answers",
        "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start a local server",
    )
