"""What the scripted server refuses, as the real ones do: status, words and shape of each format."""

import copy
from typing import Any

import pytest
from conversations import CALLS, CONVERSATIONS

from tacit.testing import ModelServer, Terms, ToolUse
from tacit.testing.wires import Bad, anthropic_messages, gemini_generate, openai_chat
from tacit.testing.wires import openai_responses as responses

# Each: where the conversation is changed, to what (`-` takes away), and what the provider says.
CHANGES: dict[str, list[tuple[str, Any, str]]] = {
    "anthropic": [
        ("nonsense", 1, "nonsense: Extra inputs are not permitted"),
        ("model", "-", "model: Field required"),
        ("max_tokens", "-", "max_tokens: Field required"),
        ("max_tokens", 0, "greater than or equal to 1"),
        ("max_tokens", 200_000, "max_tokens: 200000 > 64000, which is the maximum allowed"),
        ("temperature", 1.5, "temperature: range: 0..1"),
        ("thinking", {"type": "enabled", "budget_tokens": 10}, "equal to 1024"),
        ("thinking", {"type": "enabled", "budget_tokens": 2048}, "greater than `thinking.budget"),
        ("messages", [], "at least one message is required"),
        ("messages/0/role", "assistant", "all messages|first message must use"),
        ("messages/0/role", "king", "messages.0.role"),
        ("messages/0/role", "system", "Unexpected role"),
        ("messages/0/content", "", "messages.0: all messages must have non-empty content"),
        ("messages/0/content", " ", "text content blocks must contain non-whitespace text"),
        ("messages/0/name", "me", "messages.0.name: Extra inputs"),
        ("messages/1/content/0/text", "", "text content blocks must be non-empty"),
        ("messages/1/content/1/input", "{}", "tool_use.input: Input should be a valid dictionary"),
        ("messages/1/content/1/id", "a b", "tool_use.id: String should match pattern"),
        ("messages/1/content/1", "-", "unexpected `tool_use_id` found in `tool_result` blocks: c1"),
        ("messages/2/content/0", "-", "`tool_use` ids were found without `tool_result` blocks"),
        ("messages/2", "-", "`tool_use` ids were found without `tool_result` blocks"),
        ("tools", "-", "must define tools"),
        ("tools/0/name", "a.b", "tools.0.custom.name: String should match pattern"),
        ("tools/0/name", "", "tools.0.custom.name: String should match pattern"),
        ("tools/0/input_schema", {}, "input_schema.type: Input should be 'object'"),
        ("tools/0/input_schema/anyOf", [], "does not support oneOf, allOf, or anyOf"),
        ("system/0/text", "", "system: text content blocks must be non-empty"),
    ],
    "openai-chat": [
        ("nonsense", 1, "Unknown parameter: 'nonsense'."),
        ("model", "-", "you must provide a model parameter"),
        ("messages", [], "Invalid 'messages': empty array"),
        ("max_tokens", 0, "integer below minimum value"),
        ("max_tokens", 200_000, "max_tokens is too large: 200000. This model supports at most"),
        ("temperature", 3, "Invalid 'temperature'"),
        ("stream_options", {}, "only allowed when 'stream' is enabled"),
        ("messages/0/role", "king", "Invalid value: 'king'. Supported values are"),
        ("messages/1/content", None, "expected a string, got null"),
        ("messages/1/content", [], "empty array"),
        ("messages/2", "-", "must be a response to a preceeding message with 'tool_calls'"),
        ("messages/3", "-", "must be followed by tool messages responding to each"),
        ("messages/2/tool_calls", [], "empty array"),
        ("messages/2/tool_calls/0/id", "x" * 41, "maximum length 40"),
        ("messages/2/tool_calls/0/function/arguments", "{", "not a JSON object"),
        ("messages/2/tool_calls/0/function/arguments", {}, "Invalid type for"),
        ("tools", [], "Invalid 'tools': empty array"),
        ("tools", "-", ""),
        ("tools/0/function/name", "a b", "does not match pattern"),
        ("tools/0/function/name", "x" * 65, "maximum length 64"),
        ("tools/0/function/parameters", {"type": "string"}, "schema must be a JSON Schema of"),
        (
            "tools/0/function/parameters/properties",
            {"a": {"type": "array"}},
            "array schema missing items",
        ),
        ("tools/0/function/strict", True, "'additionalProperties' is required"),
    ],
    "openai-responses": [
        ("nonsense", 1, "Unknown parameter: 'nonsense'."),
        ("input", "-", "Missing required parameter: 'input'."),
        ("input", [], "Invalid 'input': empty array"),
        ("max_output_tokens", 1, "Expected a value >= 16, but got 1 instead."),
        ("max_output_tokens", 200_000, "Expected a value <= 64000, but got 200000 instead."),
        ("input/0/role", "king", "Invalid value: 'king'"),
        ("input/0/content/0/type", "output_text", "Invalid value: 'output_text'"),
        ("input/2/id", "abc", "Expected an ID that begins with 'msg'"),
        ("input/2/content", "", "it is empty"),
        ("input/3", "-", "No tool call found for function call output with call_id c1."),
        ("input/4", "-", "No tool output found for function call c1."),
        ("input/3/call_id", "x" * 65, "maximum length 64"),
        ("input/3/name", "a b", "does not match pattern"),
        ("tools/0/name", "-", "Missing required parameter: 'tools[0].name'"),
    ],
    "gemini": [
        ("nonsense", 1, 'Unknown name "nonsense": Cannot find field.'),
        ("generationConfig", {"nonsense": 1}, "Unknown name \"nonsense\" at 'generation_config'"),
        ("generationConfig", {"maxOutputTokens": 200_000}, "from 1 (inclusive) to 64001"),
        ("generationConfig", {"temperature": 3}, "must be in the range [0.0, 2.0]"),
        ("generationConfig", {"thinkingConfig": {"thinkingBudget": -5}}, "thinking budget -5"),
        ("contents", [], "contents is not specified"),
        ("contents/0/role", "king", "Please use a valid role: user, model."),
        ("contents/0/parts", [], "contents.parts must not be empty"),
        ("contents/0/parts/0", {}, "required oneof field 'data'"),
        ("contents/0/parts/0/text", "", "empty text parameter"),
        ("contents/1", "-", "comes immediately after a function call turn"),
        ("contents/2", "-", "number of function response parts is equal"),
        ("contents/0", "-", "comes immediately after a user turn"),
        ("contents/2/parts/0/functionResponse/response", "text", "google.protobuf.Struct"),
        ("tools/0/functionDeclarations/0/name", "1a", "Invalid function name"),
        (
            "tools/0/functionDeclarations/0/parameters/additionalProperties",
            False,
            'Unknown name "additionalProperties"',
        ),
    ],
}
CASES = [(wire, *case) for wire, cases in CHANGES.items() for case in cases]


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """`body` with the value at `path` put in, or taken away."""
    made: Any = copy.deepcopy(body)
    *way, last = path.split("/")
    place = made
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    key: Any = int(last) if isinstance(place, list) else last
    if value == "-":
        del place[key]
    else:
        place[key] = value
    return made


