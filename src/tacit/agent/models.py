"""Which model is meant, and how it is reached: by name, by a key, or at a server on this machine.

Owns what is known of providers, in one table: their keys, the models to take when only a key is
known, and what a server at an address of the user's own speaks. The chat, the background, the
estimates and `tacit setup` all ask here. Requests are made by `model_client.py`.
"""

import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from tacit.agent import client_library
from tacit.base.errors import BadConfig, MissingExtra
from tacit.base.setting_sections import AgentSettings, Settings

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from tacit.agent.program_model import Ask


class Provider(msgspec.Struct, frozen=True):
    """What is known of one provider."""

    name: str
    """What stands before the colon in `provider:model`."""
    keys: tuple[str, ...] = ()
    """Variables that its key is looked for in, the usual one first."""
    work: str = ""
    """The model to take when only a key is known."""
    small: str = ""
    """The model for the background."""
    aliases: tuple[str, ...] = ()
    """Other names that pydantic-ai has for it."""
    begins: str = ""
    """How the names of its models begin, where that gives them away."""
    wire: str = ""
    """Whose wire format a server of one's own speaks that is called by this name."""
    variables: tuple[str, ...] = ()
    """How the names of its variables begin, where not with its own name."""
    priced_as: str = ""
    """Its name in the list of prices, where that is another."""
    address: str = ""
    """The variable by which its library is sent to another server."""
    own_host: str = ""
    """The host of its own servers."""
    domains: tuple[str, ...] | None = None
    """What the names of all hosts end in that its library asks; None where that is not known."""
    tools: bool = True
    """Whether its models call tools."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        """How the names of its variables begin."""
        return self.variables or (self.name.upper().replace("-", "_") + "_",)


# Keys are tried in this order.
PROVIDERS = (
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
        begins="claude",
        wire="anthropic",
        address="ANTHROPIC_BASE_URL",
        own_host="api.anthropic.com",
        domains=(".anthropic.com",),
    ),
    Provider(
        "openai",
        ("OPENAI_API_KEY",),
        "gpt-5.1",
        "gpt-5-mini",
        aliases=("openai-chat", "openai-responses"),
        begins="gpt-",
        wire="openai",
        address="OPENAI_BASE_URL",
        own_host="api.openai.com",
        domains=(".openai.com",),
    ),
    Provider(
        "google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-2.5-pro",
        "gemini-2.5-flash",
        aliases=("google-gla",),
        begins="gemini",
        wire="google",
        variables=("GOOGLE_", "GEMINI_"),
        address="GOOGLE_GEMINI_BASE_URL",
        own_host="generativelanguage.googleapis.com",
        domains=(".googleapis.com",),
    ),
    Provider(
        "openrouter",
        ("OPENROUTER_API_KEY",),
        "anthropic/claude-sonnet-4.5",
        "openai/gpt-5-mini",
        domains=(".openrouter.ai",),
    ),
    Provider(
        "mistral",
        ("MISTRAL_API_KEY",),
        "mistral-large-latest",
        "mistral-small-latest",
        domains=(".mistral.ai",),
    ),
    Provider(
        "groq",
        ("GROQ_API_KEY",),
        "llama-3.3-70b-versatile",
        "llama-3.1-8b-instant",
        domains=(".groq.com",),
    ),
    Provider(
        "deepseek",
        ("DEEPSEEK_API_KEY",),
        "deepseek-chat",
        "deepseek-chat",
        domains=(".deepseek.com",),
    ),
    Provider(
        "google-vertex",
        variables=("GOOGLE_", "GCLOUD_", "CLOUDSDK_"),
        priced_as="google",
        domains=(".googleapis.com", "metadata.google.internal"),
    ),
    Provider(
        "azure",
        variables=("AZURE_", "OPENAI_"),
        domains=(".azure.com", ".microsoft.com", ".microsoftonline.com"),
    ),
    Provider("bedrock", variables=("AWS_",), domains=(".amazonaws.com",)),
    Provider("cohere", variables=("CO_", "COHERE_"), domains=(".cohere.com", ".cohere.ai")),
    Provider("huggingface", variables=("HF_",), domains=(".huggingface.co",)),
    Provider("grok", variables=("GROK_", "XAI_"), domains=(".x.ai",)),
    Provider("xai", domains=(".x.ai",)),
    Provider("ollama", wire="openai"),
    Provider("vllm", wire="openai"),
    Provider("litellm", wire="openai"),
    Provider("cli", domains=(), tools=False),  # the user's own agent programs: `host_program.py`
)
_BY_NAME = {name: row for row in PROVIDERS for name in (row.name, *row.aliases)}
# OpenAI-compatible servers where they usually listen.
LOCAL = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
)
_MOST_SERVED = 5
"""Models of one local server that are offered."""
_SETTINGS = "your settings"
_ASKED = "asked for by you"
_OTHER = "_other_wire"
"""Where a model keeps itself in the other wire format; missing where its name fixes the format."""
_SECONDS = 0.4
"""How long a server may take to say which models it has."""


class ModelChoice(msgspec.Struct, frozen=True):
    """A model and how to reach it."""

    name: str
    """`provider:model`."""
    base_url: str = ""
    """A server of one's own; empty for the provider's."""
    why: str = ""
    """Where the choice came from, for people."""
    seed: int | None = None
    """What its chance begins with, where the provider takes one."""

    @property
    def prefix(self) -> str:
        """What stands before the colon."""
        return self.name.partition(":")[0]

    @property
    def provider(self) -> Provider:
        return provider_of(self.name)

    @property
    def is_program(self) -> bool:
        """Whether it is one of the user's own agent programs: those call no tools of ours."""
        return self.prefix == "cli"


