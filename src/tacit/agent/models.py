"""Which model is meant, and how it is reached: by name, by a key, or at a server on this machine.

Owns what is known of providers: their keys, the models to take when only a key is known, and which
wire format a server at an address of the user's own speaks. Requests are made by `model_client.py`.
"""

import os
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.base.errors import BadConfig, MissingExtra

if TYPE_CHECKING:
    from pydantic_ai.models import Model

# What to take when only a key is known: variable, model for work, model for the background.
KEYS = (
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-4-5", "anthropic:claude-haiku-4-5"),
    ("OPENAI_API_KEY", "openai:gpt-5.1", "openai:gpt-5-mini"),
    ("GEMINI_API_KEY", "google:gemini-2.5-pro", "google:gemini-2.5-flash"),
    ("GOOGLE_API_KEY", "google:gemini-2.5-pro", "google:gemini-2.5-flash"),
    (
        "OPENROUTER_API_KEY",
        "openrouter:anthropic/claude-sonnet-4.5",
        "openrouter:openai/gpt-5-mini",
    ),
    ("MISTRAL_API_KEY", "mistral:mistral-large-latest", "mistral:mistral-small-latest"),
    ("GROQ_API_KEY", "groq:llama-3.3-70b-versatile", "groq:llama-3.1-8b-instant"),
    ("DEEPSEEK_API_KEY", "deepseek:deepseek-chat", "deepseek:deepseek-chat"),
)
# OpenAI-compatible servers where they usually listen.
LOCAL = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("vLLM", "http://127.0.0.1:8000/v1"),
)
# What can be spoken with a server at an address of one's own, each with those that speak the same.
_SPOKEN = {
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "ollama": "openai",
    "vllm": "openai",
    "litellm": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "google-gla": "google",
}
# Whose model a name without a provider is.
_BEGINNINGS = (("claude", "anthropic"), ("gemini", "google"), ("gpt-", "openai"))
_ASKED = "asked for by you"
_QUICKLY = 0.4


class Choice(msgspec.Struct, frozen=True):
    """A model and how to reach it."""

    name: str
    """`provider:model`."""
    base_url: str = ""
    """A server of one's own; empty for the provider's."""
    why: str = ""
    """Where the choice came from, for people."""

    @property
    def provider(self) -> str:
        return self.name.partition(":")[0]


def find(
    name: str = "", base_url: str = "", *, background: bool = False, look: bool = True
) -> Choice | None:
    """The model to use: the one that is set, else what a key or a local server offers."""
    if name:
        return Choice(_whole(name, base_url), base_url, "your settings")
    if base_url:
        served = models_of(base_url)
        if served:
            return Choice(f"openai:{served[0]}", base_url, f"the server at {base_url}")
        return None
    for variable, work, small in KEYS:
        if os.environ.get(variable):
            return Choice(small if background else work, "", f"{variable} is set")
    if look:
        for title, url in LOCAL:
            if served := models_of(url):
                return Choice(f"openai:{served[0]}", url, f"{title} answers at {url}")
    return None


def named(text: str, *beside: Choice) -> Choice:
    """The model that a person means by `text`: a name, and its address where one follows it.

    `beside` are the models in use. The address of the first of them that speaks the same way is
    kept: another provider is not to be found there. A server among them that offers the very name
    is meant, and a name without a provider is the first one's.
    """
    name, _, url = " ".join(text.split()).partition(" ")
    if url:
        return Choice(_whole(name, url), url, _ASKED)
    provider, colon, _ = name.partition(":")
    if provider not in _SPOKEN:
        for one in beside:
            if one.base_url and name in models_of(one.base_url):
                return Choice(f"{one.provider}:{name}", one.base_url, _ASKED)
    if not colon:
        provider = _provider(name, *beside)
        name = f"{provider}:{name}"
    same = [one for one in beside if one.base_url and _speak_alike(one.provider, provider)]
    return Choice(name, same[0].base_url if same else "", _ASKED)