@pytest.mark.parametrize(("wire", "path", "value", "words"), CASES)
def test_what_the_provider_refuses_is_refused(call, wire, path, value, words) -> None:
    """One thing wrong in a conversation that is right: a 400 in the provider's shape and words."""
    body = changed(CONVERSATIONS[wire], path, value)
    with ModelServer("fine", strict=False) as server:
        answer = call(server.url, CALLS[wire][0], body)
        refused = [str(failure) for failure in server.failures]
    if not words:
        assert answer.status == 200
        return
    assert answer.status == 400
    assert any(part in answer.json["error"]["message"] for part in words.split("|")), answer.json
    assert refused == [answer.json["error"]["message"]]


def test_two_of_one_name_are_refused(call) -> None:
    """Tools of one name, ids of calls that are there twice, and results that are there twice."""
    talk = CONVERSATIONS["anthropic"]
    twice = changed(talk, "tools", talk["tools"] * 2)
    calls = changed(talk, "messages/1/content", talk["messages"][1]["content"] * 2)
    results = changed(talk, "messages/2/content", talk["messages"][2]["content"][:1] * 2)
    chat = CONVERSATIONS["openai-chat"]
    again = changed(chat, "messages", chat["messages"][:4] + chat["messages"][3:])
    with ModelServer("fine", strict=False) as server:
        said = [
            call(server.url, "/v1/messages", body).json["error"]["message"]
            for body in (twice, calls, results)
        ]
        said.append(call(server.url, "/v1/chat/completions", again).json["error"]["message"])
    assert said[0] == "tools: Tool names must be unique."
    assert said[1] == "messages: `tool_use` ids must be unique"
    assert "each `tool_use` must have a single result" in said[2]
    assert said[3] == "Duplicate value for 'tool_call_id' of 'c1' in messages[4]."


