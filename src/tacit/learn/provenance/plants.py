"""Whether something that a tool printed asks for a skill, or speaks to agents.

Tools have no business to say what is to be learned. Where one does, whatever is learned from that
session is looked at by a person.
"""

import re

from tacit.changes.scan.characters import fold
from tacit.learn.provenance.matching import Body
from tacit.learn.provenance.sources import Said

_LEARN = (
    r"(?:save|store|keep|remember|record|retain|adopt|learn|persist|memori[sz]e|write down|note)"
)
_KEEP = (
    rf"(?:{_LEARN}|saving|stored|kept|learned|learnt|add|create|write|copy|put|draft|make|belongs?"
    r"|permanent|durable|lasting|standard|going forward|from now on|next time|future)"
)
_AGENTS = (
    r"(?:ai|llms?|language models?|agents?|assistants?|copilots?|chatbots?|helpers|automation"
    r"|automated \w+|reviewers?)"
)
_SKILL = r"(?:skills?|skill\.md|skill (?:library|store))"
# An outright request. Where a tool prints one, a person looks at all that was learned.
_OUTRIGHT = (
    rf"\b{_LEARN}\b[^.\n]{{0,30}}\b(?:as|a|an|the|this|your|in|into|for)\b[^.\n]{{0,20}}\b{_SKILL}\b",
    r"\b(?:create|write|add|put|make)\b[^.\n]{0,12}\b(?:a|the|this|your|following)\s(?:\w+\s)?skill\b",
    rf"\b{_AGENTS}\b[^.\n]{{0,40}}\b(?:should|must|shall|please|to)\b[^.\n]{{0,30}}\b{_LEARN}\b",
    r"\b(?:agent|x|learned)[-_.](?:agent[-_.])?(?:skill|memory|step|remedy|rule)\b",
    r"\bmerke?n? (?:dir|sie sich)|speicher\w{0,4} [^.\n]{0,30}(?:skill|fahigkeit)",
    r"\benregistre\w{0,3} [^.\n]{0,20}competence",
    r"\b(?:guarda|recuerda)\w{0,2} [^.\n]{0,30}habilidad",
    r"сохрани\w{0,3} навык|запомни",
    "(?:保存为|记住)[^。\n]{0,10}技能|スキルとして|기술로 저장",
)
# What such requests are made of; alone it only makes the words around it suspect.
_HINTS = (
    *_OUTRIGHT,
    rf"\b{_KEEP}\b[^.\n]{{0,60}}\b{_SKILL}\b",
    rf"\b{_SKILL}\b[^.\n]{{0,40}}\b{_KEEP}\b",
    rf"\b{_AGENTS}\b[^.\n]{{0,60}}\b(?:should|must|shall|please|{_KEEP})\b",
    rf"\b{_KEEP}\b[^.\n]{{0,60}}\bfor (?:later|future|good|every|all)\b",
    r"\bskill\s*(?::|=>|->|draft|named|'|`)",
    r"\b(?:ki-)?agenten\b|\bagents? ?:|\bcompetence\b|\bhabilidad\b|навык|агент",
    "技能|智能体|スキル|覚え",
)


def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    # The texts are folded, so letters of other alphabets are folded here too.
    folded = ("".join(c if c.isascii() else fold(c) for c in pattern) for pattern in patterns)
    return re.compile("|".join(f"(?:{pattern})" for pattern in folded))


_OUTRIGHT_SIGN, _HINT_SIGN = _compiled(_OUTRIGHT), _compiled(_HINTS)


def asking(printed: Body) -> str:
    """The first step whose output asks outright for something to be learned; empty for none."""
    return next((step for step, text in printed.texts if _OUTRIGHT_SIGN.search(text)), "")


def around(printed: Body) -> list[Said]:
    """What stands near anything that hints at such a request."""
    found: list[Said] = []
    for step, text in printed.texts:
        for number, match in enumerate(_HINT_SIGN.finditer(text)):
            if number >= 40:
                break
            found.append(Said(step, text[max(0, match.start() - 300) : match.end() + 600]))
    return found
