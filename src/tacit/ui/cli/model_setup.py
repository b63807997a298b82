"""`tacit setup`: a model is chosen, tried with one small request, and written to the settings.

Which providers and servers there are is `agent/`'s table.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click
import msgspec

from tacit.agent import models
from tacit.agent.host_program import find, installed
from tacit.agent.models import ModelChoice
from tacit.base import settings
from tacit.base.config_file import set_values
from tacit.base.display import fit, one_line, plain
from tacit.base.errors import BadConfig, TacitError, Usage
from tacit.base.paths import with_tilde
from tacit.base.setting_sections import AgentSettings, LearnSettings, Settings
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
        built = models.build(choice)
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


async def _ask_one_word(built: "Model", seconds: float) -> str:
    """The answer, by the same way as in a session."""
    from pydantic_ai.messages import ModelRequest, ModelResponse

    from tacit.agent.budget import Limits, Meter
    from tacit.agent.model_client import ModelClient

    client = ModelClient([built], None, (), retries=0)
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
    "tacit setup --model cli:claude                    learns with your own Claude Code",
    note="Keys are never written: they stay in the environment.",
)
@click.option("--model", default="", help="provider:model; asks for nothing.")
@click.option("--base-url", default="", help="The address of a server of your own.")
@click.option("--check", is_flag=True, help="Only test what is set.")
def setup_command(model: str, base_url: str, check: bool, as_json: bool) -> int:
    """Choose a model, and test it.

    Looks for keys in the environment and for servers on this machine, sends one tiny request, and
    writes the choice to your config.toml. Everything else in that file stays as it is.

    Agent programs that you have, such as claude or codex, can learn from your sessions with their
    own login (cli:claude): no key is needed. They answer one request a review, and call no tools.
    """
    if check or model or base_url:
        return _set_directly(model, base_url, write=not check, as_json=as_json)
    if as_json or not sys.stdin.isatty():
        raise Usage("nobody is there to ask", "give --model (and --base-url), or --check")
    choice = _ask_for_model()
    return _try_and_keep(choice)


def _set_directly(model: str, base_url: str, *, write: bool, as_json: bool) -> int:
    loaded = settings.load_settings().settings
    set_now = loaded.agent
    if not (model or base_url or set_now.model or set_now.base_url):
        model = "" if loaded.learn.model == models.NO_MODEL else loaded.learn.model
    # A model that is named leaves the address behind that was set for another.
    url = base_url or (set_now.base_url if not model else "")
    choice = models.resolve(
        AgentSettings(model or ("" if base_url else set_now.model), base_url=url)
    )
    if choice is None:
        raise _no_model(url)
    if not as_json:
        _write_caution(choice)
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
    found = [*models.candidates(), *_program_choices()]
    _write_by_hand()
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
    return None if chosen else next(chain(models.candidates(), _program_choices()), None)


def _program_choices() -> Iterator[ModelChoice]:
    """The agent programs that are installed, and not known to be logged out."""
    for found in installed():
        if not found.program.by_hand and (logged_in := found.is_logged_in()) is not False:
            state = "logged in" if logged_in else "installed"
            why = f"{found.host.title} is {state}; learns with it, no key needed"
            yield ModelChoice(found.name, "", why)


def _write_by_hand() -> None:
    """Name the programs that are there and are not offered, and say why."""
    for found in installed():
        if found.program.by_hand:
            why = f"{found.name} is not offered: {found.program.by_hand}."
            click.echo(output.wrapped(f"{why} By hand: tacit setup --model {found.name}"))


def _write_caution(choice: ModelChoice) -> None:
    """Say what speaks against a program that was chosen by hand, if something does."""
    if choice.is_program and (why := find(choice.name)[0].program.by_hand):
        click.echo(output.wrapped(f"note: {why}; see docs/programs.md"), err=True)


def program_hint(loaded: Settings) -> str:
    """For somebody without a model: the program here that could learn, in a line; else empty."""
    if loaded.learn.model or loaded.agent.model or loaded.agent.base_url:
        return ""
    for found in installed():
        if not found.program.by_hand:
            title, name = found.host.title, found.name
            return f"{title} can learn with its own login: tacit setup --model {name}"
    return ""


def keep_model(choice: ModelChoice) -> str:
    """Write the choice to the settings; the path of their file."""
    # An address that stands in the environment stays there.
    url = "" if choice.base_url == models.own_address(choice.provider) else choice.base_url
    if choice.is_program:  # it calls no tools, so it is none for the chat
        return set_values({"learn.model": choice.name})
    return set_values({"agent.model": choice.name, "agent.base_url": url or None})


_NO_TOOLS = (
    "It calls no tools, so it reviews sessions and does nothing else: for repairing skills and"
    " merging them in curation, also set a model that does (agent.model)."
)


def _review_price(choice: ModelChoice, learn: LearnSettings) -> str:
    """What a review takes from the program's login."""
    paid = find(choice.name)[0].program.paid
    most = f" of at most {learn.tokens:,} tokens (learn.tokens)" if learn.tokens else ""
    return f"A review is one request, two where its answer is refused,{most} from {paid}."


def daily_limit(learn: LearnSettings) -> str:
    """What all work in the background may cost in a day, in words."""
    limits = [f"${learn.daily_money:,.2f}"] if learn.daily_money else []
    limits += [f"{learn.daily_tokens:,} tokens"] if learn.daily_tokens else []
    if not limits:
        return "without a limit a day (learn.daily_money)"
    return f"for at most {' and '.join(limits)} a day (learn.daily_money)"


def _write_where_written(path: str, choice: ModelChoice) -> None:
    next_command = "tacit learn" if choice.is_program else "tacit chat"
    click.echo(f"Written to {with_tilde(path)}. Start: {next_command}")
    try:
        loaded = settings.load_settings()
    except TacitError:
        return
    wanted = {"agent.model": choice.name, "agent.base_url": choice.base_url}
    for key, value in ({"learn.model": choice.name} if choice.is_program else wanted).items():
        source = loaded.sources.get(key, "")
        section, name = key.split(".")
        if source not in ("", path) and getattr(getattr(loaded.settings, section), name) != value:
            click.echo(f"note: {key} is overruled here by {with_tilde(source)}", err=True)
    if choice.is_program:
        click.echo(output.wrapped(_review_price(choice, loaded.settings.learn)))
        if not loaded.settings.agent.model:
            click.echo(output.wrapped(_NO_TOOLS))
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