@pytest.mark.parametrize("wire", CALLS)
def test_a_wrong_key_is_refused(call, wire) -> None:
    """Where a server has a key, another one is refused as the provider does, and shown nowhere."""
    status = 400 if wire == "gemini" else 401
    with ModelServer("fine", strict=False, terms=Terms(key="right")) as server:
        assert call(server.url, *CALLS[wire], headers={"x-api-key": "right"}).status == 200
        answer = call(server.url, *CALLS[wire], headers={"x-api-key": "wrong-key"})
    assert answer.status == status
    assert "key" in answer.json["error"]["message"].lower()
    assert b"wrong-key" not in answer.body


def test_anthropic_wants_its_headers(call) -> None:
    """Without a key it is a 401, and without the version of the format a 400."""
    path, body = CALLS["anthropic"]
    with ModelServer("fine", strict=False) as server:
        keyless = call(server.url, path, body, headers={"x-api-key": ""})
        bare = call(server.url, path, body, headers={"anthropic-version": None})
    assert (keyless.status, keyless.json["error"]["type"]) == (401, "authentication_error")
    assert (bare.status, bare.json["error"]["type"]) == (400, "invalid_request_error")


def test_a_beta_may_have_parameters_of_its_own(call) -> None:
    """What Claude Code sends under a beta's header is taken, as it is by Anthropic."""
    path, body = CALLS["anthropic"]
    with ModelServer("fine") as server:
        headers = {"anthropic-beta": "context-management-2025-06-27"}
        assert call(server.url, path, {**body, "edits": []}, headers=headers).status == 200


@pytest.mark.parametrize("wire", CALLS)
def test_a_prompt_that_is_too_long_is_refused(call, wire) -> None:
    """More than the model reads is refused in words by which clients know to shorten it."""
    with ModelServer("fine", strict=False, terms=Terms(window=5)) as server:
        answer = call(server.url, *CALLS[wire])
    assert answer.status == 400
    words = ("too long", "maximum context length", "exceeds the maximum number of tokens")
    assert any(part in answer.json["error"]["message"] for part in words)


def test_the_limits_of_known_models(call) -> None:
    """An answer may be as long as the model by that name allows, and no longer."""
    path, body = CALLS["openai-chat"]
    with ModelServer("fine", strict=False) as server:
        for model, most in (("gpt-4o", 16_384), ("gpt-5-mini", 128_000), ("gpt-4-turbo", 4_096)):
            wanted = {**body, "model": model, "max_completion_tokens": most}
            assert call(server.url, path, wanted).status == 200
            answer = call(server.url, path, {**wanted, "max_completion_tokens": most + 1})
            assert f"at most {most} completion tokens" in answer.json["error"]["message"]
        old = call(server.url, path, {**body, "model": "gpt-5", "max_tokens": 5})
    assert "Use 'max_completion_tokens' instead." in old.json["error"]["message"]


def test_a_refusal_comes_out_of_the_with_block(call) -> None:
    """A client that goes on after a refusal cannot hide it from the test."""
    with pytest.raises(Bad, match="Unknown parameter"), ModelServer("fine") as server:
        call(server.url, "/v1/chat/completions", {**CALLS["openai-chat"][1], "nonsense": 1})


def test_unchecked_takes_anything(call) -> None:
    """For a client that is meant to be wrong the rules can be left out."""
    with ModelServer("fine", terms=Terms(checked=False)) as server:
        wrong = {**CALLS["openai-chat"][1], "nonsense": 1}
        assert call(server.url, "/v1/chat/completions", wrong).status == 200


