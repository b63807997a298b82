"""The four wire formats that the scripted model speaks, one file each behind one Protocol."""

from tacit.testing.wires.anthropic_messages import Anthropic
from tacit.testing.wires.gemini_generate import Gemini
from tacit.testing.wires.openai_chat import OpenAIChat
from tacit.testing.wires.openai_responses import OpenAIResponses
from tacit.testing.wires.wire_format import Answer, Bad, Envelope, Wire, answer_for, read_request

WIRES: tuple[Wire, ...] = (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini())

__all__ = ["WIRES", "Answer", "Bad", "Envelope", "Wire", "answer_for", "read_request"]
