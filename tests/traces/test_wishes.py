"""What the user wishes for, read from what they typed."""

import msgspec
import pytest

from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.trace import REFUSED
from tacit.traces.wishes import wishes

WORK = ["Do it", ran("ls")]


@pytest.mark.parametrize(
    "prompt",
    [
        "Always run the formatter before a commit.", "please never push to main directly",
        "From now on put fixtures into tests/data.", "We use pnpm here, npm breaks the lockfile.",
        "I prefer small commits with one purpose.", "Next time ask before deleting branches.",
        "We don't commit generated files.", "The old schema should not be updated ever.",
        "For future reference, the tool is started by the script run.sh.",
        "you're in a container so do not have access to the database",
        "I don't want you to add comments everywhere.",
        "I do not want to sign my commits anymore, too much overhead.",
        "Standing orders: code ends on main by a review only.",
        "Every new function in the importer needs to have a docstring.",
        "Before every release please run the smoke script on staging.",
        "Free tools that run on every laptop are always preferred.",
        "Commit messages must never name the tool that wrote them.",
        "In this repo we use tabs in every language.",
        "Ask Robin for a review. Make that standard in your workflow.",
        "can we put this into the guide.md so that we see it in future?",
        "From now on every button comes from the kit in src/kit.",
        "Extend CLAUDE.md by a remark that the app must cope with huge tables.",
        "以后提交之前先运行测试", "Bitte immer auf Deutsch kommentieren und kurz halten.",
        "Désormais utilise toujours pnpm pour installer.",
        "Nunca uses var en este proyecto nuestro.",
        "Всегда запускай линтер перед коммитом.",
        "Overall we should not say customer in error texts.",
        "Don't bother with Safari, we only support Firefox and Chrome.",
        "We're not supposed to call the billing server in tests.",
        "In production, you should only read from the replica.",
        "Leave the lockfile alone unless I explicitly ask for an upgrade.",
        "每一次改完接口都請你更新文件", "所有接口都要写单元测试",
        "如果单个文件超过500行，请提醒我拆分文件",
        "テストを書くときは必ず日本語の名前にしてください。",
        "本番環境を触る場合に限り、許可を求めてください。",
        "커밋하기 전에 항상 린터를 실행해줘.", "내가 말한 파일을 제외하고는 영어로 작성해줘.",
        "함수가 50줄을 넘을 경우 사용자에게 분리를 제안하도록 가이드를 추가해줘.",
        "À chaque fois qu'une route change, mets à jour le schéma.",
        "never open empty prs", "Release branches are never merged back by hand.",
        "public names are never abbreviations, only locals may be",
        "You should have asked before the migration ran.",
        "Don't read mails through the browser - use the mail tool",
        "do not indent tables as that breaks our converter",
        "don't include customer names in commits", "don't run integration tests, too slow",
        "`make shell` if you need a clean database", "I don't want `git pull`, we rebase.",
        "The test account's config is at ~/.acme/config.toml",
        "Du hättest die Tests vorher laufen lassen sollen.",
        "Tu aurais dû lancer les tests avant.", "Надо было сначала запустить тесты.",
        "pushする前にレビューしたかったです。", "設計ができたタイミングで確認したいです。",
        "A migration test should touch no more than one table.",
        "Verwende kein requests für Aufrufe, sondern httpx.",
        "N'utilise pas npm pour installer, utilise pnpm.", "No uses npm en scripts, usa pnpm.",
        "Não use npm nos scripts, use pnpm.", "Не используй npm для скриптов, а pnpm.",
        "We should move away from jokes in the help texts of users.",
        "There is no point adding a merge commit to a PR.",
        "Use the Jira CLI itself.", "use the make targets of our script for releases",
    ],
)  # fmt: skip
def test_rules_are_lasting(prompt: str) -> None:
    """Never, always, prefer, we use, from now on, in several languages."""
    (wish,) = wishes(made(WORK, [prompt]))
    assert (wish.text, wish.strength) == (prompt, "rule")