def test_the_parameters_are_those_of_the_libraries() -> None:
    """What the clients' own types have is known here: a new release shows what is missing."""
    from anthropic.types import message_create_params as anthropic
    from google.genai import types as google
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as own

    def keys(kind: Any) -> set[str]:
        return set(kind.__annotations__) | {"stream"}

    assert keys(chat.CompletionCreateParamsBase) <= openai_chat._PARAMETERS
    assert keys(own.ResponseCreateParamsBase) <= responses._PARAMETERS
    assert keys(anthropic.MessageCreateParamsBase) <= anthropic_messages._PARAMETERS
    fields = google.GenerationConfig.model_fields.items()
    assert {field.alias or name for name, field in fields} <= gemini_generate._CONFIG


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ("anthropic", "model: m"),
        ("openai-chat", "The model `m` does not exist or you do not have access to it."),
        ("openai-responses", "The model `m` does not exist or you do not have access to it."),
        ("gemini", "models/m is not found for API version v1beta"),
    ],
)
def test_a_model_that_there_is_not_is_refused(call, wire, words) -> None:
    """Where the server's models are named: a 404 in each provider's words; else any name goes."""
    with ModelServer("fine", strict=False, models=("other",)) as server:
        answer = call(server.url, *CALLS[wire])
    assert answer.status == 404
    assert words in answer.json["error"]["message"]
    for models in ((), ("other", "m")):
        with ModelServer("fine", models=models) as server:
            assert call(server.url, *CALLS[wire]).status == 200


def test_gemini_3_wants_its_signatures_back(call) -> None:
    """The first call of each turn since the user's last words; older turns and models need none."""
    body, path = CONVERSATIONS["gemini"], "/v1beta/models/gemini-3-pro-preview:generateContent"
    place = "contents/1/parts"
    parts = body["contents"][1]["parts"]
    at = next(i for i, part in enumerate(parts) if "functionCall" in part)
    # The conversation goes on behind the call, so that it is the turn that counts.
    going = {**body, "contents": body["contents"][:3]}
    signed = changed(going, f"{place}/{at}/thoughtSignature", "c2ln")
    later = {**going, "contents": [*going["contents"], *_SINCE]}
    with ModelServer(ToolUse("look"), strict=False) as server:
        bare = call(server.url, path, going)
        taken = [call(server.url, path, one).status for one in (signed, later)]
        old = call(server.url, path.replace("gemini-3-pro-preview", "gemini-2.5-pro"), going)
        again = call(server.url, path, signed).json["candidates"][0]["content"]["parts"][0]
    assert (bare.status, taken, old.status) == (400, [200, 200], 200)
    assert "is missing a `thought_signature`" in bare.json["error"]["message"]
    assert again["thoughtSignature"]


_SINCE = [
    {"role": "model", "parts": [{"text": "Done."}]},
    {"role": "user", "parts": [{"text": "Thanks."}]},
]


def test_reasoning_and_what_followed_it_come_together(call) -> None:
    """Responses: neither without the other, as OpenAI refuses it."""
    asked = {"model": "gpt-5-mini", "input": [{"role": "user", "content": "hi"}], "store": False}
    with ModelServer([ToolUse("look"), *["fine"] * 4], strict=False) as server:
        thought, used = call(server.url, "/v1/responses", asked).json["output"]
        result = {"type": "function_call_output", "call_id": used["call_id"], "output": "ok"}

        def go_on(*items: dict[str, Any]) -> Any:
            given = {**asked, "input": [*asked["input"], *items, result]}
            return call(server.url, "/v1/responses", given)

        whole, alone, without = go_on(thought, used), go_on(used), go_on(thought)
        last = call(server.url, "/v1/responses", {**asked, "input": [thought]})
    assert whole.status == 200
    needs = f"'{used['id']}' of type 'function_call' was provided without its required 'reasoning'"
    assert needs in alone.json["error"]["message"]
    assert without.status == 400
    assert "without its required following item" in last.json["error"]["message"]