def provider_of(name: str) -> Provider:
    """Whose model `provider:model` is; of a provider that is not in the table only the name."""
    prefix = name.partition(":")[0]
    return _BY_NAME.get(prefix) or Provider(prefix)


def calls_tools(choice: ModelChoice) -> bool:
    """Whether the model calls tools, as far as is known before it is asked."""
    return choice.provider.tools


def resolve(
    settings: AgentSettings, name: str = "", *, background: bool = False
) -> ModelChoice | None:
    """The model to use: `name`, else the one that is set, else what a key or a server offers.

    The background has the small sister of the user's own. A server of the user's own has no small
    sister that is known. It never takes what is merely offered: nobody has said that their key may
    be used without them.
    """
    if name:
        known = configured(settings)
        return named(name, *([known] if known else []))
    if settings.model:
        found = _read(settings.model, settings.base_url)
        return _small_sister(found) if background else found
    if settings.base_url:
        served = models_of(settings.base_url)[:1]
        why = f"the server at {settings.base_url}"
        return ModelChoice(f"openai:{served[0]}", settings.base_url, why) if served else None
    offered = None if background else next(candidates(), None)
    if offered and offered.base_url:
        why = f"{offered.why} answers at {offered.base_url}"
        return msgspec.structs.replace(offered, why=why)
    return offered


def require(settings: AgentSettings, name: str = "") -> ModelChoice:
    """As `resolve`; raises `BadConfig` with what to do when there is none.

    What is not installed is named before what is not set: `MissingExtra`.
    """
    from importlib.util import find_spec

    if find_spec("pydantic_ai") is None:
        raise MissingExtra("agent", "talking to a model")
    found = resolve(settings, name)
    if found is None:
        raise BadConfig(
            "no model: no key is set, and no local server answers",
            f"set one up: tacit setup (or set {', '.join(usual_keys())})",
        )
    return found


NO_MODEL = "none"
"""The value of `learn.model` with which learning asks no model."""


def for_learning(settings: Settings) -> ModelChoice:
    """The model that works in the background, by what a person has set.

    Raises `BadConfig` where they have set none, or want none.
    """
    named_model = settings.learn.model
    if named_model == NO_MODEL:
        raise BadConfig(
            "learning asks no model, as learn.model says",
            "change that: tacit config set learn.model provider:model",
        )
    if named_model:
        return _read(named_model, settings.agent.base_url)
    found = resolve(settings.agent, background=True)
    if found is None:
        at = (
            f", and none is offered at {settings.agent.base_url}" if settings.agent.base_url else ""
        )
        raise BadConfig(f"no model was chosen for learning{at}", "choose one: tacit setup")
    return found


def candidates() -> Iterator[ModelChoice]:
    """What a key in the environment or a server on this machine offers, keys first."""
    for row in PROVIDERS:
        if variable := next((key for key in row.keys if os.environ.get(key)), ""):
            url = own_address(row)
            offered = models_of(url, os.environ[variable]) if url else []
            name = offered[0] if offered else row.work
            yield ModelChoice(f"{row.name}:{name}", url, f"{variable} is set")
    for title, url in LOCAL:
        for served in dict.fromkeys(models_of(url)[:_MOST_SERVED]):
            yield ModelChoice(f"openai:{served}", url, title)


