"""The pages: for each, the answers that it shows and the template that shows them.

A handler asks (`answers.py`), in a thread, and fills a template. A write comes as a form of ours,
asks the command that does it, and leads back with a notice, which holds the way to undo it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tacit.base.clock import ago
from tacit.base.display import amount, dollars
from tacit.base.errors import NotFound, TacitError
from tacit.base.paths import with_tilde
from tacit.skills.library import KeptLibrary, at_hand
from tacit.ui.web import answers
from tacit.ui.web.answers import ask
from tacit.ui.web.page_guard import CSRF_FIELD, PageKeys
from tacit.ui.web.page_parts import bar_chart, diff_rows, interval_chart, markdown_html

PAGE = 50
_MOST_AT_ONCE = 1000
_KEPT = ("q", "all")
"""What a list was asked for beside its page."""
_LIVE_SECONDS = 1.0
NAVIGATION = (
    ("/", "Overview"),
    ("/inbox", "Inbox"),
    ("/skills", "Skills"),
    ("/sessions", "Sessions"),
    ("/jobs", "Jobs"),
    ("/cost", "Cost"),
    ("/memory", "Memory"),
    ("/schedules", "Schedules"),
    ("/settings", "Settings"),
    ("/doctor", "Doctor"),
)
Data = dict[str, Any]


def make_templates(keys: PageKeys) -> Environment:
    """The templates; what they show is escaped, whatever it is."""
    made = Environment(
        loader=PackageLoader("tacit.ui.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "navigation": NAVIGATION,
        "csrf": keys.form,
        "csrf_field": CSRF_FIELD,
        "zip": zip,
    }
    filters: dict[str, Callable[..., Any]] = {
        "ago": _ago,
        "minute": _minute,
        "markdown": markdown_html,
        "dollars": lambda value: dollars(value or 0.0),
        "amount": amount,
        "home": with_tilde,
        "short": lambda text: str(text)[-8:],
        "query": urlencode,
        "diff": diff_rows,
        "typed": setting_text,
    }
    made.filters |= filters
    return made


def _ago(at: str | None) -> str:
    return ago(datetime.fromisoformat(at), datetime.now(UTC)) if at else ""


def _minute(at: str | None) -> str:
    """A moment as commands print it, in the time of this machine."""
    return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}" if at else ""


class Pages:
    """The handlers of one server."""

    def __init__(self, keys: PageKeys) -> None:
        self._keys = keys
        self._templates = make_templates(keys)
        self._kept = KeptLibrary(os.getcwd(), fresh=0.0)
        self.stopping = asyncio.Event()

    def routes(self) -> list[Route]:
        """Every page, and every write."""
        shown: dict[str, Callable[[Request], Data]] = {
            "/": overview,
            "/inbox": inbox,
            "/inbox/{id}": proposal,
            "/skills": skills,
            "/skills/{name}": skill,
            "/skills/{name}/diff": skill_diff,
            "/skills/{name}/lines": skill_lines,
            "/sessions": sessions,
            "/sessions/{id}": session,
            "/sessions/{id}/digest": digest,
            "/jobs": jobs,
            "/jobs/{id}": job,
            "/cost": cost,
            "/memory": memory,
            "/schedules": schedules,
            "/settings": settings,
            "/doctor": doctor,
        }
        written: dict[str, Callable[[Request, FormData], Any]] = {
            "/inbox/accept": accept,
            "/inbox/reject": reject,
            "/inbox/edit": edit_and_accept,
            "/undo": undo,
            "/skills/do": change_skill,
            "/jobs/do": change_job,
            "/memory/forget": forget_fact,
            "/schedules/do": change_schedule,
            "/settings/do": change_setting,
        }
        return [
            *(Route(path, self._page(found)) for path, found in shown.items()),
            *(Route(p, self._write(f), methods=["POST"]) for p, f in written.items()),
            Route("/events", self._events),
        ]

    def _page(self, found: Callable[[Request], Data]) -> Callable[[Request], Awaitable[Response]]:
        def answer(request: Request) -> Data:
            with at_hand(self._kept):
                return found(request)

        async def handler(request: Request) -> Response:
            data = await run_in_threadpool(answer, request)
            part = request.headers.get("hx-request") == "true" and "part" in data
            return self._render(request, data["part"] if part else f"{found.__name__}.html", data)

        return handler

    def _write(
        self, write: Callable[[Request, FormData], Any]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            form = await request.form(max_files=0, max_fields=2000)
            if not self._keys.is_form(form.get(CSRF_FIELD)):
                raise HTTPException(403, "This form is not one of this page's.")
            back = str(form.get("back") or "/")
            try:
                said = await run_in_threadpool(write, request, form)
            except TacitError as error:
                said = {"said": error.explain(), "bad": "1"}
            where = back if back.startswith("/") and not back.startswith("//") else "/"
            return RedirectResponse(f"{where}{'&' if '?' in where else '?'}{urlencode(said)}", 303)

        return handler

    async def _events(self, request: Request) -> Response:
        async def news() -> AsyncIterator[bytes]:
            known = await run_in_threadpool(answers.change_mark)
            yield b": here\n\n"
            while not self.stopping.is_set() and not await request.is_disconnected():
                await asyncio.sleep(_LIVE_SECONDS)
                mark = await run_in_threadpool(answers.change_mark)
                yield b"event: changed\ndata: 1\n\n" if mark != known else b": still here\n\n"
                known = mark

        return StreamingResponse(news(), media_type="text/event-stream")

    def _render(self, request: Request, template: str, data: Data, status: int = 200) -> Response:
        shown = {
            "path": request.url.path,
            "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            "said": request.query_params.get("said", ""),
            "bad": request.query_params.get("bad", ""),
            "undo": dict(parse_qsl(request.query_params.get("undo", ""))),
            **data,
        }
        text = self._templates.get_template(template).render(shown)
        return HTMLResponse(text, status)

    async def not_served(self, request: Request, error: Exception) -> Response:
        """What is shown where something is not there, or cannot be done."""
        if isinstance(error, HTTPException):
            what, status = str(error.detail), error.status_code
        elif isinstance(error, TacitError):
            what, status = error.explain(), 404 if isinstance(error, NotFound) else 400
        else:
            what, status = f"{type(error).__name__}: {error}", 500
        return self._render(request, "error.html", {"what": what}, status)


def _page_number(request: Request) -> int:
    number = request.query_params.get("page", "1")
    return max(1, int(number)) if number.isdecimal() and len(number) < 6 else 1


def _span(request: Request) -> str:
    """The options of a command that give the rows of the page that is asked for, and one more,
    which says whether there is another page."""
    return f"-n {PAGE + 1} --skip {(_page_number(request) - 1) * PAGE}"


def _paged(rows: list[Any], request: Request, total: int = 0) -> Data:
    """The rows of the page that is asked for, and where the others are; `total`, where known."""
    at = _page_number(request)
    asked = {k: v for k, v in request.query_params.items() if k in _KEPT}
    last = -(-total // PAGE) if total else at + (len(rows) > PAGE)
    return {"rows": rows[:PAGE], "total": total, "page": at, "last": last, "asked": asked}


def overview(request: Request) -> Data:
    """What did it learn, does it help, what did it cost."""
    waiting = len(ask("inbox -n 1")["waiting"])
    learned = [v for v in ask("log -n 30")["versions"] if v["actor"] not in ("user", "agent")]
    helped = ask("list --origin learned --used -n 10")
    return {
        "waiting": waiting,
        "learned": learned[:10],
        "helped": helped["skills"],
        "used": helped["total"],
        "unused": helped["unused"],
        **_cost_data("30"),
    }


def inbox(request: Request) -> Data:
    everything = bool(request.query_params.get("all"))
    found = ask(f"inbox {_span(request)}{' --all' if everything else ''}")
    kinds: dict[str, list[str]] = {}
    for one in found["waiting"]:
        kinds.setdefault(f"{one['kind']} by {one['actor']}", []).append(one["id"])
    return {
        "part": "inbox_rows.html",
        "marks": found["marks"],
        "notices": found["notices"],
        "kinds": {kind: ids[:_MOST_AT_ONCE] for kind, ids in kinds.items() if len(ids) > 1},
        "everything": everything,
        **_paged(found["proposals"], request, 0 if everything else len(found["waiting"])),
    }


def proposal(request: Request) -> Data:
    found = ask("inbox", request.path_params["id"])
    text = answers.proposed_text(found["proposal"])
    waiting = [one["id"] for one in found["waiting"]]
    at = waiting.index(found["proposal"]["id"]) if found["proposal"]["id"] in waiting else -1
    return {
        **found,
        "text": text,
        "body": answers.body_of(text) if text is not None else "",
        "previous": waiting[at - 1] if at > 0 else "",
        "next": waiting[at + 1] if 0 <= at < len(waiting) - 1 else "",
    }


def skills(request: Request) -> Data:
    query = request.query_params.get("q", "").strip()
    if query:
        rows = [hit["skill"] for hit in ask("search -n 20", query).get("results", [])]
        return {"part": "skill_rows.html", "q": query, **_paged(rows, request)}
    found = ask(f"list {_span(request)}")
    return {"part": "skill_rows.html", "q": "", **_paged(found["skills"], request, found["total"])}


def skill(request: Request) -> Data:
    name = request.query_params.get("at") or request.path_params["name"]
    shown = ask("show", name)
    try:
        life = ask("history -n 0", name)
    except NotFound:  # a folder that lies in no library
        life = {"events": [], "figures": None, "weeks": [], "probation": None, "versions": []}
    trial = _asked_quietly("trial show", name)
    effect = trial["answer"]["success"] if trial else None
    count = len(life["weeks"])
    weeks = {f"{count - n - 1} weeks ago": uses for n, uses in enumerate(life["weeks"])}
    chart = bar_chart(list(weeks), list(weeks.values()))
    return {
        **shown,
        "name": name,
        "life": life,
        "versions": life["versions"],
        "weeks": weeks,
        "chart": chart if any(weeks.values()) else "",
        "trial": trial.get("answer"),
        "interval": interval_chart(effect["low"], effect["mean"], effect["high"]) if effect else "",
        "first_files": shown["files"][:200],
    }


def skill_lines(request: Request) -> Data:
    """What supports each line of a skill: looked up when somebody opens it."""
    return {"lines": _asked_quietly("why", request.path_params["name"]).get("lines", [])}


def _asked_quietly(command: str, name: str) -> Data:
    """An answer that there need not be."""
    try:
        return dict(ask(command, name))
    except TacitError:
        return {}


def skill_diff(request: Request) -> Data:
    name = request.path_params["name"]
    old, new = request.query_params.get("old", ""), request.query_params.get("new", "")
    if not old:
        raise NotFound("no version was named", "choose two on the skill's page")
    return {"name": name, "old": old, "new": new, "diff": answers.version_diff(name, old, new)}


def sessions(request: Request) -> Data:
    query = request.query_params.get("q", "").strip()
    hits = ask(["sessions", "-n", "100", f"--search={query}"]).get("steps", []) if query else []
    rows = [] if query else ask(f"sessions {_span(request)}")["sessions"]
    return {"part": "session_rows.html", "q": query, "hits": hits, **_paged(rows, request)}


def session(request: Request) -> Data:
    name = request.path_params["id"]
    shown = ask("session", name)
    first = next((turn["prompt"] for turn in shown["turns"] if turn["prompt"]), "")
    return {
        **shown,
        "title": shown["session"]["title"] or first or shown["session"]["session"],
        "why": ask("why", name),
        "corrected": {one["turn"] for one in shown["corrections"]},
    }


def digest(request: Request) -> Data:
    return {"digest": ask("session --digest", request.path_params["id"])}


def jobs(request: Request) -> Data:
    found = ask(f"jobs {_span(request)}")
    return {"part": "job_rows.html", **_paged(found["jobs"], request)}


def job(request: Request) -> Data:
    return {"job": ask("jobs show", request.path_params["id"])}


def cost(request: Request) -> Data:
    days = request.query_params.get("days", "30")
    return _cost_data(days if days.isdecimal() and 0 < int(days) <= 3650 else "30")


def _cost_data(days: str) -> Data:
    report = ask(["cost", f"--days={days}"])
    by_day = {day: spent["money"] for day, spent in report["by_day"].items()}
    limit = report["budget"]["money"]
    chart = bar_chart(list(by_day), list(by_day.values()), limit) if by_day else ""
    return {"report": report, "chart": chart}


def memory(request: Request) -> Data:
    return {"facts": ask("memory list")["facts"]}


def schedules(request: Request) -> Data:
    return {"found": ask("schedule list"), "runs": ask("schedule history --limit 50")["runs"]}


def settings(request: Request) -> Data:
    found = ask("config")
    sections: dict[str, list[Data]] = {}
    for one in found["settings"]:
        sections.setdefault(one["key"].partition(".")[0], []).append(one)
    return {"found": found, "sections": sections}


def doctor(request: Request) -> Data:
    """The page is there at once, and asks for what the checks find, which takes longer."""
    found = ask("doctor") if request.query_params.get("now") else {}
    return {"part": "doctor_findings.html", "found": found}


# Writes: what was done, for the notice, and the change that can be taken back.


def _verdict_notice(verdicts: list[Data], done: str) -> Data:
    landed = [v for v in verdicts if v["outcome"] == "applied"]
    refused = [v["refusal"]["reason"] for v in verdicts if v["refusal"]]
    said = f"{done}: {', '.join(dict.fromkeys(v['skill'] for v in landed))}" if landed else ""
    text = ". ".join(filter(None, (said, *refused)))
    bad = {"bad": "1"} if refused else {}
    back = " ".join(v["change"] for v in reversed(landed))
    return {"said": text, **bad, **(_undo("/undo", change=back) if landed else {})}


def _undo(path: str, **fields: str) -> Data:
    """What a notice's button sends to take back what was done."""
    return {"undo": urlencode({"path": path, **fields})}