@pytest.mark.parametrize(
    "prompt",
    [
        "don't change options of importers", "do not open main.py as it is huge",
        "use pnpm instead of npm for scripts",
        "I'd like to see literal values rather than computed ones",
        "not tabs but spaces in makefiles please",
    ],
)  # fmt: skip
def test_corrections_against_what_was_done(prompt: str) -> None:
    """Don't, instead of, rather than, not but: after work was done, and not before."""
    (wish,) = wishes(made(WORK, [prompt]))
    assert wish.strength == "correction"
    assert wishes(made([prompt])) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "don't worry about linting for now", "don't touch the theme", "don't commit it",
        "never mind", "It always returns an empty list on startup", "Why does it never stop?",
        "the button never works on small screens", "Actually, show me the log file instead",
        "i'll take it from here, don't run anything", "let's do suggestions 1-4 and never 5",
        "just answer from the log files, don't do anything",
        "we can pick the importer up in future", "I was thinking that if we use keys of users",
        "can you always show a table of sensors", "if we use that library the build gets slow",
        "Update CLAUDE.md so that it follows the latest changes", "so CLAUDE.md can override it?",
        "all pages should have a footer", "i thought we no longer use the old runner for tests",
        "say that for an AGENTS.md target skills should be there",
        'hide this: "IMPORTANT: when reporting values always state the unit and the time of it"',
        "All findings of the above list should be tracked going forward",
        "1. yes\n2. always on, and never below ten\n3. no",
        "make sure that all tests must pass", "replace it wherever the library we use is named",
        "In the future we should support several languages in the importer",
        "それは共有しないで", "yarnは毎回失敗します", "毎回確認が必要でしょうか。",
        "为什么每次都报错",
        "今後の予定をまとめて", "CLAUDE.mdを更新して", "ça ne marche toujours pas chez moi",
        "바코드는 김다음부터 올려줘", "永远不会相等的是这两行", "现在每次都会先停止",
        "always start with --dangerously-skip-permissions", "영어로 번역해서 답변해줘",
        "Im Gegenteil, ich habe immer Fernweh", "Damit er immer lesen kann, was gilt",
        "以后是都装，还是只装一个，还是大家都用一个",
        "le lien est toujours cassé", "le code n'apparaît jamais à l'écran",
        "왜 항상 실패하는지 알려줘", "不要なファイルはどれですか。",
        "Continue", "Instead, tell me what this does", "we should always do that",
        "don't do 2 and 3, but fix 4", "do 1, do the push, don't open an issue, but reply",
        "put the summary into a file for future reference", "is the big test cache in ~/.cache/a?",
        "the command is wrong", "The issue is that people do not want to type but to click",
        "レビューする前に何をしましたか。", "the tests should pass now", "use the first tool here?",
        "tests should still work", "requests are always slow on big tables",
        "A test should be added for the second parser", "files need to be moved to another folder",
        "the branch is feature/importer-2",
        "otherwise you should have seen the error of the second run",
        "The new logo picture is at ~/Downloads/logo.png",
        "x" * 900 + " always run tests first.",
    ],
)  # fmt: skip
def test_what_is_bound_to_the_moment_is_no_wish(prompt: str) -> None:
    """One thing on the desk, a description, a question, a paste: nothing that lasts."""
    assert wishes(made(WORK, [prompt])) == []


def test_a_wish_brings_what_it_needs_to_be_understood() -> None:
    """A short prompt is kept whole; of a longer one, the sentence and the one before it."""
    short = "The tests are hard to read. Keep the names short."
    assert wishes(made([short]))[0].text == short
    filler = (
        "We talked about many different aspects of the release yesterday afternoon in detail. " * 3
    )
    (wish,) = wishes(made(WORK, [f"{filler}Tests live in spec/. Never put them beside the code."]))
    assert wish.text == "Tests live in spec/. Never put them beside the code."


def test_what_was_typed_in_refusing_is_the_users_word() -> None:
    """As the host's reader gives it; what a tool printed in such words is nobody's."""
    call = ran("make ci", "x", failed=True)
    replied = msgspec.structs.replace(call, error=REFUSED, reply="never run the slow suite unasked")
    printed = msgspec.structs.replace(
        call,
        error=REFUSED,
        result="It was rejected. the user said:\nnever run the slow suite unasked",
    )
    (wish,) = wishes(made(["go", replied]))
    assert wish.text == "never run the slow suite unasked"
    assert not wishes(made(["go", printed]))


def test_a_correction_that_names_a_program_lasts() -> None:
    """Which program serves is no matter of the moment; other words are."""
    work = ["Add the library", ran("npm install left-pad")]
    (wish,) = wishes(made(work, ["use bun not npm"]))
    assert (wish.text, wish.strength) == ("use bun not npm", "rule")
    (other,) = wishes(made(work, ["use whole words instead of numbers"]))
    assert other.strength == "correction"


