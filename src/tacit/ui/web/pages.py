"""The pages: for each, the answers that it shows and the template that shows them.

A handler asks (`answers.py`), in a thread, and fills a template. A write comes as a form of ours,
asks the command that does it, and leads back with a notice, which holds the way to undo it.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tacit.base.display import dollars
from tacit.base.errors import NotFound, TacitError, Usage
from tacit.base.paths import with_tilde
from tacit.learn import notices
from tacit.skills.library import KeptLibrary, at_hand
from tacit.ui.web import answers
from tacit.ui.web.answers import ask
from tacit.ui.web.page_guard import CSRF_FIELD, PageKeys
from tacit.ui.web.page_parts import bar_chart, make_templates, setting_text

PAGE = 50
_MOST_AT_ONCE = 1000
_MOST_PAGES = 99_999
_MOST_DAYS = 3650
_MOST_BODY = 2_000_000
_MOST_FIELDS = 100
_MOST_NOTICES = 100
_MOST_LISTENERS = 50
_MOST_EVENTS = 100
_MOST_STEPS = 300
_KEPT = ("q", "all")
"""What a list was asked for beside its page."""
_LIVE_SECONDS = 0.5
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
Form = dict[str, str]


class Pages:
    """The handlers of one server."""

    def __init__(self, keys: PageKeys, ending: Callable[[], bool]) -> None:
        self._keys = keys
        self._ending = ending
        self._templates = make_templates(
            navigation=NAVIGATION,
            root=keys.room,
            csrf=keys.form,
            csrf_field=CSRF_FIELD,
            folder=os.getcwd(),
        )
        self._kept = KeptLibrary(os.getcwd(), fresh=0.0)
        self._notices: dict[str, Data] = {}
        self._listeners = 0

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
        written: dict[str, Callable[[Form], Data]] = {
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
        def answer(request: Request) -> Response:
            whole = found is skills and not request.query_params.get("q")  # typed letter by letter
            about = None if whole else request.path_params.get("name", "")
            with at_hand(self._kept, about):
                data = found(request)
            return self._render(request, f"{found.__name__}.html", data)

        async def handler(request: Request) -> Response:
            return await run_in_threadpool(answer, request)

        return handler

    def _write(self, write: Callable[[Form], Data]) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            form = await _read_form(request)
            if not self._keys.is_form(form.get(CSRF_FIELD, "")):
                raise HTTPException(403, "This form is not one of this page's.")
            try:
                said = await run_in_threadpool(write, form)
            except TacitError as error:
                said = {"said": error.explain(), "bad": True}
            except KeyError as missing:
                raise HTTPException(400, f"The form says nothing of {missing}.") from None
            back = form.get("back", "")
            where = back if back.startswith("/") and not back.startswith("//") else "/"
            noted = f"{'&' if '?' in where else '?'}notice={self._note(said)}"
            return RedirectResponse(self._keys.room + where + noted, 303)

        return handler

    def _note(self, said: Data) -> str:
        """Keep what is said after a write; a word for it. An address holds no more than that word,
        so nobody can make up a notice and what its button does."""
        word = secrets.token_urlsafe(9)
        self._notices[word] = {"bad": False, **said}
        for old in list(self._notices)[:-_MOST_NOTICES]:
            del self._notices[old]
        return word

    async def _events(self, request: Request) -> Response:
        async def news() -> AsyncIterator[bytes]:
            self._listeners += 1
            try:
                if self._listeners > _MOST_LISTENERS:
                    yield b"retry: 60000\n\n"
                    return
                known = await run_in_threadpool(answers.change_mark)
                yield b"retry: 1000\n\n"
                while not self._ending() and not await request.is_disconnected():
                    await asyncio.sleep(_LIVE_SECONDS)
                    mark = await run_in_threadpool(answers.change_mark)
                    yield b"event: changed\ndata: 1\n\n" if mark != known else b": still here\n\n"
                    known = mark
            finally:
                self._listeners -= 1

        return StreamingResponse(news(), media_type="text/event-stream")

    def _render(self, request: Request, template: str, data: Data, status: int = 200) -> Response:
        path = quote(request.scope["path"])
        shown = {
            "path": path,
            "here": f"{path}?{request.url.query}" if request.url.query else path,
            "notice": self._notices.get(request.query_params.get("notice", "")),
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


async def _read_form(request: Request) -> Form:
    """What a form of ours sent; no more is read than one can hold."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BODY:
            raise HTTPException(413, "That is too much.")
    try:
        form = dict(parse_qsl(body.decode("latin-1"), True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise HTTPException(413, "That is too much.") from None
    if any("\0" in value for value in form.values()):
        raise HTTPException(400, "No text holds such a sign.")
    return form


def _number(request: Request, key: str, default: int, most: int) -> int:
    """A number from 1 on in the address; `default` where there is none."""
    text = request.query_params.get(key, "")
    number = int(text) if text.isdecimal() and len(text) <= len(str(most)) else 0
    return number if 0 < number <= most else default


def _span(request: Request) -> str:
    """The options of a command that give the rows of the page that is asked for, and one more,
    which says whether there is another page."""
    return f"-n {PAGE + 1} --skip {(_number(request, 'page', 1, _MOST_PAGES) - 1) * PAGE}"


def _paged(rows: list[Any], request: Request, total: int = 0) -> Data:
    """The rows of the page that is asked for, and where the others are; `total`, where known."""
    at = _number(request, "page", 1, _MOST_PAGES)
    asked = {k: v for k, v in request.query_params.items() if k in _KEPT}
    last = -(-total // PAGE) if total else at + (len(rows) > PAGE)
    return {"rows": rows[:PAGE], "total": total, "page": at, "last": last, "asked": asked}


def overview(request: Request) -> Data:
    """What did it learn, does it help, what did it cost."""
    learned = [v for v in ask("log -n 30")["versions"] if v["actor"] not in ("user", "agent")]
    helped = ask("list --origin learned --used -n 6")
    return {
        "waiting": len(ask("inbox -n 1")["waiting"]),
        "learned": learned[:8],
        "helped": helped["skills"],
        "count": helped["total"] + helped["unused"],
        "unused": helped["unused"],
        "sums": helped["uses"],
        "tried": ask("trial")["trials"][:3],
        **_cost_data(30),
    }


def inbox(request: Request) -> Data:
    everything = bool(request.query_params.get("all"))
    found = ask(f"inbox {_span(request)}{' --all' if everything else ''}")
    kinds: dict[str, list[str]] = {}
    for one in found["waiting"]:
        kinds.setdefault(f"{one['kind']} by {one['actor']}", []).append(one["id"])
    return {
        "marks": found["marks"],
        "news": [notices.line(msgspec.convert(one, notices.Notice)) for one in found["notices"]],
        "kinds": {kind: ids[:_MOST_AT_ONCE] for kind, ids in kinds.items() if len(ids) > 1},
        "everything": everything,
        **_paged(found["proposals"], request, 0 if everything else len(found["waiting"])),
    }


def proposal(request: Request) -> Data:
    found = ask("inbox", request.path_params["id"])
    text = answers.proposed_text(found["proposal"])
    described, body = answers.read_text(text) if text is not None else ("", "")
    waiting = [one["id"] for one in found["waiting"]]
    mine = found["proposal"]["id"]
    at = waiting.index(mine) if mine in waiting else len(waiting)
    after = next(iter(waiting[at + 1 :]), "")
    return {
        **found,
        "text": text,
        "description": described,
        "body": body,
        "previous": waiting[at - 1] if at and waiting else "",
        "next": after,
        "after": f"/inbox/{after}" if after else "/inbox",
    }


def skills(request: Request) -> Data:
    query = request.query_params.get("q", "").strip()
    if query:
        rows = [hit["skill"] for hit in ask("search -n 20", query).get("results", [])]
        return {"q": query, **_paged(rows, request)}
    found = ask(f"list {_span(request)}")
    return {"q": "", **_paged(found["skills"], request, found["total"])}


def skill(request: Request) -> Data:
    name = request.query_params.get("at") or request.path_params["name"]
    shown = ask("show", name)
    if not shown["entry"]:  # any folder can be shown at the command line; a page shows the library
        raise NotFound(f"there is no skill '{name}'", "see them: tacit list")
    life = ask(f"history -n {_MOST_EVENTS}", name)
    pin = ("unpin", "Unpin") if shown["pinned"] else ("pin", "Pin")
    archived = shown["entry"]["state"] == "archived"
    last = len(life["weeks"]) - 1
    weeks = {
        f"{last - n} weeks ago" if n < last else "this week": uses
        for n, uses in enumerate(life["weeks"])
    }
    return {
        **shown,
        "name": name,
        "life": life,
        "versions": [v for v in life["versions"] if v["kind"] not in ("pin", "unpin")],
        "weeks": weeks,
        "chart": bar_chart(weeks, str) if any(weeks.values()) else "",
        "trial": _asked_quietly("trial show", shown["entry"]["name"]).get("answer"),
        "acts": {"restore": "Restore"} if archived else dict([pin, ("archive", "Archive")]),
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
    diff = ask("diff", name, old, *filter(None, [new]))["diff"]
    return {"name": name, "old": old, "new": new, "diff": diff}


def sessions(request: Request) -> Data:
    query = request.query_params.get("q", "").strip()
    hits = ask(["sessions", "-n", "100", f"--search={query}"]).get("steps", []) if query else []
    rows = [] if query else ask(f"sessions {_span(request)}")["sessions"]
    return {"q": query, "hits": hits, **_paged(rows, request)}


def session(request: Request) -> Data:
    name = request.path_params["id"]
    shown = ask("session", name)
    turns = shown["turns"]
    first = next((turn["prompt"] for turn in turns if turn["prompt"]), "")
    wanted = request.query_params.get("turn", "")
    place = next((n for n, turn in enumerate(turns) if str(turn["number"]) == wanted), 0)
    at = place // PAGE + 1 if wanted else _number(request, "page", 1, _MOST_PAGES)
    return {
        **shown,
        "title": shown["session"]["title"] or first or shown["session"]["session"],
        "why": ask("why", name),
        "corrected": {one["turn"] for one in shown["corrections"]},
        "most_steps": _MOST_STEPS,
        **_paged(turns[(at - 1) * PAGE :], request, len(turns)),
        "page": at,
    }


def digest(request: Request) -> Data:
    return {"digest": ask("session --digest", request.path_params["id"])}


def jobs(request: Request) -> Data:
    return _paged(ask(f"jobs {_span(request)}")["jobs"], request)


def job(request: Request) -> Data:
    return {"job": ask("jobs show", request.path_params["id"])}


def cost(request: Request) -> Data:
    return _cost_data(_number(request, "days", 30, _MOST_DAYS))


def _cost_data(days: int) -> Data:
    report = ask(["cost", f"--days={days}"])
    known = {date.fromisoformat(day): one["money"] for day, one in report["by_day"].items()}
    first, last = min(known, default=date.max), max(known, default=date.min)
    every = (first + timedelta(days=n) for n in range((last - first).days + 1))
    spent = {str(day): known.get(day, 0.0) for day in every}
    return {
        "report": report,
        "spent": spent,
        "chart": bar_chart(spent, dollars, report["budget"]["money"]),
    }


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
    return {"found": ask("doctor") if request.query_params.get("now") else {}}


# Writes: what was done, for the notice, and the change that can be taken back.


def _verdict_notice(verdicts: list[Data], done: str) -> Data:
    landed = [v for v in verdicts if v["outcome"] == "applied"]
    refused = [v["refusal"]["reason"] for v in verdicts if v["refusal"]]
    said = f"{done}: {', '.join(dict.fromkeys(v['skill'] for v in landed))}" if landed else ""
    text = ". ".join(filter(None, (said, *refused)))
    back = " ".join(v["change"] for v in reversed(landed))
    undone = _undo("/undo", change=back) if landed else {}
    return {"said": text, "bad": bool(refused), **undone}


def _undo(path: str, **fields: str) -> Data:
    """What a notice's button sends to take back what was done."""
    return {"undo": path, "fields": fields}


def accept(form: Form) -> Data:
    ids = form["id"].split()
    return _verdict_notice(ask("accept", *ids)["verdicts"], "Accepted")


def reject(form: Form) -> Data:
    one = form["id"]
    if form.get("undo"):
        ask("reject --undo", one)
        return {"said": "It waits again."}
    ask(["reject", f"--reason={form.get('reason', '')}"], one)
    said = "Rejected. The same idea does not come back."
    return {"said": said, **_undo("/inbox/reject", id=one, undo="1")}


def edit_and_accept(form: Form) -> Data:
    verdicts = answers.accept_edited(form["id"], form["text"])
    return _verdict_notice(verdicts, "Accepted as you wrote it")


def undo(form: Form) -> Data:
    verdicts: list[Data] = []
    for change in form["change"].split():
        done = ask("undo", change)
        verdicts += done.get("verdicts") or [done]
    return {**_verdict_notice(verdicts, "Undone, in"), "button": "Redo"}


_SKILL_ACTS = {
    "pin": "Pinned", "unpin": "Unpinned", "archive": "Archived", "restore": "Restored",
    "rollback": "Rolled back",
}  # fmt: skip


def change_skill(form: Form) -> Data:
    act, name = form["act"], form["name"]
    if act not in _SKILL_ACTS:
        raise NotFound(f"there is no '{act}'")
    version = [form.get("version", "")] if act == "rollback" else []
    verdict = ask(act, name, *version)
    return _verdict_notice(verdict.get("verdicts") or [verdict], _SKILL_ACTS[act])


def change_job(form: Form) -> Data:
    act = "retry" if form.get("act") == "retry" else "cancel"
    entry = ask(f"jobs {act}", form["id"])
    return {"said": f"{entry['id']} is {entry['state']}"}


def forget_fact(form: Form) -> Data:
    scope = "--project" if form.get("scope") == "project" else "--user"
    done = ask(["memory", "forget", scope, "--yes"], form["name"])
    return _verdict_notice([done], "Forgotten")


def change_schedule(form: Form) -> Data:
    act, name = form["act"], form["name"]
    if act == "run":
        answers.run_schedule(name)
        return {"said": f"{name} runs now"}
    if act not in ("pause", "resume"):
        raise NotFound(f"there is no '{act}'")
    ask(f"schedule {act}", name)
    return {"said": f"{name} is {'paused' if act == 'pause' else 'resumed'}"}


_HIDDEN_BY = ("…", "[redacted")
"""What stands in a setting for a secret, which is not shown and cannot be put back."""


def change_setting(form: Form) -> Data:
    key, text = form["key"], form.get("value", "")
    before = ask("config", key)
    was = setting_text(before["value"])
    hidden, unset = any(mark in was for mark in _HIDDEN_BY), form.get("act") == "unset"
    if hidden and not unset and any(mark in text for mark in _HIDDEN_BY):
        raise Usage(f"of {key} not all is shown, and that would be lost", "type the whole of it")
    lines = text.splitlines() if isinstance(before["value"], list) else [text]
    now = ask("config", *(["unset", key] if unset else ["set", key, *lines]))
    where = with_tilde(now["source"]) if now["source"] != "default" else "the defaults"
    said = {"said": f"{key} is {setting_text(now['value']) or 'empty'}, from {where}"}
    if before["source"] != ask("config --path")["path"]:
        return said | _undo("/settings/do", key=key, act="unset")
    return said if hidden else said | _undo("/settings/do", key=key, value=was)