def accept(request: Request, form: FormData) -> Data:
    ids = str(form["id"]).split()
    return _verdict_notice(ask("accept", *ids)["verdicts"], "Accepted")


def reject(request: Request, form: FormData) -> Data:
    one = str(form["id"])
    if form.get("undo"):
        ask("reject --undo", one)
        return {"said": "It waits again."}
    ask(["reject", f"--reason={form.get('reason', '')}"], one)
    said = "Rejected. The same idea does not come back."
    return {"said": said, **_undo("/inbox/reject", id=one, undo="1")}


def edit_and_accept(request: Request, form: FormData) -> Data:
    done = answers.accept_edited(str(form["id"]), str(form["text"]))
    return _verdict_notice(done["verdicts"], "Accepted as you wrote it")


def undo(request: Request, form: FormData) -> Data:
    verdicts: list[Data] = []
    for change in str(form["change"]).split():
        done = ask("undo", change)
        verdicts += done.get("verdicts") or [done]
    return _verdict_notice(verdicts, "Undone, in")


_SKILL_ACTS = {
    "pin": "Pinned", "unpin": "Unpinned", "archive": "Archived", "restore": "Restored",
    "rollback": "Rolled back",
}  # fmt: skip


def change_skill(request: Request, form: FormData) -> Data:
    act, name = str(form["act"]), str(form["name"])
    if act not in _SKILL_ACTS:
        raise NotFound(f"there is no '{act}'")
    version = [str(form.get("version", ""))] if act == "rollback" else []
    verdict = ask(act, name, *version)
    return _verdict_notice(verdict.get("verdicts") or [verdict], _SKILL_ACTS[act])


