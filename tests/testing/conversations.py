"""Requests in the four wire formats, as small as they can be and whole conversations."""

from typing import Any

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES = {"model": "m", "input": "hi"}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
GEMINI_ROUTE = "/v1beta/models/m:"
CALLS = {
    "openai-chat": ("/v1/chat/completions", CHAT),
    "openai-responses": ("/v1/responses", RESPONSES),
    "anthropic": ("/v1/messages", {**CHAT, "max_tokens": 10}),
    "gemini": (f"{GEMINI_ROUTE}generateContent", GEMINI),
}

CONVERSATIONS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "read it"}]},
            {
                "role": "assistant",
                "content": "ok",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path": "a"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "text of a"},
            {"role": "user", "content": "again"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "d", "parameters": {"type": "object"}},
            }
        ],
    },
    "openai-responses": {
        "model": "m",
        "instructions": "be brief",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "read it"}]},
            {"type": "reasoning", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "ok"}],
            },
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "read",
                "arguments": '{"path": "a"}',
            },
            {"type": "function_call_output", "call_id": "c1", "output": "text of a"},
            {"type": "message", "role": "user", "content": "again"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "d",
                "parameters": {"type": "object"},
            }
        ],
    },
    "anthropic": {
        "model": "m",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "be brief"}],
        "messages": [
            {"role": "user", "content": "read it"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "ok"},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "text of a"}],
                    },
                    {"type": "text", "text": "again"},
                ],
            },
        ],
        "tools": [{"name": "read", "description": "d", "input_schema": {"type": "object"}}],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "read it"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "ok"},
                    {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "c1",
                            "name": "read",
                            "response": {"output": "text of a"},
                        }
                    }
                ],
            },
            {"role": "user", "parts": [{"text": "again"}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "d", "parameters": {"type": "object"}}
                ]
            }
        ],
    },
}