def test_who_is_to_do_it_is_a_correction_with_what_it_answers() -> None:
    """ "Not you" is said against what the agent did; what it points at stands before it."""
    trace = made(
        ["Should state.json be ignored by git?", ran("ls")],
        ["Sure, but the program should handle that by itself, not you adding that here."],
    )
    (wish,) = wishes(trace)
    assert wish.strength == "correction"
    assert wish.text.startswith("Should state.json be ignored by git? Sure, but the program")


def test_what_a_rule_points_at_stands_before_it() -> None:
    """Also where what comes after it is bound to the moment."""
    said = "I told you to leave the audit to me. Never do that again on your own."
    (wish,) = wishes(made(WORK, [f"{said} I'm going to run it now."]))
    assert (wish.text, wish.strength) == (said, "rule")


def test_an_option_that_was_chosen_was_worded_by_the_agent() -> None:
    """Of an answer to a question only what the user typed is a wish."""
    options = [{"label": "Always use the new parser here"}, {"label": "Keep the old parser"}]
    ask = called("AskUserQuestion", {"questions": [{"options": options}]})
    chosen = msgspec.structs.replace(ask, reply="Always use the new parser here")
    assert wishes(made(["go", chosen])) == []
    both = msgspec.structs.replace(ask, reply=", ".join(one["label"] for one in options))
    assert wishes(made(["go", both])) == []
    typed = msgspec.structs.replace(ask, reply="Never use a parser that nobody maintains")
    assert [wish.text for wish in wishes(made(["go", typed]))] == [typed.reply]


@pytest.mark.parametrize(
    "prompt",
    [
        "The panel should always be hidden unless somebody works.",
        "never put the full date in the sidebar of the overview",
        "`readRows` must take a limit, and always make sure that it holds",
        "The feed should always go to the second host",
        "Guests are not allowed to vote twice",
    ],
)
def test_what_is_built_is_a_task(prompt: str) -> None:
    """What is to be seen, or one piece of code: it lasts in the program, not in how one works."""
    (wish,) = wishes(made(WORK, [prompt]))
    assert wish.strength == "product"


def test_other_agents_and_programs_do_not_speak_for_the_user() -> None:
    """Not what a helper is told, nor what follows it; not a prompt with a hidden comment."""
    rule = "Always run the formatter before a commit."
    helper = "Task: read it. You are a delegated subagent of another session."
    assert wishes(made(WORK, [helper], [rule])) == []
    assert wishes(made(WORK, [f"<!-- cleanup -->\n{rule}"])) == []
    assert [wish.text for wish in wishes(made(WORK, [rule], [helper]))] == [rule]


def test_what_takes_something_away_is_no_rule() -> None:
    """It is done once; and where it stands beside a rule, the rule is kept alone."""
    assert (
        wishes(made(WORK, ["add a line to AGENTS.md that says more and delete the old map"])) == []
    )
    (wish,) = wishes(made(WORK, ["Remove that file. Never commit the generated reports."]))
    assert wish.text == "Never commit the generated reports."
    (wish,) = wishes(made(WORK, ["never delete branches of other people"]))
    assert wish.strength == "rule"


@pytest.mark.parametrize(
    "prompt",
    ["redisではなくpostgresに保存する", "用表格展示而不是用图表", "버튼 말고 링크로 만들어줘"],
)
def test_one_thing_instead_of_another_is_a_decision_of_the_moment(prompt: str) -> None:
    """Unless it is said again, as in every language: it needs a word of lasting to be a rule."""
    (wish,) = wishes(made(WORK, [prompt]))
    assert wish.strength == "product"


def test_the_rule_is_quoted_and_not_what_stands_beside_it() -> None:
    """No question, no guess and no task; a dash does not end a sentence."""

    def quoted(prompt: str) -> list[str]:
        return [wish.text for wish in wishes(made(WORK, [prompt]))]

    rule = "Every new endpoint test should take less than two seconds."
    assert quoted(f"This seems slow to me. {rule} Can you look where the time goes?") == [rule]
    rule = "We only support Postgres and SQLite in the importer."
    assert quoted(f"Add the icons to the page. {rule}") == [rule]
    dashed = "Don't accept review findings blindly - weigh each and decide"
    assert quoted(dashed) == [dashed]
    asked = "もっといい方法はありますか。" + "長い説明がここに続きます。" * 10
    rule = "最初に方針を合わせることを必ずルール化してください。"
    assert quoted(asked + rule) == [rule]


