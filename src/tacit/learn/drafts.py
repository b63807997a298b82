"""Drafts: findings as skills and facts that say they were made by counting, put into the inbox.

A draft always waits for a person. One subject has one draft: what is learned again under the same
name replaces the draft that waits, or is an edit of the skill that was accepted. Every session that
was counted over gets a line in the ledger, so that the next run leaves it out.
"""

import re
from collections.abc import Iterable
from datetime import date

import msgspec

from tacit.base.display import counted, one_line, shorten
from tacit.base.paths import existing_folder, user_home
from tacit.changes.change import Change, Create, Rewrite, Verdict, acting_as, make_change
from tacit.changes.facts import NewFact, Rationale, fact_change, fact_place_for, fact_text
from tacit.changes.gate import Gate
from tacit.changes.place import fact_places, user_place
from tacit.learn.background.background_gate import background_gate, places_for
from tacit.learn.counted_session import (
    CountedSession,
    counted_sessions,
    is_home,
    known_sessions,
    repository_name,
    subject_keys,
)
from tacit.learn.demands import Finding
from tacit.learn.findings import (
    ChecksFinding,
    HabitsFinding,
    ProcedureFinding,
    TroubleFinding,
    count_findings,
)
from tacit.learn.habits import Hook, Pair
from tacit.learn.ledger import Ledger
from tacit.learn.lint_rules import RuleCount
from tacit.learn.manners import REFUSED_FOR
from tacit.learn.quotations import HOME, Spoken, fact_line, other_quotes
from tacit.learn.rates import SANDBOX, SHELL, TOOL, Rate, Trouble
from tacit.learn.shells import STUB
from tacit.learn.troubles import MISSING
from tacit.skills.skill import suggest_name
from tacit.skills.skill_file import parse_skill
from tacit.traces.store import Store, Stored
from tacit.traces.trace import Trace

_MOST_SAID = 390
"""Characters of a fact's one line; the gate takes a few more."""


class Draft(msgspec.Struct, frozen=True):
    """A skill or a fact to propose, with the sessions that show why."""

    name: str
    text: str
    project: str
    reason: str
    evidence: tuple[str, ...]
    fact: NewFact | None = None
    """The fact, where it is one."""


def draft(finding: Finding, today: date | None = None) -> Draft:
    """The draft for one finding."""
    today = today or date.today()
    where = _project(finding.project, finding.repository)
    if isinstance(finding, Spoken):
        return _fact_draft(finding, where, today)
    match finding:
        case ChecksFinding():
            return _skill_draft(finding, where, today, *_checks(finding, where))
        case HabitsFinding():
            return _skill_draft(finding, where, today, *_habits(finding, where))
        case TroubleFinding():
            return _skill_draft(finding, where, today, *_trouble_skill(finding, where))
        case ProcedureFinding():
            return _skill_draft(finding, where, today, *_procedure(finding, where))
    raise TypeError(type(finding).__name__)


# Facts, in the user's own words.


def _fact_draft(finding: Spoken, where: str, today: date) -> Draft:
    name, says, reason = fact_line(finding, where)
    metadata = {"sessions": ", ".join(finding.sessions[:8]), "draft": "true", "method": "counting"}
    fact = NewFact(
        name=suggest_name(name),
        says=shorten(one_line(says), _MOST_SAID),
        kind="feedback",
        detail=other_quotes(finding),
        metadata=metadata,
    )
    text = fact_text(fact, "distiller", today)
    sessions = counted(len(finding.sessions), "session")
    return Draft(fact.name, text, finding.project, f"{reason} ({sessions})", finding.sessions, fact)


# Skills, with rates.


def _skill_draft(
    finding: Finding, where: str, today: date, name: str, about: str, body: list[str]
) -> Draft:
    sessions = counted(len(finding.sessions), "session")
    name = suggest_name(name)
    lines = [
        "---",
        f"name: {name}",
        f"description: {_yaml(about)}",
        "metadata:",
        "  source: auto-skill",
        "  draft: 'true'",
        f"  learned: '{today.isoformat()}'",
        "  method: counting",
        "---",
        "",
        *body,
        "",
        f"Counted over {sessions}; a draft that nobody has gone through yet.",
    ]
    reason = f"{_why(finding)} ({sessions})"
    return Draft(name, "\n".join(lines) + "\n", finding.project, reason, finding.sessions)


