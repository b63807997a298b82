"""What the user asks for in a few words."""

import pytest

from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.requests import requests, said

WORK = ["Do it", ran("ls")]


def test_requests_are_verbs_with_their_objects() -> None:
    """Several in one sentence, with the object by its usual name."""
    found = requests(made(["Commit this and update the README.md, then open a PR"]))
    assert [(request.verb, request.thing) for request in found] == [
        ("commit", ""), ("update", "docs"), ("open-pr", ""),
    ]  # fmt: skip


def test_documents_commits_and_words_of_other_languages_are_asked_for() -> None:
    """A document by its name, a commit however it is put, and how commits are to be cut."""

    def asked(prompt: str) -> list[tuple[str, str]]:
        return [(one.verb, one.thing) for one in requests(made(WORK, [prompt]))]

    assert asked("Update docs/PLAN.md with what was done") == [("update", "PLAN.md")]
    assert asked("update the ReleaseNotes for 1.2") == [("update", "changelog")]
    assert asked("create commits for the latest changes") == [("commit", "")]
    cut = [("split", "commits"), ("commit", "")]
    assert asked("fix both findings in separate commits") == cut
    assert asked("コミットしてプッシュして") == [("commit", ""), ("push", "")]
    assert asked("まだコミットしないで") == []
    assert asked("commite as mudanças") == [("commit", "")]
    assert asked("merge both files and remove the first") == []
    assert asked("merge the PR") == [("merge", "")]
    assert asked("push it and also spawn two subagents to check it") == [
        ("push", ""), ("spawn", "agents"),
    ]  # fmt: skip
    assert asked("ok i want you to spawn separate agents for the search") == [("spawn", "agents")]
    assert asked("update the readme to say how somebody installs the second plugin") == []
    assert asked("update the docs to reflect what is there") == [("update", "docs")]
    assert asked("update AGENTS.md please") == [("update", "AGENTS.md")]
    assert asked("PRを作って") == [("open-pr", "")]


@pytest.mark.parametrize(
    "prompt",
    [
        "commit.gpgsign = true", "commit-style.md should be short", "commit messages are too long",
        "release notes are missing", "マージしました", "マージはしたんですが",
        "コミットメッセージの規約に合わせて",
        "このコミットの変更を見て", "スカッシュマージなので", "提交信息太长", "我已提交",
        "PR已经合并了",
        "커밋 메시지가 길어", "последний коммит сломан",
    ],
)  # fmt: skip
def test_a_word_for_an_act_is_no_order(prompt: str) -> None:
    """A setting, a file, what the user did themselves, a thing that is called after the act."""
    acts = {"commit", "push", "merge", "release"}
    assert not acts & {one.verb for one in requests(made(WORK, [prompt]))}


@pytest.mark.parametrize(
    ("prompt", "verb"),
    [
        ("差分を見てコミットして", "commit"), ("プッシュお願いします", "push"),
        ("マージしといて", "merge"),
        ("提交一下代码", "commit"), ("帮我推送", "push"), ("전부 커밋해줘", "commit"),
        ("закоммить это", "commit"), ("コミット", "commit"),
    ],
)  # fmt: skip
def test_orders_in_other_languages(prompt: str, verb: str) -> None:
    assert verb in {one.verb for one in requests(made(WORK, [prompt]))}


def test_a_request_may_name_its_object_in_the_sentence_before() -> None:
    """`it` is what was spoken of; what is not to be done is not asked for."""
    prompt = "There are new comments on the branch. Address these if they apply."
    (found,) = requests(made(WORK, [prompt]))
    assert (found.verb, found.thing) == ("address", "feedback")
    assert requests(made(WORK, ["please don't just push the migrations"])) == []
    assert requests(made(WORK, ["go on, I'll review and commit when you are done"])) == []
    assert requests(made(WORK, ["review the open issues on the board"])) == []
    for others in (
        "Review PR #36",
        "Review again",
        "Review the current code changes",
        "check PR 4",
    ):
        (found,) = requests(made(WORK, [others]))
        assert found.thing not in ("changes", "feedback"), others
    (found,) = requests(made(WORK, ["address the PR comments"]))
    assert (found.verb, found.thing) == ("address", "feedback")
    (own,) = requests(made(WORK, ["review your changes once more"]))
    assert (own.verb, own.thing) == ("review", "changes")


def test_a_plan_is_let_go() -> None:
    """Where nothing was changed before the user's word, and something was after it."""
    look, change = called("Read", {"file_path": "/p/a"}), called("Edit", {"file_path": "/p/a"})
    planned = made(["Move the parser", look], ["ok, go ahead", change])
    assert [(one.verb, one.text) for one in requests(planned)] == [("plan", "ok, go ahead")]
    assert not requests(made(["Move the parser", change], ["proceed", change]))
    assert not requests(made(["Move the parser", look], ["proceed with the second half", look]))
    assert not requests(made(["Move the parser", look], ["continue", change]))


