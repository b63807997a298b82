"""`tacit setup`: a model is chosen, tried with one small request, and written to the settings.

Which providers and servers there are is `agent/`'s table.
"""

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import click
import msgspec

from tacit.agent import models
from tacit.agent.models import ModelChoice
from tacit.base import settings
from tacit.base.config_file import set_values
from tacit.base.display import fit, one_line, plain
from tacit.base.errors import BadConfig, TacitError, Usage
from tacit.base.paths import with_tilde
from tacit.base.settings import AgentSettings, LearnSettings, Settings
from tacit.ui.cli import output
from tacit.ui.cli.command import command

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model

    from tacit.agent.model_client import RequestFailed


_CHECK_SECONDS = 60.0
_CHECK_PROMPT = "Answer with the one word: ready"


class ModelCheck(msgspec.Struct, frozen=True):
    """How the try ended."""

    works: bool
    answer: str = ""
    seconds: float = 0.0
    why: str = ""
    hint: str = ""


def check_model(choice: ModelChoice, seconds: float = _CHECK_SECONDS) -> ModelCheck:
    """Ask the model for one word. Never raises for what the provider does."""
    if missing := models.missing_key(choice):
        hint = f"in your shell's profile: export {missing}=…"
        return ModelCheck(False, why=f"{missing} is not set", hint=hint)
    try:
        built = models.build_each(choice)
    except TacitError as error:
        return ModelCheck(False, why=error.message, hint=error.hint)
    began = time.monotonic()
    try:
        answer = asyncio.run(_ask_one_word(built, seconds))
    except TimeoutError:
        why = f"no answer within {seconds:g} s"
        return ModelCheck(
            False, why=why, hint="a large local model may have to be loaded first; try again"
        )
    except Exception as error:
        return _failed_check(error, choice)
    return ModelCheck(True, answer.strip(), time.monotonic() - began)


async def _ask_one_word(built: "list[Model]", seconds: float) -> str:
    """The answer, by the same way as in a session."""
    from pydantic_ai.messages import ModelRequest, ModelResponse

    from tacit.agent.budget import Limits, Meter
    from tacit.agent.model_client import ModelClient

    client = ModelClient(built, None, (), retries=0)
    found = ""
    async with asyncio.timeout(seconds), client:
        asked: list[ModelMessage] = [ModelRequest.user_text_prompt(_CHECK_PROMPT)]
        async for item in client.request(asked, Meter(Limits())):
            if isinstance(item, ModelResponse):
                found = "".join(p.content for p in item.parts if p.part_kind == "text")
    return found


def _failed_check(error: Exception, choice: ModelChoice) -> ModelCheck:
    """What went wrong, in words, and what to do about it."""
    from tacit.agent.model_client import RequestFailed

    fault = RequestFailed.of(error)
    return ModelCheck(False, why=str(fault), hint=_advice_for(fault, choice) or fault.hint)


def _advice_for(fault: "RequestFailed", choice: ModelChoice) -> str:
    status, unreachable = fault.status, "cannot be reached" in str(fault)
    where = choice.base_url or "the provider"
    if status in (401, 403):
        return "the key is wrong or may not use this model; check it on the provider's page"
    if status == 404:
        served = models.models_of(choice.base_url) if choice.base_url else []
        if served:
            return f"{where} offers: {', '.join(served[:5])}"
        return "check the model's name, and that the address ends in /v1"
    if status == 429:
        return "the account is at its limit; wait, or see the provider's account page"
    if unreachable and choice.base_url:
        return f"is the server running? {where} does not answer"
    return ""


MODEL_FAILED = 11
_MOST_SERVED = 5


@command(
    "setup",
    "work",
    "Choose a model, and test it.",
    "tacit setup                                       asks, tests, writes",
    "tacit setup --check                               tests what is set, writes nothing",
    "tacit setup --model anthropic:claude-sonnet-4-5",
    "tacit setup --base-url http://127.0.0.1:11434/v1 --model qwen3",
    note="Keys are never written: they stay in the environment.",
)
@click.option("--model", default="", help="provider:model; asks for nothing.")
@click.option("--base-url", default="", help="The address of a server of your own.")
@click.option("--check", is_flag=True, help="Only test what is set.")
def setup_command(model: str, base_url: str, check: bool, as_json: bool) -> int:
    """Choose a model, and test it.

    Looks for keys in the environment and for servers on this machine, sends one tiny request, and
    writes the choice to your config.toml. Everything else in that file stays as it is.
    """
    if check or model or base_url:
        return _set_directly(model, base_url, write=not check, as_json=as_json)
    if as_json or not sys.stdin.isatty():
        raise Usage("nobody is there to ask", "give --model (and --base-url), or --check")
    choice = _ask_for_model()
    return _try_and_keep(choice)