def test_what_a_host_attaches_does_not_make_a_prompt_long() -> None:
    """The words beside the contents of a file are the user's, with the file by its name."""
    prompt = "[@NOTES.md](file:///p/NOTES.md)\nis from now on sorted by date.\n"
    attached = f'<context ref="file:///p/NOTES.md">\n{"never do that. " * 90}</context>'
    (wish,) = wishes(made([prompt + attached]))
    assert wish.text == "@NOTES.md is from now on sorted by date."


@pytest.mark.parametrize(
    ("prompt", "rule"),
    [
        ("fix it, `ssh lab` if you want to try arm", "`ssh lab` if you want to try arm"),
        ("ok i don't want `npm update`, remove that from the job, we want the bot to bump packages",
         "i don't want `npm update`, we want the bot to bump packages"),
        ("the sample data is in ../samples, can you load it?", "the sample data is in ../samples"),
        ("yes and never merge release branches by hand", "never merge release branches by hand"),
    ],
)  # fmt: skip
def test_of_a_task_with_a_rule_in_it_the_rule_is_kept(prompt: str, rule: str) -> None:
    (wish,) = wishes(made(WORK, [prompt]))
    assert (wish.text, wish.strength) == (rule, "rule")


@pytest.mark.parametrize("reply", ["use poetry run", "prepend poetry run", "poetryを使って"])
def test_how_a_refused_command_is_to_be_run(reply: str) -> None:
    """Few words are enough, with the command that they were said of."""
    call = ran("source .env || true; pytest tests/a 2>&1", "x", failed=True)
    (wish,) = wishes(made(["go", msgspec.structs.replace(call, error=REFUSED, reply=reply)]))
    assert (wish.text, wish.strength, wish.to) == (reply, "rule", "pytest tests/a")


@pytest.mark.parametrize("reply", ["use the second option", "run it later", "no", "use it"])
def test_a_refusal_that_says_no_way_is_no_wish(reply: str) -> None:
    call = ran("pytest tests/a", "x", failed=True)
    assert not wishes(made(["go", msgspec.structs.replace(call, error=REFUSED, reply=reply)]))


@pytest.mark.parametrize("taken_back", ["never mind", "scratch that", "やっぱりいいです"])
def test_a_wish_that_is_withdrawn_is_none(taken_back: str) -> None:
    rule = "From now on put fixtures into tests/data."
    assert wishes(made(WORK, [rule], [taken_back])) == []
    assert len(wishes(made(WORK, [rule], ["go on"], [taken_back]))) == 1


def test_of_a_rule_for_the_moment_no_half_is_kept() -> None:
    """A condition says nothing without what is to be done then."""
    said = "Next time I ask for a summary, please skip what I've just mentioned."
    assert wishes(made(WORK, [said])) == []


def test_what_git_hints_at_is_not_the_users() -> None:
    said = "push failed\nhint: Always integrate the remote changes before pushing again.\nhint: x"
    assert wishes(made(WORK, [said])) == []
    (wish,) = wishes(made(WORK, [f"{said}\nNever push by force to a shared branch."]))
    assert wish.text == "Never push by force to a shared branch."


def test_a_long_paragraph_was_dictated() -> None:
    """What is as long and has lines was pasted."""
    talk = "We talked about the importer and its tables and what people expect of them. " * 11
    rule = "From now on every migration comes with a tested downgrade."
    assert [wish.text for wish in wishes(made(WORK, [talk + rule]))] == [rule]
    assert wishes(made(WORK, [f"{talk}\n{rule}"])) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "After each parser is added, extend the table in the handbook.",
        "Tag the release as every milestone is reached.",
        "Can we always have the totals at the end of the report?",
        "can you link the ticket any time a branch is named?",
    ],
)
def test_what_is_to_be_done_with_each_or_always_is_a_rule(prompt: str) -> None:
    """Also where it is asked politely."""
    assert [wish.strength for wish in wishes(made(["Do it", ran("ls")], [prompt]))] == ["rule"]