def _why(finding: Finding) -> str:
    match finding:
        case ChecksFinding(rates=(), others=others):
            return "work was done with " + ", ".join(rate.purpose for rate in others)
        case ChecksFinding(rates=rates):
            return "work was checked by " + ", ".join(rate.purpose for rate in rates[:4])
        case HabitsFinding():
            return "how changes were made and committed"
        case TroubleFinding(program=program) if program == MISSING:
            return "what the machine lacks, does not take or stops"
        case TroubleFinding(program=program):
            return f"{program} failed as it was called"
        case ProcedureFinding(goal=goal):
            return f"the same steps led to {goal}"
    return ""


def _checks(finding: ChecksFinding, where: str) -> tuple[str, str, list[str]]:
    if not finding.rates:
        return _commands(finding, where)
    names = ", ".join(dict.fromkeys(rate.purpose for rate in finding.rates[:4]))
    about = (
        f"The commands that check work in {where} ({names}), in order, what they object to and"
        f" what fails. Use before calling a change in {where} done, and before a commit or a pull"
        " request there."
    )
    body = [f"# Checking work in {where}", "", "Run, in this order:", ""]
    body += [f"{number}. {_rate(rate)}" for number, rate in enumerate(finding.rates, 1)]
    says = [rate for rate in finding.rates if rate.says]
    fine = (f"- {_code(rate.purpose)} is fine when it says {_code(rate.says)}." for rate in says)
    body += _section("## How to check", fine)
    body += _hook(finding.hooked) if finding.hooked else []
    often = (
        f"- {_code(path)}, in {n} of {finding.changing} sessions" for path, n in finding.companions
    )
    body += _section("Often changed along with the work:", often)
    others = (f"- {_rate(rate)}" for rate in finding.others)
    body += _section("Other commands of the project:", others) + _logs(finding)
    body += _section("## What they object to most", map(_rule, finding.rules))
    body += _section("## What fails", map(_trouble, finding.troubles))
    return f"{where}-checks", about, body


def _logs(finding: ChecksFinding) -> list[str]:
    read = (f"- {_code(log)}, in {counted(n, 'session')}" for log, n in finding.logs)
    return _section("Logs that were looked into:", read)


def _hook(hook: Hook) -> list[str]:
    """What a hook runs and what it wants."""
    rate = hook.rate
    line = (
        f"A hook runs checks at {_code(rate.purpose)}: it failed {rate.failed} of"
        f" {rate.runs} times, in {counted(len(rate.sessions), 'session')}"
    )
    line += f", at {', '.join(map(_code, hook.steps))}" if hook.steps else ""
    wants = [_rule(rule) for rule in hook.rules]
    mend = "Mend what it names and try again; do not skip it."
    return ["", f"{line}. {mend}", *(["", "What it objected to:", "", *wants] if wants else [])]


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """Lines under a title; nothing where there are none."""
    told = list(lines)
    return ["", title, "", *told] if told else []


def _commands(finding: ChecksFinding, where: str) -> tuple[str, str, list[str]]:
    names = ", ".join([*(rate.form for rate in finding.others), *(log for log, _ in finding.logs)])
    about = (
        f"The commands and logs that work is done with in {where}, beside what everybody has"
        f" ({names}), when they are run and how often they fail. Use when something was changed or"
        f" does not work in {where}."
    )
    body = _section(f"# Commands of {where}", (f"- {_rate(rate)}" for rate in finding.others))[1:]
    body = (body or [f"# Logs of {where}"]) + _logs(finding)
    body += _hook(finding.hooked) if finding.hooked else []
    body += _section("## What fails", map(_trouble, finding.troubles))
    return f"{where}-commands", about, body


