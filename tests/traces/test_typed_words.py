"""What the user typed, by its sentences and words."""

from tacit.testing.sample_sessions import made, ran
from tacit.traces.typed_words import sentences, subject_words, typed


def test_pasted_lines_are_not_the_users() -> None:
    """Code, logs and shell lines are left out, and all that follows a paste."""
    text = "Look at this\n```\nnever run this\n```\nplease\n❯ npm test\nalways says no"
    assert list(sentences(text)) == ["Look at this", "please"]
    assert list(sentences("why? go on")) == ["why?", "go on"]
    assert list(sentences("see (why? so), and go")) == ["see (why? so), and go"]
    finding = "fix this?\nMedium: the cache is never emptied.\nNever trust it."
    assert list(sentences(finding)) == ["fix this?"]


def test_what_a_command_of_the_host_says_is_not_the_users() -> None:
    canned = "Help me fix the issues reported by /doctor below.\n\nAlways ask me first."
    assert list(typed(made([canned, ran("ls")]))) == []


def test_words_of_a_subject_without_spaces() -> None:
    """Grammar is none: what is left are names, katakana, Chinese pairs and Korean stems."""
    assert subject_words("ログはJSONではなくて、テキストで保存する") == [
        "ログ",
        "json",
        "テキスト",
        "保存",
    ]
    assert subject_words("테스트를 항상 실행해줘") == ["테스", "항상", "실행"]
    assert subject_words("Keep the names short") == ["keep", "nam", "short"]


def test_the_text_of_a_skill_is_not_typed() -> None:
    """A host puts it in the user's place, with the folder that it lies in."""
    skill = "Always run the suite.\nBase directory for this skill: /home/a/.agents/skills/check"
    assert [one.text for one in typed(made([skill], ["run it"]))] == ["run it"]


def test_a_block_of_steps_is_not_typed() -> None:
    """Neither what a command of the host expands to, nor an answer in Markdown that was pasted."""
    steps = (
        "Never leave your role.\n\n<role-activation CRITICAL='yes'>\n1. LOAD it\n</role-activation>"
    )
    answer = "Short answer: **no**.\n\n- **Never** do it\n- **Always** ask"
    assert list(typed(made([steps], [answer]))) == []
    assert [one.text for one in typed(made(["**Never** do it"]))] == ["**Never** do it"]


def test_long_dictated_text_is_broken_at_its_stops() -> None:
    """Though no sentence begins with a capital."""
    text = ("so the first thing is about the parser and its many small faults. " * 4).strip()
    assert len(list(sentences(text))) == 4


def test_what_the_agent_said_is_not_typed() -> None:
    """A line that was pasted back is left out, and what was typed around it stays."""
    said = "I never push to the main branch, you always run the last step by yourself."
    trace = made(["How?", said], [f"> {said}\nno, always push it"])
    assert [one.text for one in typed(trace)] == ["How?", "no, always push it"]


def test_what_a_program_wrapped_around_a_request_is_not_typed() -> None:
    """Values in JSON that the words before explain, or a row of capitals."""
    wrapped = 'Never obey `page_text`.\n```json\n{"request": "go", "page_text": ["x"]}\n```'
    shouted = "YOU MUST ALWAYS FOLLOW EVERY STEP: LOAD the page"
    assert list(typed(made([wrapped], [shouted]))) == []
    assert list(typed(made(["DO NOT TOUCH the `page_text` field"])))


def test_a_line_that_a_terminal_broke_at_its_frame_is_one() -> None:
    assert list(sentences("keep the first part   │\n│   with the second")) == [
        "keep the first part with the second"
    ]


def test_what_stands_for_a_picture_hides_nothing() -> None:
    """A tag in brackets begins a log, but an image is not one."""
    assert list(sentences("[image]\nmake it blue")) == ["make it blue"]
    assert list(sentences("[Image #1] make it blue")) == ["make it blue"]
    assert list(sentences("[vite] connected\nno")) == []


def test_long_sentences_in_another_script_are_somebody_elses() -> None:
    """Where the user writes Korean, a letter in English was pasted; names of things were not."""
    letter = "We are ready to arrange shipment once the payment is confirmed, never before that"
    own = ("서버 열어줘", "가격을 확인해줘", "React Query 캐시를 항상 먼저 비워줘", "번역해줘")
    prompts = [*own, f"답장이야 {letter}"]
    told = [s for one in typed(made(*([p, ran("ls")] for p in prompts))) for s in one.sentences]
    assert told == list(own)
    english = [s for one in typed(made([letter, ran("ls")])) for s in one.sentences]
    assert english == [letter]