def alternatives(settings: AgentSettings, choice: ModelChoice) -> list[ModelChoice]:
    """Models to turn to in the background where `choice` is refused, in order.

    The user's own model, those that the user named for this, and what a server on this machine
    offers. A provider whose key merely lies in the environment was chosen by nobody.
    """
    found = [_read(settings.model, settings.base_url)] if settings.model else []
    found += [named(name, *found) for name in settings.fallback]
    if not settings.base_url:
        found += [c for c in candidates() if c.base_url and c.provider.name == choice.provider.name]
    reached = {(one.name, one.base_url): one for one in reversed(found)}
    reached.pop((choice.name, choice.base_url), None)
    return list(reversed(reached.values()))


def own_address(row: Provider) -> str:
    """The server that a variable sends the provider's library to, where it is not its own."""
    url = os.environ.get(row.address, "") if row.address else ""
    return "" if row.own_host in url else url


def configured(settings: AgentSettings) -> ModelChoice | None:
    """The model that the settings name; of an address alone, what is spoken there."""
    if not settings.model and not settings.base_url:
        return None
    return _read(settings.model or "openai:", settings.base_url)


def named(text: str, *beside: ModelChoice) -> ModelChoice:
    """The model that a person means by `text`: a name, and its address where one follows it.

    `beside` are the models in use. The address of the first of them that speaks the same way is
    kept: another provider is not to be found there. A server among them that offers the very name
    is meant, and a name without a provider is the first one's.
    """
    name, _, url = " ".join(text.split()).partition(" ")
    if url:
        return _read(name, url, _ASKED)
    if not provider_of(name).wire:
        for one in beside:
            if one.base_url and name in models_of(one.base_url):
                return ModelChoice(f"{one.prefix}:{name}", one.base_url, _ASKED)
    if ":" not in name:
        name = f"{_owner(name, *beside)}:{name}"
    wire = provider_of(name).wire
    for one in beside:
        if wire and one.base_url and one.provider.wire == wire:
            return ModelChoice(name, one.base_url, _ASKED)
    return _read(name, "", _ASKED)


def check_address(base_url: str) -> None:
    """Raise `BadConfig` where it is no address of a server."""
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        sound = False
    if not sound or any(sign.isspace() for sign in base_url):
        raise BadConfig(f"'{base_url}' is not an http address", "write it as http://host:port/v1")


def models_of(base_url: str, key: str = "") -> list[str]:
    """The models that an OpenAI-compatible server offers; none when nothing answers at once."""
    check_address(base_url)
    request = urllib.request.Request(base_url.rstrip("/") + "/models")  # noqa: S310
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            data: Any = msgspec.json.decode(answer.read(1_000_000))
        return [row["id"] for row in data["data"]]
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer too, with its connection
        return []
    except (OSError, urllib.error.URLError, ValueError, KeyError, TypeError, msgspec.DecodeError):
        return []


def usual_keys() -> tuple[str, ...]:
    """The variables to name where somebody has no key yet."""
    return tuple(row.keys[0] for row in PROVIDERS[:3])


def missing_key(choice: ModelChoice) -> str:
    """The variable that the provider's key is looked for in, when none of them is set."""
    keys = choice.provider.keys
    if choice.base_url or any(os.environ.get(key) for key in keys):
        return ""
    return keys[0] if keys else ""


def _read(name: str, base_url: str, why: str = _SETTINGS) -> ModelChoice:
    """A name as it is written, with its provider.

    At an address of one's own `qwen3:8b` is all name, and without one it is a model of the server
    on this machine that offers it, unless a provider is called so.
    """
    provider, colon, _ = name.partition(":")
    if provider == "cli":
        return ModelChoice(name, "", why)
    if not base_url and not (colon and provider not in _BY_NAME):
        base_url = own_address(provider_of(name if colon else f"{_owner(name)}:{name}"))
        name = name if colon or not base_url else f"{_owner(name)}:{name}"
    if base_url:
        speaks = colon and provider_of(name).wire
        return ModelChoice(name if speaks else f"openai:{name}", base_url, why)
    if not colon:
        return ModelChoice(f"{_owner(name)}:{name}", "", why)
    if provider not in _BY_NAME:
        for _, url in LOCAL:
            if name in models_of(url):
                return ModelChoice(f"openai:{name}", url, why)
    return ModelChoice(name, "", why)


def _owner(name: str, *beside: ModelChoice) -> str:
    """Whose model a name without a provider is."""
    if beside and beside[0].base_url:
        return beside[0].prefix
    known = [row.name for row in PROVIDERS if row.begins and name.startswith(row.begins)]
    return known[0] if known else beside[0].prefix if beside else "openai"