@pytest.mark.parametrize(
    "prompt",
    [
        "Do not change the code just yet.", "analysis first, please", "wait for my approval",
        "erst einen Plan, dann sehen wir", "まだ実装しないで", "先不要改代码", "먼저 계획을 보여줘",
    ],
)  # fmt: skip
def test_the_user_wants_to_see_it_first(prompt: str) -> None:
    assert ("plan", "") in {(one.verb, one.thing) for one in requests(made(WORK, [prompt]))}


@pytest.mark.parametrize(
    ("prompt", "act"),
    [
        ("add it to the existing commit", "fold"), ("amend", "fold"), ("amendして", "fold"),
        ("fixup in the right commit", "fold"), ("fix it in a new branch/pr", "open-pr"),
        ("Did you push?", "forgotten"), ("まだpushされてないよ", "forgotten"),
        ("Ddi yo comit?", "forgotten"), ("为什么没有提交", "forgotten"),
        ("you committed and pushed?", "forgotten"),
        ("have a look at the review comments", ""), ("add a button to the first page", ""),
        ("I committed it and pushed.", ""), ("the plan is in the first file", ""),
    ],
)  # fmt: skip
def test_what_no_one_verb_stands_for(prompt: str, act: str) -> None:
    """To take more into a commit, a pull request for it, what was left out."""
    acts = {"fold", "open-pr", "forgotten"} & {r.verb for r in requests(made(WORK, [prompt]))}
    assert acts == ({act} if act else set())


def test_sentences_by_their_telling_words() -> None:
    """Without commands of the host, lines of files and addresses; a question that asks for
    something asks."""
    prompt = "/simplify\nretries = 3\nwhy?\ncan you check https://x.io/a the retries?"
    trace = made(WORK, [prompt])
    assert [(one.words, one.asks) for one in said(trace)] == [
        (("check", "retr"), True),
    ]  # fmt: skip
    (one,) = said(made(WORK, ["do it like ../core and acme/widgets のように"]))
    assert one.outside == ("../core", "acme/widgets")


@pytest.mark.parametrize(
    ("prompt", "guide"),
    [
        ("write it according to docs/style.md", "docs/"), ("folge docs gemäß STYLE.md", "STYLE.md"),
        ("@rules/voice.md を参考に書いて", "rules/"), ("按照 STYLE.md 修改", "STYLE.md"),
        ("@rules/voice.md 에 맞게 수정해줘", "rules/"), ("go on according to docs/plan.md", ""),
        ("fix docs/style.md", ""),
    ],
)  # fmt: skip
def test_pages_that_work_is_to_follow(prompt: str, guide: str) -> None:
    assert [name for one in said(made(WORK, [prompt])) for name in one.outside] == [guide] * bool(
        guide
    )


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("please run the steps yourself", True), ("you can do that too", True),
        ("do it for me", True), ("mach das bitte selbst", True), ("fais-le toi-même", True),
        ("hazlo tú mismo", True), ("сделай это сам", True), ("你自己去执行吧", True),
        ("自分で実行してください", True), ("직접 실행해 줘", True),
        ("don't run it yourself", False), ("I will do that for you", False),
        ("it works for me", False),
    ],
)  # fmt: skip
def test_what_the_agent_is_to_do_itself(prompt: str, asked: bool) -> None:
    """Rather than telling the user how; what they keep to themselves is none."""
    kinds = {(one.verb, one.thing) for one in requests(made(WORK, [prompt]))}
    assert (("do", "yourself") in kinds) is asked


def test_places_outside_of_the_project() -> None:
    """By their whole paths, each with the folders that it lies in; what is in passing is none."""
    prompt = (
        "put it into /home/a/work/blog/posts/new.md and D:\\shop\\parts\\lamp, not into"
        " /home/a/work/app/docs or /home/a/Downloads/x/y"
    )
    (one,) = said(made(WORK, [prompt], project="/home/a/work/app"))
    assert one.outside == (
        "/home/a/work/blog/posts/", "/home/a/work/blog/", "D:/shop/parts/lamp/", "D:/shop/parts/",
    )  # fmt: skip


def test_whether_code_was_changed_in_answer() -> None:
    """Documents are none."""
    edits = [
        ["write the result down", called("Edit", {"file_path": f"/p/{p}"})]
        for p in ("a.md", "a.py")
    ]
    assert [one.changed for one in said(made(*edits))] == [False, True]


def test_a_heading_asks_for_nothing() -> None:
    assert requests(made(WORK, ["Commit created:\nCommit: `a4d1b52`"])) == []
