"""tau-bench and tau2-bench: the results of their runs, a simulation each, with its reward.

tau-bench writes a list of `{task_id, reward, info, traj, trial}`, tau2-bench an object with a list
`simulations` and what they have in common beside it, or a file for each simulation. An agent
without tools (`act`, `react`) writes its calls in words, and the user tells it the results.
"""

from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import Call, Message, Result, message_of
from tacit.traces.conversation_files import ConversationFiles, verdict
from tacit.traces.host import Source, stated_outcome

_TALK = {"messages", "ticks"}
_OUTPUT = "API output: "


class TauBench(ConversationFiles):
    name = "tau-bench"
    title = "tau-bench"
    precedence = 62

    def claims(self, record: Any) -> bool:
        run = values.mapping(record)
        if "task_id" not in run:
            return False
        return "traj" in run or bool("termination_reason" in run and run.keys() & _TALK)

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        header = self.layout(source.path).header
        for record in records:
            run = values.mapping(record)
            task, trial = values.text(run.get("task_id")), values.text(run.get("trial"))
            reward = values.mapping(run.get("reward_info")).get("reward", run.get("reward"))
            info = values.mapping(header.get("info"))
            agent = values.mapping(info.get("agent_info"))
            setting = values.mapping(info.get("environment_info"))
            into.about(
                session=values.string(run.get("id")),
                title=f"task {task}, trial {trial}",
                model=values.string(agent.get("llm")),
                verdict=verdict("reward", reward),
            )
            tools = list(values.mapping(setting.get("tool_defs")).values())
            into.given(values.string(setting.get("policy")), tools)
            into.cost_in_all(values.amount(run.get("agent_cost")))
            yield from self._messages(run, into)

    def _messages(self, run: dict[str, Any], into: Assembler) -> Iterator[None]:
        found = values.items(run.get("traj")) or values.items(run.get("messages"))
        if not found and run.get("ticks"):
            into.passed("attachment", len(values.items(run.get("ticks"))))  # speech, not text
        for item in found:
            message = values.mapping(item)
            said = message_of(message)
            if said is None:
                into.passed("bad-record")
                continue
            if message.get("role") == "user":  # the simulated user's own tools are no agent's
                said.calls = []
            if message.get("requestor") == "user":
                continue
            _read_words(said)
            if message.get("error") is True:
                said.results = [result._replace(failed=True) for result in said.results]
            tokens = values.mapping(message.get("usage"))
            if message.get("role") == "assistant" and tokens:
                into.used(values.usage(tokens, "prompt_tokens", "completion_tokens"))
            said.tell(into)
            yield


def _read_words(said: Message) -> None:
    """Take the call or the result out of the words in which it is written."""
    text = said.text
    if said.role == "user" and text.startswith(_OUTPUT):
        result = Result("", *stated_outcome(text.removeprefix(_OUTPUT)))
        said.role, said.texts, said.results = "tool", [], [result]
    elif said.role == "assistant" and not said.calls and "Action:" in text:
        thought, _, action = values.take_tagged(text, "think")[0].rpartition("Action:")
        call = values.mapping(values.decoded_json(action.strip()))
        name, given = values.string(call.get("name")), values.mapping(call.get("arguments"))
        if name == "respond":
            said.texts = [values.text(given.get("content"))]
        elif name:
            said.texts = [thought.strip().removeprefix("Thought:").strip()]
            said.calls = [Call("", name, given)]


HOSTS = (TauBench(),)
