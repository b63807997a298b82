"""One real trial for scripts/test-model: invented commands, with the skills on them and without.

The trial is Tacit's own: pairs in random order, one seed a pair, checks by code, the interval. Only
the agent is another: a model of this size calls no tools and reads no long prompt, so the first
skill that the search finds is put before it, as in `model_questions.py`.
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

from model_library import Question, write
from model_questions import ALONE, TOKENS, WITH_SKILL, loaded
from tacit.agent.sandbox import NoSandbox
from tacit.base.setting_sections import AgentSettings
from tacit.learn.trial.arms import Arms, Side
from tacit.learn.trial.trial import Trial, TrialLimits, TrialPlan
from tacit.learn.trial.trial_records import TrialAbout, open_trials
from tacit.learn.trial.trial_report import Answer
from tacit.learn.trial.trial_run import Ran
from tacit.learn.trial.trial_tasks import Check, Task
from tacit.learn.trial.verifier import Verifier
from tacit.skills.library import Library
from tacit.skills.scopes import Root

SKILLS = "invented-programs"
"""The skills on the invented programs, as one candidate."""


class Invented(Arms, frozen=True):
    """One side has all the skills on invented programs, the other has none."""

    def lay_out(self, side: Side, folder: str) -> None:
        os.mkdir(folder)
        if side == "with":
            write(Path(folder), 0)


class SmallModel:
    """The model, asked once a task."""

    def __init__(self, address: str, title: str, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self.title = title

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        library = Library(work, roots=[Root(skills, "user", "agents")], cache=f"{work}/.cache")
        found = [hit.entry.name for hit in library.search(task.prompt, 1)]
        text = ALONE.format(question=task.prompt)
        if found:
            text = WITH_SKILL.format(question=task.prompt, skill=loaded(library, found[0]))
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0.7, "seed": seed}
        request = urllib.request.Request(  # noqa: S310
            f"{self._address}/v1/chat/completions",
            json.dumps(body | {"model": "local", "max_tokens": TOKENS}).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:  # noqa: S310
                told = json.load(response)
        except OSError as error:
            return Ran(void=str(error))
        said = str(told["choices"][0]["message"]["content"] or "")
        usage = told.get("usage") or {}
        skill = (SKILLS,) if found else ()
        return Ran(answer=said, skills=skill, tokens=int(usage.get("total_tokens", 0)))


def try_out(asked: list[Question], runner: SmallModel, runs: int) -> Answer:
    """The answer of a trial on `asked`, in the home that is set."""
    tasks = tuple(
        Task(id=f"{number:02} {one.skill}", prompt=one.text, checks=(Check(answer=one.answer),))
        for number, one in enumerate(asked, 1)
    )
    about = TrialAbout(
        skill=SKILLS, digest="", agent=runner.title, tasks=tuple(t.id for t in tasks)
    )
    plan = TrialPlan(about, Invented(SKILLS, {}), tasks)
    with open_trials() as records:
        trial = Trial(plan, records, runner, Verifier(NoSandbox(), AgentSettings()))
        for number, run in enumerate(trial.run(TrialLimits(runs)), 1):
            state = {1.0: "success", 0.0: "failed", None: "void"}[run.result.score]
            told = f"{number:3}/{runs} {state:8} {run.side:8} {run.task}"
            print(told, file=sys.stderr, flush=True)
        return trial.answer()


def as_lines(answer: Answer) -> str:
    """The answer, as it can go into the docs."""
    shares = f"{answer.with_skill:.0%} right with, {answer.without:.0%} without"
    return f"{answer.pairs} pairs, {shares}, read in {answer.read}; {answer.says()}"