def _habits(finding: HabitsFinding, where: str) -> tuple[str, str, list[str]]:
    what = [
        *(["which files change together"] if finding.pairs else []),
        *(["which changed files stay out of commits"] if finding.left_out else []),
        *([f"how commit messages begin ({said.shape})"] if (said := finding.messages) else []),
        *(["what follows a push"] if finding.pushed else []),
    ]
    about = (
        f"How changes are made in {where}: {', '.join(what)}. Use when changing files in {where},"
        " and before staging or committing there."
    )
    body = [f"# Making changes in {where}"]
    if finding.pairs:
        body += ["", "When one of these is changed, look whether the other needs the same:", ""]
        body += [f"- {_pair(pair)}" for pair in finding.pairs]
    if finding.left_out:
        body += ["", "Not committed: leave these out and stage only the files of the task.", ""]
        body += [
            f"- {_code(one.path)}, left out in {counted(len(one.sessions), 'session')}"
            for one in finding.left_out
        ]
    if said := finding.messages:
        kinds = ", ".join(_code(kind) for kind in said.kinds)
        scopes = ", ".join(_code(scope) for scope in said.scopes)
        most = "most" if said.most else "some"
        often = f" ({most} with {kinds}{f'; scopes: {scopes}' if scopes else ''})" if kinds else ""
        line = f"Commit messages begin as {_code(said.shape)}{often}, e.g."
        body += ["", f"{line} {_code(said.example)}: {said.count} of {said.of}."]
    if then := finding.pushed:
        of = counted(len(then.sessions), "session")
        body += _section(
            "What follows `git push`:",
            (f"- {_code(form)}, in {n} of {of} that pushed" for form, n in then.then),
        )
    return f"{where}-changes", about, body


def _pair(pair: Pair) -> str:
    often = f"changed together in {len(pair.sessions)} of {counted(pair.of, 'session')}"
    named = "the user had to point the second out" if pair.told else often
    return f"{_code(pair.one)} and {_code(pair.other)} too: {named}"


def _rate(rate: Rate) -> str:
    sessions = counted(len(rate.sessions), "session")
    how = (
        f"failed {rate.failed} of {rate.runs} runs"
        if rate.failed
        else f"worked in all {rate.runs} runs"
    )
    old = "" if rate.worked else "; some of what it finds may be older than a change"
    place = f" in {_code(rate.folder + '/')}" if rate.folder else ""
    after = f", mostly after a change in {_code(rate.after)}" if rate.after else ""
    return f"{_code(rate.form)}{place}: {how}, in {sessions}{after}{old}"


def _rule(rule: RuleCount) -> str:
    often = f"{counted(rule.count, 'time')} in {counted(len(rule.sessions), 'session')}"
    return f"- {_code(rule.rule)}, {often}" + (f": {rule.example}" if rule.example else "")


def _trouble(trouble: Trouble) -> str:
    sessions = counted(len(trouble.sessions), "session")
    line = (
        f"- {_code(trouble.form)} failed {trouble.failed} of {trouble.runs} times in {sessions}:"
        f" {_code(trouble.error)}."
    )
    if trouble.program == SHELL:
        return (
            f"- {trouble.form[:1].upper()}{trouble.form[1:]}: {counted(trouble.failed, 'call')} in"
            f" {sessions} failed with {_code(trouble.error)}. What works: {trouble.works[0]}."
        )
    if trouble.program == TOOL:
        return line.replace("- ", "- The agent's own tool ", 1)
    if trouble.error.startswith(REFUSED_FOR):
        words = one_line(trouble.error.removeprefix(REFUSED_FOR)).strip("\"'. ")
        line = f"- {_code(trouble.form)} was refused in {sessions}: the user said “{words}”."
    if trouble.other and trouble.program == SANDBOX:
        _, count, runs = trouble.other
        line = line.replace("failed", "failed in the host's sandbox", 1)
        line += (
            f" With escalated permissions the same worked {count} of {runs} times: ask for them."
        )
    elif trouble.other:
        form, count, runs = trouble.other
        line += f" {_code(form)} worked {count} of {runs} times."
    elif trouble.instead:
        worked = "; ".join(
            f"{_code(form)} ({counted(count, 'session')})" for form, count in trouble.instead
        )
        line += f" What then worked: {worked}."
    if trouble.is_absent and STUB.search(trouble.error.partition(": ")[2]):
        line += " Windows has only a stub of that name, which does nothing."
    elif trouble.is_absent and not trouble.works:
        line += " Nothing was seen to do its work."
    if trouble.there:
        line += f" In {counted(trouble.there, 'other session')} it was there."
    return line