def _small_sister(choice: ModelChoice) -> ModelChoice:
    """The provider's model for the background, where one is known."""
    row = choice.provider
    if choice.base_url or not row.small:
        return choice
    return ModelChoice(f"{row.name}:{row.small}", "", choice.why)


def build(choice: ModelChoice, ask: "Ask | None" = None) -> "Model":
    """The model itself. Importing a provider's library takes most of a second.

    `ask` runs a program for a process that may not run it.
    """
    try:
        client_library.load()
    except ImportError:
        raise MissingExtra("agent", "talking to a model") from None
    if choice.is_program:
        from tacit.agent.program_model import ProgramModel

        return ProgramModel(choice.name, ask)
    found = _client(choice)
    if choice.name.startswith("openai:"):
        setattr(found, _OTHER, None)
    if choice.seed is not None:
        found._settings = {**(found.settings or {}), "seed": choice.seed}
    # The libraries' own retries would hide what happens; `model_client.py` has the rule.
    client: Any = getattr(found, "client", None)
    if client is not None and hasattr(client, "max_retries"):
        client.max_retries = 0
    return found


def other_wire(model: "Model") -> "Model | None":
    """The model in the other wire format of OpenAI, where its name says neither; always the same.

    Many servers that speak one of them do not know the other. It goes through the same connections:
    to open some of its own, it would read all certificates of the system once more.
    """
    if not hasattr(model, _OTHER):
        return None
    found: Model | None = getattr(model, _OTHER)
    if found is None:
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

        kind = OpenAIResponsesModel if isinstance(model, OpenAIChatModel) else OpenAIChatModel
        provider: Any = model.provider
        found = kind(model.model_name, provider=provider, settings=model.settings)
        setattr(model, _OTHER, found)
    return found


def refuse_pages(model: "Model") -> None:
    """Have the HTTP client of `model` stop at a web page: libraries take one for an empty answer.

    For as long as the model is entered: the next time it has another client. Google's library says
    so by itself, and has no such client.
    """
    client: Any = getattr(model, "client", None)
    hooks = getattr(getattr(client, "_client", None), "event_hooks", None)
    if hooks is not None and _stop_at_page not in hooks["response"]:
        hooks["response"].append(_stop_at_page)


async def _stop_at_page(response: Any) -> None:
    if response.status_code < 400 and "text/html" in response.headers.get("content-type", ""):
        from tacit.agent.model_client import page_fault

        await response.aread()
        raise page_fault(str(response.url), response.text)


def _client(choice: ModelChoice) -> "Model":
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    prefix, _, model = choice.name.partition(":")
    try:
        if not choice.base_url:
            return client_library.sparingly(lambda: infer_model(choice.name))
        check_address(choice.base_url)
        wire = choice.provider.wire or "openai"
        keys = (os.environ.get(variable) for variable in provider_of(wire).keys)
        key = next(filter(None, keys), "none")
        make = _CLIENTS.get(prefix) or _CLIENTS[wire]
        return client_library.sparingly(lambda: make(model, choice.base_url, key))
    except ImportError as error:
        hint = "pip install 'tacit[agent]', or the provider's own package"
        raise BadConfig(f"the provider '{prefix}' needs a package: {error}", hint) from None
    except (UserError, ValueError) as error:
        if missing := missing_key(choice):
            hint = f"in your shell's profile: export {missing}=…"
            raise BadConfig(f"{choice.name} needs {missing}, which is not set", hint) from None
        raise BadConfig(f"the model '{choice.name}': {error}", "see: tacit setup") from None


def _anthropic(model: str, base_url: str, key: str) -> "Model":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(model, provider=AnthropicProvider(api_key=key, base_url=base_url))


def _google(model: str, base_url: str, key: str) -> "Model":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(model, provider=GoogleProvider(api_key=key, base_url=base_url))


def _openai_chat(model: str, base_url: str, key: str) -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(model, provider=OpenAIProvider(api_key=key, base_url=base_url))


def _openai_responses(model: str, base_url: str, key: str) -> "Model":
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(model, provider=OpenAIProvider(api_key=key, base_url=base_url))


# What can be spoken with a server at an address of one's own, by the name before the colon.
_CLIENTS: dict[str, Callable[[str, str, str], "Model"]] = {
    "anthropic": _anthropic,
    "google": _google,
    "openai": _openai_chat,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
}