def _set_directly(model: str, base_url: str, *, write: bool, as_json: bool) -> int:
    set_now = settings.load_settings().settings.agent
    # A model that is named leaves the address behind that was set for another.
    url = base_url or (set_now.base_url if not model else "")
    choice = models.resolve(
        AgentSettings(model or ("" if base_url else set_now.model), base_url=url)
    )
    if choice is None:
        raise _no_model(url)
    outcome = check_model(choice)
    written = keep_model(choice) if write and outcome.works else ""
    if as_json:
        model_used = {"model": choice.name, "base_url": choice.base_url}
        output.write_json(model_used | msgspec.structs.asdict(outcome) | {"written": written})
    else:
        _write_check(choice, outcome)
        if written:
            _write_where_written(written, choice)
    return 0 if outcome.works else MODEL_FAILED


def _ask_for_model() -> ModelChoice:
    """Let the user choose among what was found, or name something else."""
    found = list(models.candidates())
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
        for variable in models.usual_keys():
            click.echo(f"  export {variable}=…")
        click.echo("For a model on this machine, start Ollama, LM Studio, llama.cpp or vLLM.")
    return _ask_for_another()


def _ask_for_another() -> ModelChoice:
    click.echo("An OpenAI-compatible server has an address; a provider has none.")
    url = click.prompt("Address, or nothing", default="", show_default=False).strip()
    served = models.models_of(url) if url else []
    if served:
        names = ", ".join(plain(name) for name in served[:_MOST_SERVED])
        more = f" and {len(served) - _MOST_SERVED} more" if len(served) > _MOST_SERVED else ""
        click.echo(f"It offers: {names}{more}")
    name = click.prompt("Model (provider:model)", default=served[0] if served else None).strip()
    choice = models.resolve(AgentSettings(name, base_url=url))
    assert choice is not None
    return choice


def _try_and_keep(choice: ModelChoice) -> int:
    click.echo(f"Asking {plain(choice.name)} for one word …")
    outcome = check_model(choice)
    _write_check(choice, outcome)
    if not outcome.works and not click.confirm("Write it to the settings all the same?"):
        return MODEL_FAILED
    _write_where_written(keep_model(choice), choice)
    return 0 if outcome.works else MODEL_FAILED


def _write_check(choice: ModelChoice, outcome: ModelCheck) -> None:
    if outcome.works:
        answer = fit(one_line(outcome.answer), 60) or "(nothing)"
        click.echo(f"{plain(choice.name)} answered in {outcome.seconds:.1f} s: {answer}")
        return
    mark = click.style("failed:", fg="red")
    click.echo(f"{mark} {plain(choice.name)}: {one_line(outcome.why)}", err=True)
    if outcome.hint:
        click.echo(f"        {one_line(outcome.hint)}", err=True)


def learning_lines(loaded: Settings) -> tuple[str, str]:
    """Which model learns from sessions and what a day may cost at most, and how to change that."""
    try:
        choice = models.for_learning(loaded)
    except TacitError:
        said = "No model is asked: what is learned from sessions is counted, and costs nothing."
        return said, "Choose one: tacit setup"
    at = f" at {choice.base_url}" if choice.base_url else ""
    said = f"Sessions are learned from with {plain(choice.name)}{at}, {daily_limit(loaded.learn)}."
    return said, "Without a model: tacit config set learn.model none"


def offered_model(loaded: Settings) -> ModelChoice | None:
    """What a key or a server here offers for learning, where nobody has chosen yet."""
    chosen = loaded.learn.model or loaded.agent.model or loaded.agent.base_url
    return None if chosen else next(models.candidates(), None)


def keep_model(choice: ModelChoice) -> str:
    """Write the choice to the settings; the path of their file."""
    # An address that stands in the environment stays there.
    url = "" if choice.base_url == models.own_address(choice.provider) else choice.base_url
    return set_values({"agent.model": choice.name, "agent.base_url": url or None})


def daily_limit(learn: LearnSettings) -> str:
    """What all work in the background may cost in a day, in words."""
    limits = [f"${learn.daily_money:,.2f}"] if learn.daily_money else []
    limits += [f"{learn.daily_tokens:,} tokens"] if learn.daily_tokens else []
    if not limits:
        return "without a limit a day (learn.daily_money)"
    return f"for at most {' and '.join(limits)} a day (learn.daily_money)"


def _write_where_written(path: str, choice: ModelChoice) -> None:
    click.echo(f"Written to {with_tilde(path)}. Start: tacit chat")
    try:
        loaded = settings.load_settings()
    except TacitError:
        return
    for key, wanted in (("agent.model", choice.name), ("agent.base_url", choice.base_url)):
        source = loaded.sources.get(key, "")
        if source not in ("", path) and getattr(loaded.settings.agent, key[6:]) != wanted:
            click.echo(f"note: {key} is overruled here by {with_tilde(source)}", err=True)
    for line in learning_lines(loaded.settings):
        click.echo(output.wrapped(line))


def _no_model(url: str) -> BadConfig:
    if url:
        return BadConfig(f"no model is offered at {url}", "start the server, or name one: --model")
    *first, last = models.usual_keys()
    return BadConfig(
        "no model: no key is set, and no local server answers",
        f"set {', '.join(first)} or {last}, or start a local server",
    )