def _trouble_skill(finding: TroubleFinding, where: str) -> tuple[str, str, list[str]]:
    program = finding.program
    if program in (SANDBOX, MISSING):
        return _machine_skill(finding, where)
    works = list(dict.fromkeys(form for trouble in finding.troubles for form in trouble.works))
    standing = next((t for t in finding.troubles if t.standing), finding.troubles[0])
    if not works:
        about = (
            f"{program} fails in {where}: {shorten(standing.error, 160)}. Use before {program} in"
            f" {where}, or when it fails."
        )
        body = [f"# `{program}` in {where}", "", *map(_trouble, finding.troubles), ""]
        ignored = "These files are not committed: leave them out, and do not force them in."
        stays = "Nothing was seen to mend it. Do not skip or force it: tell the user."
        body.append(ignored if "ignored by" in standing.error else stays)
        return f"{where}-{program}", about, body
    about = (
        f"How {program} is called in {where}: as {works[0]}, and which calls of it fail there. Use"
        f" before running {program} in {where}, or when it fails."
    )
    body = [f"# Using `{program}` in {where}", "", "Call it so:", ""]
    body += [f"- {_code(form)}" for form in works[:4]]
    body += ["", "## What fails", "", *map(_trouble, finding.troubles)]
    return f"{where}-{program}", about, body


def _machine_skill(finding: TroubleFinding, where: str) -> tuple[str, str, list[str]]:
    """What holds for whatever is done on the machine."""
    lines = [*map(_trouble, finding.troubles)]
    if finding.program == SANDBOX:
        what = finding.troubles[0].form
        about = (
            f"What fails in the host's sandbox where {where} is worked on ({what}) and works with"
            f" escalated permissions. Use before running one of them in {where}, or when it is not"
            " permitted."
        )
        return f"{where}-sandbox", about, [f"# The sandbox in {where}", "", *lines]
    lacks = "; ".join(
        f"{'the tool ' if t.program == TOOL else ''}{t.of_machine}"
        + (f" ({t.works[0]})" if t.works else "")
        for t in finding.troubles
    )
    machine = f"this {finding.system} machine" if finding.system else f"the machine of {where}"
    about = (
        f"What {machine} lacks, does not take or stops, and in brackets what works: {lacks}. Use"
        " before one of these, or when it fails."
    )
    return f"{finding.system or where}-programs", about, [f"# On {machine}", "", *lines]


_WORK_NAMES = (
    (re.compile(r"\b(?:tag|release|publish|version|bump)\b"), "release"),
    (re.compile(r"\b(?:deploy|rollout|apply|provision)\b"), "deployment"),
    (re.compile(r"\bgh pr create\b"), "pull-request"),
    (re.compile(r"\bmigrat"), "migration"),
    (re.compile(r"DiscussionComment"), "discussion-reply"),
    (re.compile(r"ReviewThread"), "review-reply"),
)


def _procedure(finding: ProcedureFinding, where: str) -> tuple[str, str, list[str]]:
    goal, total = finding.goal, len(finding.sessions)
    work = next((name for sign, name in _WORK_NAMES if sign.search(goal) and not finding.tool), "")
    own = goal.rpartition("__")[2]  # without the server that a tool is of
    title = work.replace("-", " ") or one_line(re.sub(r"[_-]+", " ", own))
    steps = ", ".join(step.key for step in finding.steps[:6])
    what = f"to {title}" if finding.tool else f"of a {title}"
    when = f"asked to {title}" if finding.tool else f"a {title} is asked for"
    about = (
        f"The steps {what} in {where}, in order: {steps}. Use when {when} in {where}, before"
        f" {goal}."
    )
    body = [f"# {title[:1].upper()}{title[1:]} in {where}", "", "In this order:", ""]
    for number, step in enumerate(finding.steps, 1):
        part = "" if step.sessions == total else f" (in {step.sessions} of {total} sessions)"
        does = "edit " if step.key.startswith("edit ") else ""
        body.append(f"{number}. {does}{_code(step.text)}{part}")
    if re.search(r"<\w+>", " ".join(body)):
        body += ["", "What stands in angle brackets was different each time."]
    body += _section("## What fails", map(_trouble, finding.troubles))
    return f"{where}-{work}" if work else own, about, body


def _project(folder: str, repository: str) -> str:
    """The project's name, where it is one; a folder may be called anything, and somebody's home is
    called after the repository that it is a checkout of."""
    home = is_home(folder)
    if home and not repository:
        return HOME
    name = repository.rpartition("/")[2] if home else repository_name(folder)
    return name if re.fullmatch(r"[\w.+-]{1,60}", name) else "this project"


def _code(text: str) -> str:
    """Text as code on one line, whatever backticks are in it."""
    text = shorten(one_line(text), 300)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _yaml(text: str) -> str:
    return "'" + shorten(one_line(text), 1000).replace("'", "''") + "'"


COUNTING = "counting"
_MOST_BESIDE = 1000
"""Sessions of other projects that are asked what the machine lacks."""