def models_of(base_url: str) -> list[str]:
    """The models that an OpenAI-compatible server offers; none when nothing answers at once."""
    request = urllib.request.Request(base_url.rstrip("/") + "/models")  # noqa: S310
    if not base_url.startswith(("http://", "https://")):
        raise BadConfig(f"'{base_url}' is not an http address", "write it as http://host:port/v1")
    try:
        with urllib.request.urlopen(request, timeout=_QUICKLY) as answer:  # noqa: S310
            data: Any = msgspec.json.decode(answer.read(1_000_000))
        return [row["id"] for row in data["data"]]
    except (OSError, urllib.error.URLError, ValueError, KeyError, TypeError, msgspec.DecodeError):
        return []


def missing_key(choice: Choice) -> str:
    """The variable that the provider's key is looked for in, when none of them is set."""
    provider = choice.provider.split("-")[0]
    variables = [name for name, work, _ in KEYS if work.startswith(provider + ":")]
    if choice.base_url or not variables or any(os.environ.get(name) for name in variables):
        return ""
    return variables[0]


def _whole(name: str, base_url: str) -> str:
    """`name` with its provider. At an address of one's own `qwen3:8b` is all name."""
    provider, colon, _ = name.partition(":")
    if colon and (not base_url or provider in _SPOKEN):
        return name
    return f"{'openai' if base_url else _provider(name)}:{name}"


def _provider(name: str, *beside: Choice) -> str:
    """Whose model a name without a provider is."""
    if beside and beside[0].base_url:
        return beside[0].provider
    known = [provider for start, provider in _BEGINNINGS if name.startswith(start)]
    return known[0] if known else beside[0].provider if beside else "openai"


def _speak_alike(one: str, other: str) -> bool:
    return one in _SPOKEN and _SPOKEN[one] == _SPOKEN.get(other)


def build(choice: Choice) -> "Model":
    """The model itself. Importing a provider's library takes about a second."""
    try:
        import pydantic_ai  # noqa: F401
    except ImportError:
        raise MissingExtra("agent", "talking to a model") from None
    model = _one(choice)
    # The libraries' own retries would hide what happens; `asking.py` has the one rule for all.
    client: Any = getattr(model, "client", None)
    if client is not None and hasattr(client, "max_retries"):
        client.max_retries = 0
    return model


def _one(choice: Choice) -> "Model":
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    provider, _, model = choice.name.partition(":")
    try:
        if not choice.base_url:
            return infer_model(choice.name)
        return _at(provider, model, choice.base_url)
    except ImportError as error:
        hint = "pip install 'tacit[agent]', or the provider's own package"
        raise BadConfig(f"the provider '{provider}' needs a package: {error}", hint) from None
    except (UserError, ValueError) as error:
        if missing := missing_key(choice):
            hint = f"in your shell's profile: export {missing}=…"
            raise BadConfig(f"{choice.name} needs {missing}, which is not set", hint) from None
        raise BadConfig(f"the model '{choice.name}': {error}", "see: tacit setup") from None


def _at(provider: str, model: str, base_url: str) -> "Model":
    """A model behind an address of the user's own."""
    if provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        key = os.environ.get("ANTHROPIC_API_KEY", "none")
        return AnthropicModel(model, provider=AnthropicProvider(api_key=key, base_url=base_url))
    if provider in ("google", "google-gla"):
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        key = os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY") or "none"
        return GoogleModel(model, provider=GoogleProvider(api_key=key, base_url=base_url))
    if provider == "openai-responses":
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        key = os.environ.get("OPENAI_API_KEY", "none")
        return OpenAIResponsesModel(model, provider=OpenAIProvider(api_key=key, base_url=base_url))
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    key = os.environ.get("OPENAI_API_KEY", "none")
    return OpenAIChatModel(model, provider=OpenAIProvider(api_key=key, base_url=base_url))