def change_job(request: Request, form: FormData) -> Data:
    act = "retry" if form.get("act") == "retry" else "cancel"
    entry = ask(f"jobs {act}", str(form["id"]))
    return {"said": f"{entry['id']} is {entry['state']}"}


def forget_fact(request: Request, form: FormData) -> Data:
    scope = "--project" if form.get("scope") == "project" else "--user"
    done = ask(["memory", "forget", scope, "--yes"], str(form["name"]))
    return _verdict_notice([done], "Forgotten")


def change_schedule(request: Request, form: FormData) -> Data:
    act, name = str(form["act"]), str(form["name"])
    if act == "run":
        answers.run_schedule(name)
        return {"said": f"{name} runs now"}
    if act not in ("pause", "resume"):
        raise NotFound(f"there is no '{act}'")
    ask(f"schedule {act}", name)
    return {"said": f"{name} is {'paused' if act == 'pause' else 'resumed'}"}


def change_setting(request: Request, form: FormData) -> Data:
    key, text = str(form["key"]), str(form.get("value", ""))
    before = ask("config", key)
    lines = text.splitlines() if isinstance(before["value"], list) else [text]
    act = ["unset", key] if form.get("act") == "unset" else ["set", key, *lines]
    now = ask("config", *act)
    where = with_tilde(now["source"]) if now["source"] != "default" else "the defaults"
    said = {"said": f"{key} is {setting_text(now['value']) or 'empty'}, from {where}"}
    was = setting_text(before["value"])
    if before["source"] != ask("config --path")["path"]:
        return said | _undo("/settings/do", key=key, act="unset")
    hidden = "…" in was  # a secret that is not shown, so it cannot be put back
    return said if hidden else said | _undo("/settings/do", key=key, value=was)


def setting_text(value: Any) -> str:
    """A setting as it is typed: of a list, a value a line."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