def draft_skills(sessions: Iterable[Trace | CountedSession]) -> list[Draft]:
    """What can be learned from sessions by counting, without a model; nothing is proposed."""
    return [draft(finding) for finding in count_findings(sessions)]


class ProposedDraft(msgspec.Struct, frozen=True):
    """A draft and what the gate said to it."""

    draft: Draft
    verdict: Verdict | None = None
    """None in a dry run."""


def draft_sessions(
    store: Store, ledger: Ledger, chosen: list[Stored], *, dry_run: bool = False
) -> list[ProposedDraft]:
    """Draft what `chosen` show, together with the other sessions of their projects, and of the
    machine with those of the others.

    Every session of `chosen` gets a line in the ledger, so that the next run leaves it out.
    """
    subjects = {key for stored in chosen for key in subject_keys(stored.head)}
    every = store.sessions(limit=10_000) if chosen else []
    related = [stored.id for stored in every if subject_keys(stored.head) & subjects]
    new = {stored.id for stored in chosen}
    beside = [stored.id for stored in every if not subject_keys(stored.head) & subjects]
    findings = count_findings(
        counted_sessions(store, related), known_sessions(store, beside[:_MOST_BESIDE])
    )
    found = [finding for finding in findings if new & set(finding.sessions)]
    drafts = [draft(finding) for finding in found]
    done = [ProposedDraft(d, None if dry_run else propose_draft(d)) for d in drafts]
    if not dry_run:
        _record(ledger, chosen, done)
    return done


def propose_draft(made: Draft) -> Verdict:
    """Put a draft before the user: it waits in the inbox, whatever the other settings say.

    A draft of the same name that waits there gives way to it; a skill of that name that was learned
    before is edited.
    """
    project = existing_folder(made.project)
    places = fact_places(project or user_home()) if made.fact else places_for(project)
    gate = background_gate("distiller", places)
    with acting_as("distiller"):
        if made.fact is not None:
            root = fact_place_for(places, made.fact.kind).root
            why = Rationale(reason=made.reason, evidence=made.evidence)
            change = fact_change(gate, root, made.fact, why)
        else:
            change = _skill_change(gate, made)
        waiting = [p for p in gate.inbox.waiting(change.root) if _same_subject(p.change, change)]
        verdict = gate.propose(change)
    for proposal in waiting:
        if verdict.outcome == "proposed" and proposal.id != verdict.change:
            gate.inbox.remove(proposal.id)
    return verdict


def _skill_change(gate: Gate, made: Draft) -> Change:
    root = gate.open_place().place.root
    now = gate.state_of(made.name, root)
    if not now.is_live and _learned_for_all(gate, made.name):
        root = user_place().root
        now = gate.state_of(made.name, root)
    files = {"SKILL.md": made.text.encode()}
    return make_change(
        made.name,
        Rewrite(files) if now.is_live else Create(files),
        reason=made.reason,
        evidence=made.evidence,
        root=root,
        base=now.head.id if now.is_live and now.head else "",
    )


def _learned_for_all(gate: Gate, name: str) -> bool:
    """Whether an earlier draft of this name was accepted among the user's own skills."""
    file = gate.state_of(name, user_place().root).contents.files.get("SKILL.md")
    return file is not None and parse_skill(file.data, name).learned


def _same_subject(old: Change, new: Change) -> bool:
    return old.actor == new.actor and old.skill == new.skill


def _record(ledger: Ledger, chosen: Iterable[Stored], done: list[ProposedDraft]) -> None:
    shown_by: dict[str, list[ProposedDraft]] = {}
    for proposed in done:
        for session in proposed.draft.evidence if proposed.verdict is not None else ():
            shown_by.setdefault(session, []).append(proposed)
    for stored in chosen:
        own = shown_by.get(stored.id, [])
        waiting = [p for p in own if p.verdict and p.verdict.outcome == "proposed"]
        if waiting:
            names = ", ".join(p.draft.name for p in waiting)
            changes = tuple(p.verdict.change for p in waiting if p.verdict)
            ledger.record(stored, COUNTING, "proposed", f"drafts in the inbox: {names}", changes)
        elif own and own[0].verdict is not None:
            ledger.record(stored, COUNTING, "refused", own[0].verdict.explain())
        else:
            reason = "no lasting wish, no failure that recurs, and no steps that recur"
            ledger.record(stored, COUNTING, "nothing", reason)
