"""Standing orders: what the user says is to be remembered, and how agent and user work together.

Somebody who says "save that in your memory" or "ask me before you edit anything" means all work to
come, however often they say it, in whatever language; and so does who says what is used for what,
which language is spoken, where something lies. What else is wished for is `wishes.py`'s.
"""

import re

from tacit.base.patterns import Alternatives, late_pattern
from tacit.traces.typed_words import OF_ONESELF, WIDE, content_words, is_translating, subject_words

_MEMORY = r"(?:mem+o?r+o?[yrti]?(?:es|y)?|memory\.md)"
"""However it is spelt, but for a memo."""
_PAGE = (
    r"(?:(?:claude|agents?|gemini|copilot-instructions)[\s.]*md|cursor\s?rules"
    r"|(?:your|our|the|project|global)\s+(?:rules|guidelines|instructions|conventions|notes|preferences))"
)
_ABOUT_AGENT = r"(?:(?:your|claude(?:['’]s)?|agents?['’]?s?|project|global|user|long[- ]term)\s+)"
_THIS = (
    r"(?:it|this|that|these|those|the\s+(?:following|above)|this\s+(?:one|rule|fact|path|info\w*))"
)
_NO_MEMORY = (
    r"(?!\s*(?:instead|rather|until|usage|leak|limit|cach\w*|store|map|buffer|pressure|footprint"
    r"|\w+\s+(?:backend|database|db)|and\s+(?:flush|reuse)|so\s+(?:it|the|they)\b))"
)
# The clause that asks to remember, without what is to be remembered.
_ENGLISH = (
    rf"(?:\b(?:please|pls|and|also|then|so|can\s+you|could\s+you|you\s+(?:can|should))\W+)*"
    rf"(?:\bremember(?:\s+{_THIS})?\s+and\s+)?"
    rf"(?:\b(?:save|note|record|write|remember)(?:\s+{_THIS})?(?:\s+down)?"
    rf"(?:\s+for\s+(?:the\s+)?(?:future|later))?\s+(?:(?:in|into|to|on|as\s+an?)\s+)?"
    rf"(?:the\s+|my\s+)?{_ABOUT_AGENT}*{_MEMORY}\b{_NO_MEMORY}"
    rf"|\b(?:save|note|record|write|remember|add|put|keep|store|commit)\s+(?:{_THIS}\s+)?(?:down\s+)?"
    rf"(?:in|into|to)\s+(?:the\s+)?{_ABOUT_AGENT}{_MEMORY}\b{_NO_MEMORY}"
    rf"|\b(?:save|note|record|write|add|put|include|document|mention)\s+{_THIS}\s+(?:down\s+)?"
    rf"(?:as\s+an?\s+(?:rule|note)\s+)?(?:in|into|to)\s+{_PAGE}"
    rf"|\b(?:maybe\s+)?(?:document|note|record|save|write|add)\s+{_THIS}\s+(?:down\s+)?as\s+(?:an?\s+)?"
    r"(?:convention|guideline|learning|lesson|policy|principle|rule|standard)s?\b"
    r"(?:\s+in\s+(?:the|this|our)\s+\w+)?"
    rf"|\b(?:make|turn|write|save)\s+{_THIS}\s+(?:workflow\s+|process\s+)?(?:into\s+|as\s+)?an?\s+"
    r"(?:reusable\s+)?(?:skill|slash\s+command|standing\s+order)\b"
    r"|\bnote\s+(?:for|to)\s+(?:later|yourself|the\s+future|future\s+(?:you|work|sessions))"
    rf"|\b(?:add|put|store|keep)\s+(?:{_THIS}\s+)?(?:in|into|to)\s+{_MEMORY}(?=\s+that\b|\s*[:：])"
    rf"|\bupdate\s+(?:your|the)\s+{_MEMORY}(?=\s+that\b|\s*[:：,])"
    rf"|\b(?:add|put|write|note|save)\s+(?:an?\s+\w+\s+|{_THIS}\s+)?(?:in|into|to)\s+(?:the\s+)?{_PAGE}"
    r"(?=\s+that\b|\s*[:：])|\b(?:make\s+a|take)\s+note(?=\s+that\b|\s*[:：])"
    rf"|\bremember\s+{_THIS}(?:\s+(?:rule|fact))?(?=\s*[,:：])|\bremember(?=\s*[:：])"
    r"|^\W*(?:(?:and|also|but|ok|okay|please|so)\W+)*remember,?\s+(?=(?!(?:it|last|me|that|the\s+(?:last|one|other|time)|them|this|to|what|when)\b)\w+\s+\w)"
    r"|\bsave\s+(?:this|it|that)\s+for\s+(?:later|(?:the\s+)?future(?:\s+\w+)?)(?=\s*[:：,]|\s*$)"
    r"|^\W*(?:fyi\W+)?for\s+(?:next\s+time|(?:the\s+)?future(?:\s+(?:sessions?|work))?)(?=\s*[:：,]))"
    r"(?:\s*,?\s*(?:please|pls|thanks)\b)?(?:\s+(?:that|this:))?\s*[:：]?"
)
_ABROAD = (
    # Chinese
    r"(?<![^\s，,。;；])(?:请|請)?你?(?:一定)?要?(?:记住|記住|牢记|牢記|记下来|記下來)(?:了|一下|这一?点|這一?點)*"
    r"(?!我(?!们|們|的)|密[码碼]|用[户戶]|登[录錄]|[账帳][号號]|[选選][择擇]|[状狀][态態])[：:，,\s]*"
    r"|(?:请|請|把|将|將|这|這|条|條|规则|規則|加|写|寫|添)*(?:写|寫|加|添加)?(?:到|进|進|入)\s*"
    r"(?:claude|agents|gemini)\.md(?:里|中)?(?=\s*[：:])"
    r"|[，,]?(?:并|並|请|請)*(?:[将將把]?[这這它](?:个|個|条|條|些|点|點)?(?:功能|流程|操作|规则|規則)?)?"
    r"(?:写|寫|存|保存|加|记|記|添加|记录|記錄)(?:到|进|進|入|在)\s*(?:你的?|全局|项目)*(?:长期|長期)?"
    r"(?:记忆|記憶|memory(?!\.))(?:里|中|裡|库)?(?:文件)?[：:]?"
    r"|[，,]?(?:并|並|请|請)*[将將把][这這](?:个|個)?(?:功能|流程|操作|步骤|步驟)?"
    r"(?:写|寫|做|保存|封装|总结|沉淀)(?:成|为|為)\s*(?:一个|一個)?\s*(?:skill|技能|规则|規則)"
    # Japanese
    r"|[、。]?(?:これ|それ|この[^\s。、]{1,6})?[をは]?(?:よく)?(?:覚えて|記憶して)(?:おいて|い?て)?(?:ください|下さい|ほしい|欲しい|くれ|ね)*"
    r"(?=[、。：:\s]|$)|(?:claude|agents|gemini)\.mdに(?:追記|追加|記載)して(?:おいて)?(?:ください)?(?=[：:])|(?:これを)?(?:メモリー?|記憶)に(?:保存|記録|追加)して(?:おいて)?(?:ください|下さい|ね)*"
    # Korean
    r"|(?:이걸|이거|이것을|꼭)?\s*(?:을|를)?\s*기억해\s*(?:줘|둬|두세요|주세요|놔)(?:요)?|메모리에\s*(?:저장|기록)\S*"
    r"|(?:claude|agents|gemini)\.md에\s*(?:추가|기록|저장)[^\s:：]*(?=\s*[:：])"
    # Russian, Ukrainian
    r"|\bзапомни(?:те)?\b(?:,?\s*пожалуйста)?(?:\s*[,:—-]\s*|\s+(?=что\b|это\b)|\s*$)(?:что\b)?|\bзапам['’]ятай\b[,:]?(?:\s*що\b)?"
    r"|,?\s*(?:и\s+)?\b(?:сохрани|запиши|занеси|добавь)\s+(?:это\s+)?(?:себе\s+)?в\s+(?:свою\s+)?"
    r"(?:память|правила|claude\.md)\b"
    # German, Dutch
    r"|\bmerke?\s+dir\b(?:\s+(?:das|bitte|mal))*[,:]?(?:\s*dass\b)?|\bonthoud\b[,:]?(?:\s*dat\b)?"
    r"|,?\s*(?:und\s+)?\b(?:speicher\w*|schreib\w*)\s+(?:das\s+|es\s+|dir\s+)*in\s+(?:dein|das|die)\w*\s+"
    r"(?:gedächtnis|memory|regeln|claude\.md)\b"
    # French
    r"|\b(?:retiens|mémorise|souviens-toi|rappelle-toi)\b(?:\s+(?:bien|ça|cela|ceci))*(?:\s*[,:]|\s+qu(?:e\b|['’])|\s*$)"
    r"|,?\s*(?:et\s+)?\b(?:enregistre|garde|note|sauvegarde|ajoute)(?:-le|-ça|-la)?\s+(?:ça\s+|cela\s+|ceci\s+)?"
    r"(?:en|dans|à)\s+(?:ta\s+|la\s+|tes\s+)?(?:mémoire|règles|claude\.md)\b"
    # Spanish
    r"|\b(?:recuerda|acuérdate|memoriza)\b(?:\s+de)?(?:\s*[,:]|\s+que\b|\s*$)"
    r"|,?\s*(?:y\s+)?\b(?:guarda|guárda(?:lo)?|anota|añade|agrega)(?:lo)?\s+(?:esto\s+|eso\s+)?(?:en|a)\s+"
    r"(?:tu\s+|la\s+|tus\s+)?(?:memoria|reglas|claude\.md)\b(?:\s+que\b)?"
    # Portuguese
    r"|\blembr[ea](?:-se|-te)?\s+(?:de\s+|disso\W+)?que\b|\blembre-se\b[,:]?(?:\s+sempre)?(?:\s+de\b)?"
    r"|,?\s*(?:e\s+)?\b(?:guarde|salve|salva|anote|grave)\s+(?:isso\s+|isto\s+)?(?:na|em)\s+(?:sua\s+|tua\s+)?memória\b(?:\s+que\b)?"
    # Italian
    r"|\b(?:ricorda(?:ti)?|memorizza|tieni\s+a\s+mente)\b(?:\s*[,:]|\s+(?:di|che)\b|\s*$)"
    r"|,?\s*(?:e\s+)?\b(?:salva|annota)(?:lo)?\s+(?:questo\s+)?(?:in|nella)\s+(?:tua\s+)?memoria\b(?:\s+che\b)?"
    # Turkish, Polish, Hindi
    r"|\bunutma(?:yın)?(?:\s*[:,]|\W*$)|\b(?:bunu\s+)?(?:hafızana|hafızaya|belleğine)\s+(?:kaydet|ekle|al)\b"
    r"|\bzapamiętaj\b(?:\s*[,:]|\s+że\b)|याद\s+रख(?:ना|ो|ें|िए|िएगा)[,:]?(?:\s*कि)?"
)
_REMEMBER = Alternatives(rf"{_ENGLISH}|{_ABROAD}", re.IGNORECASE)
_HINT = Alternatives(
    r"mem|note|future|next\s+time|md\b|rules|skill|slash|\bas\s|order|prefer|guide|instruct|conven|merk"
    r"|onthoud|retiens|souviens|rappelle|recuerda|guard|anota|agrega|lembr|salv|ricord|tieni|annota|unutma|grav"
    r"|enregistre|garde|ajoute|speicher|schreib",
    re.IGNORECASE,
)
# What sounds like it, and is a question, praise, or about what somebody else remembers.
_UNSAID = Alternatives(
    r"\b(?:do|did|don['’]?t|didn['’]?t|can['’]?t|if|as|i)\s+(?:you\s+|i\s+|not\s+)?remember\b"
    r"|\bi\s+(?:really\s+)?liked?\s+how\b|不用记|不必记|別に覚え|기억\s*안",
    re.IGNORECASE,
)
_CONDITION = late_pattern(r"\W*(?:wh\w{0,2}n|whenever|if|for|before|after|in|每次|如果|当)\b", re.I)
_POINTING = late_pattern(
    r"\W*(?:it|this|that|these|those|they|here|das|ça|cela|esto|isso|questo|это)\b|\W*[这這此]|\W*これ",
    re.IGNORECASE,
)
_JOINED = " \t,，、;；:：-–—"
_ENOUGH, _FEW = 2, 3


def remembered(told: list[str], at: int) -> str:
    """What the sentence `at` asks to have remembered, in the user's words; empty where it does not.

    It stands behind the clause that asks, before it, or in the sentence before or after.
    """
    sentence = told[at]
    if sentence.isascii() and not _HINT.search(sentence):
        return ""  # most sentences, soon
    found = _REMEMBER.search(sentence)
    if found is None or _UNSAID.search(sentence):
        return ""
    before, behind = sentence[: found.start()].strip(_JOINED), sentence[found.end() :]
    apart = behind.lstrip()[:1] in ",，;" and _says_something(before)
    behind = "" if apart else behind.strip(_JOINED)
    if not _says_something(behind):
        thing = before
    elif before and (_CONDITION.match(before) or _POINTING.match(behind)):
        thing = f"{before}, {behind}"
    else:
        thing = behind
    if _says_something(thing) and not (_POINTING.match(thing) and thing == behind):
        few = at > 0 and len(content_words(thing)) <= _FEW and not WIDE.search(thing)
        return f"{told[0]} {thing}" if few else thing  # what it is about stands first
    beside = (at + 1, at - 1) if sentence.endswith((":", "：")) else (at - 1, at + 1)
    near = [told[n] for n in beside if 0 <= n < len(told)]
    return next((f"{one} {thing}".strip() for one in near if _says_something(one)), "")


def _says_something(text: str) -> bool:
    words = subject_words(text) if WIDE.search(text) else content_words(text)
    return len(words) >= _ENOUGH


_TONGUE = (
    r"(?:arabic|chinese|czech|dutch|english|french|german|hindi|italian|japanese|korean|polish"
    r"|portuguese|russian|spanish|turkish|ukrainian|vietnamese)"
)
_CONSENT = (
    r"(?:approval|authori[sz]ation|confirmation|consent|go-?ahead|input|ok(?:ay)?|opinion|permission|say-?so|sign-?off"
    r"|word)"
)
_ASK_ME = (
    r"(?:ask|consult|question|check\s+with|confirm\s+with|inform|notify|warn)\s+me\b"
    rf"|(?:ask\s+for|get|wait\s+for|await|need)\s+my\s+(?:\w+\s+)?{_CONSENT}"
)
# How agent and user work together: who is asked when, in which language, in what form.
_TOGETHER = Alternatives(
    rf"""\b(?:{_ASK_ME})[^.?!]*\bbefore\s+(?!(?:it|this|that|the)\b)(?:you\s+)?\w+\s*
      (?!(?:\s(?:it|this|that|the)\b))
    | \bbefore\s+(?:you\s+)?(?:any|each|every|\w+ing|commit|push|edit|change
    |delete)\b[^.?!]*\b(?:{_ASK_ME})
    | \bwithout\s+(?:first\s+)?(?:asking|consulting|telling)(?:\s+(?:me|first))+\b
    | \bwithout\s+(?:my|(?:any\s+)?(?:clear|direct|explicit|express|prior
    |the\s+user['’]?s))\s+(?:\w+\s+)?{_CONSENT}\b
    | \b(?:unless|until)\s+(?:you(?:['’]re|\s+are)\s+)?(?:explicitly|expressly
    |specifically)\s+(?:asked|told|instructed|requested)\b
    | \b(?:always|never|must|only|every|any)\b[^.?!]*\b(?:after|once|until|unless)\s+i(?:['’]ve
    |\s+have)?\s+
      (?:agree|approve|confirm|ok|say\s+so|sign)
    | \bonly\s+(?:change|commit|create|deploy|edit|merge|open|push|release
    |run)\b[^.?!]*\b(?:after|if|once|when)\s+i\b
    | \b(?:describe|discuss|explain|plan|propose|show
    |tell)\b[^.?!]*\bbefore\s+(?:you\s+)?(?:chang|cod|commit|delet
    |edit|implement|mak|modif|touch|writ)\w*\s+(?:any|code\b|files?\b)
    | ^\W*(?:please\s+)?no\s+(?:\w+\s+)?\w+s?\s+in\s+(?:the\s+|your\s+|my\s+
    |our\s+)?(?:answers?|code|comments?|commits?
    |docs?|messages?|names|prs?|repl(?:y|ies)|responses?)\b
    | \b(?:answer|reply|respond)\s+(?:\w+\s+)?(?:brief|concise|short)(?:ly)?\b
    | \bkeep\s+(?:your\s+|the\s+|all\s+)?(?:answers|repl(?:y|ies)|responses|explanations
    |summaries)\s+\w+
    | \b(?:answer|reply|respon[ds]e?|speak|talk|communicate|chat|converse)\b(?:\s+(?:to|with|me
    |us|only|always
    |also|back|everything|please))*\s+in\s+{_TONGUE}\b
    | \bkeep\s+(?:it|this|that|everything|all|(?:our|the|your|all)\s+(?:\w+\s+)?(?:answers|chat
    |comments
    |communication|conversation|docs|documentation|messages|replies|text|texts))\s+(?:\w+\s+)?(?:in\s+)?{_TONGUE}\b
    | ^\W*(?:please\s+)?(?:in\s+|use\s+|speak\s+)?{_TONGUE}(?:\s+(?:please|only
    |from\s+now\s+on))+\W*$
    | \b(?:all|always|every|only)\b[^.?!]*\b(?:absolute|clickable|full)\s+paths?\b
    | \b(?:absolute|full)\s+paths?\b[^.?!]*\b(?:always|everywhere|so\s+(?:that\s+)?i\s+can|click)
    | \b(?:follow\w*|use|using|with)\s+(?:the\s+)?conventional[-\s]+commits?\b
    | \b(?:don['’]?t|do\s+not|never|no|omit\w*|without|avoid)\b[^.?!]{{0,40}}\b(?:mention\w*
    |references?|credit)\s+
      (?:to|of|for)?\s*(?:claude|codex|copilot|cursor|ai|yourself)\b
    | \b(?:drop|leave\s+out|no|omit|remove|strip|without|never|not|don['’]?t|ohne|sans|sin|senza
    |sem|без)
      \b[^.?!]{{0,30}}co-authored-by
    | \bohne\s+(?:meine|mein|vorherige|ausdrückliche|explizite
    |mich\s+zu)\s+(?:\w+\s+)?(?:zustimmung|bestätigung
    |erlaubnis|freigabe|ok
    |einverständnis|fragen)\b | \bohne\s+(?:\w+\s+)?(?:rückfrage|rücksprache|absprache)\b
    | \bfrag\w*\s+(?:mich|immer)\b[^.?!]*\bbevor\b
    | \bbevor\b[^.?!]*\bfrag\w*\s+mich\b
    | \berst\s+nach\s+meiner\s+(?:zustimmung|bestätigung|freigabe)\b
    | \b(?:antworte|sprich|rede|kommuniziere)\b[^.?!]*\bauf\s+(?:deutsch|englisch)\b
    | \bsans\s+(?:mon|ma|me)\s+(?:\w+\s+)?(?:accord|validation|confirmation|permission
    |autorisation|approbation
    |feu\s+vert|demander|consulter)\b
    | \bsans\s+(?:accord|autorisation|permission)\s+(?:explicite|préalable)\b
    | \bdemande-moi\b[^.?!]*\bavant\b
    | \bavant\b[^.?!]*\bdemande-moi\b
    | \b(?:réponds|parle|communique)(?:-moi)?\b[^.?!]*\ben\s+(?:français|anglais)\b
    | \bsin\s+(?:mi\s+(?:aprobación|confirmación|permiso|consentimiento|autorización|visto)
    |(?:preguntarme|consultarme|pedirme|avisarme)|(?:permiso|autorización|aprobación)\s+(?:explícit|previ)\w+)\b
    | \b(?:pregúntame|consúltame|avísame|pídeme\s+(?:permiso|confirmación))\b[^.?!]*\bantes\s+de\b
    | \bantes\s+de\b[^.?!]*\b(?:pregúntame|consúltame|avísame|pídeme)\b
    | \b(?:responde|contesta|háblame|respóndeme)\b[^.?!]*\ben\s+(?:español|inglés|castellano)\b
    | \bsem\s+(?:a\s+)?(?:(?:permissão|autorização|aprovação)\s+(?:explícita|prévia)
    |minha\s+(?:aprovação
    |confirmação|permissão|autorização)
    |me\s+(?:perguntar|consultar))\b
    | \b(?:me\s+pergunte|pergunte|me\s+consulte|peça\s+(?:minha\s+)?(?:permissão
    |confirmação))\b[^.?!]*\bantes\b
    | \bantes\s+de\b[^.?!]*\b(?:me\s+pergunte|pergunte-me|me\s+consulte
    |peça\s+(?:minha\s+)?(?:permissão|confirmação))\b
    | \b(?:responda|responde|fale)\b[^.?!]*\bem\s+(?:português|inglês)\b
    | \bsenza\s+(?:la\s+)?mi[ao]\s+(?:conferma|approvazione|permesso|autorizzazione|consenso)\b
    | \bsenza\s+(?:permesso|autorizzazione|consenso)\s+(?:esplicit|previ)\w+
    | \bsenza\s+(?:chiedermi|consultarmi|avvisarmi)\b
    | \b(?:chiedimi|consultami)\b[^.?!]*\bprima\s+di\b | \bprima\s+di\b[^.?!]*\b(?:chiedimi
    |consultami)\b
    | \brispondi(?:mi)?\b[^.?!]*\bin\s+(?:italiano|inglese)\b
    | \bбез\s+(?:явного|прямого)\s+(?:разреш|соглас|указан)
    | \bбез\s+мо(?:его|ей)\s+(?:\w+\s+)?(?:подтвержд|разреш|соглас|одобр|ведом|команд)
    | \b(?:прежде\s+чем|перед\s+(?:тем,?\s+как|каждым|любым|каждой|любой))\b[^.?!]*
      (?:спрос|спраш|покаж|показыв|согласу|предупре|уточня|подтвержд)
    | (?:спрос|спраш|покаж|показыв|согласу|предупре|уточня|подтвержд)\w*[^.?!]*\b(?:прежде\s+чем
    |перед\s+(?:тем,?\s+как|каждым|любым|каждой|любой))\b
    | \b(?:отвеча(?:й|ть)|общай|говори|разговарив|работа(?:й|ть
    |л))\w*\s+(?:\w+\s+){{0,3}}(?:на\s+\w+ском|по-\w+ски)\b
    | \b(?:пиши|комментируй)(?:те)?\b[^.?!]*\b(?:только|всегда|все)\b[^.?!]*\b(?:на\s+\w+ском
    |по-\w+ски)\b
    | \bотвеча\w+\s+(?:\w+\s+)?(?:кратко|коротко)\b
    | \b(?:açık\s+)?(?:izin|onay)\s+almadan\b | \bbez\s+(?:mojej|wyraźnej)\s+zgody\b
    | \bzonder\s+(?:mijn|expliciete|uitdrukkelijke)\s+(?:toestemming|goedkeuring)\b
    | \b(?:onayım|iznim)\s+olmadan\b | \bbana\s+sormadan\b | \bönce\s+bana\s+sor
    | \btürkçe\s+(?:cevap|yanıt|konuş)
    | (?:अनुमति|पुष्टि|मंज़ूरी)\s+के\s+बिना | पहले\s+मुझसे\s+पूछ | (?:हिंदी|हिन्दी)\s+में\s+(?:जवाब|बात|उत्तर)""",
    re.IGNORECASE | re.VERBOSE,
)
_TOGETHER_WIDE = late_pattern(
    r"(?i:co-authored-by)[^。?？]{0,60}(?:去除|去掉|不要|なし|外して|빼)|(?:去除|去掉|不要|不加)[^。]{0,30}(?i:co-authored-by)|"
    # Chinese
    r"(?:时|時|前|任何|所有|每|必[须須]|务必|務必|凡)[^。?？]*先[^。?？]{0,8}"
    r"(?:询问|詢問|[问問]我|[征徵]求|[经經]过?我|[经經]過?我|得到我|告[诉訴]我|跟我确认|[与與]我确认)"
    r"|(?:未[经經]|[没沒]有|不[经經])(?:过|過)?(?:我的?|明[确確]的?)?(?:同意|确认|確認|允[许許]|[许許]可|批准|授[权權])"
    r"|除非我(?:明[确確])?(?:[说說]|要求|同意|告[诉訴]|允[许許])|(?:必[须須]|先)(?:要|得)?[问問](?:一下)?我"
    r"|必[须須][^。?？]*(?:我的?(?:同意|确认|確認|批准)|先[^。?？]*(?:[计計][划劃]|方案|步[骤驟]))"
    r"|[用以](?:简体|繁体|繁體)?(?:中文|英文|英[语語]|日[语語文])(?:来|來|跟我|和我|与我)?"
    r"(?:回答|回复|回覆|交流|[对對][话話]|[沟溝]通|思考|回[应應])|^\W*(?:中文|英文|英[语語])(?:[对對][话話]|回[复覆答]|交流|[沟溝]通)"
    r"|(?:回答|回复|回覆|[输輸]出|交流)[^。?？]{0,6}用(?:简体|繁体|繁體)?(?:中文|英文|英[语語]|日[语語文])"
    r"|(?:不要|不能|[别別]|禁止|不[许許])(?:自[动動]|擅自|自行|主[动動]|随便|隨便)"
    r"|前，?先[^。?？]{0,8}(?:[给給讓让跟和]我)(?:看|[确確][认認]|[说說]|[讨討][论論])"
    r"|(?:所有|全部|一律|任何|每)[^。?？]*(?:[绝絕][对對]|完整)路[径徑]"
    r"|(?i:commit\s*(?:message|msg|信息|消息)|提交(?:信息|[说說]明|消息|[讯訊]息))[^。?？]{0,10}"
    r"(?:要|必[须須]|[应應]|用|保持|遵循)"
    r"|(?:生成|[创創]建|提交|新建|[输輸]出|[写寫])[^。?？]{0,16}[时時][，,]?"
    r"[^。?？]*(?:文件|目[录錄]|位置|路[径徑]|文[档檔]|分支|[测測][试試])[^。?？]*(?:自[动動]|默[认認]|[统統]一|一律|放)"
    # Japanese
    r"|(?:勝手に|許可(?:なく|なしに?)|承認な(?:しに?|く)|確認なしに?|確認せずに|無断で|(?:許可|承認|指示)を得ずに"
    r"|(?:許可|承認|指示)が?(?:ない|無い)(?:限り|場合は))[^。]*(?:ないで|するな|禁止|ないこと|しない)"
    r"|前に[^。]*(?:承認|許可|了承)を(?:得|取|もら|求)"
    r"|(?:変更|編集|実装|コミット|プッシュ|削除|作業|着手)(?:を)?(?:する|の)?前に(?:は|必ず|毎回)[^。]*"
    r"(?:確認|聞い|許可|相談|承認|見せ)|(?:日本語|英語)で(?:回答|答え|返信|返答|対応|会話|やり取り|応答|お願い|話し)"
    r"|(?:すべて|全て|必ず|常に)[^。]*(?:絶対|フル)パス|コミットメッセージは[^。]*(?:して|書いて|お願い|こと|統一)"
    # Korean
    r"|(?:허락|확인|동의|승인|허가)\s*(?:없이|받지\s*않고)[^.]*(?:마|말|않)"
    r"|(?:수정|변경|삭제|커밋|구현|작업)하?기?\s*전에(?:는|\s*(?:꼭|반드시|항상|먼저))[^.]*(?:물어|확인|허락|승인|보여)"
    r"|(?:먼저|전에)\s*(?:나|저)(?:에게|한테)\s*(?:물어|확인)|(?:한국어|영어)로\s*(?:답|대답|응답|대화|말)|(?:모든|항상)[^.]*절대\s*경로|커밋\s*메시지는[^.]*(?:줘|세요|것|자)"
)


def is_working_rule(sentence: str) -> bool:
    """Whether a sentence says how agent and user work together, or is a standing rule: that is
    meant to last."""
    together = _TOGETHER_WIDE if WIDE.search(sentence) else _TOGETHER
    said = together.search(sentence) and not is_translating(sentence)
    return bool(said) or is_standing(sentence)


_KIND = (
    r"(?:package|version|dependency|task|state|secrets?|process)\s+manager|linter|formatter|bundler|test\s+runner"
    r"|test\s+framework|build\s+(?:tool|system)|type\s+checker|orm|runtime|shell|compiler|database|backend|provider"
    r"|standard|default|base\s+branch|main\s+branch|source\s+of\s+truth"
)
# What holds from now on, what serves a project for which purpose, and where things of one kind go.
_STANDING = Alternatives(
    rf"""(?<!(?:minute|second)s\s)(?<!(?:hour|week
    |year)s\s)(?<!(?:month)s\s)(?<!days\s)\bfrom\s+now\b | \b(?:go
    |mov)ing\s+forward\b(?!\s+(?:with|on|to)\b)
    | \bas\s+of\s+today\b(?=.*\b(?:we|you|all|use|please)\b) | \bstarting\s+(?:now|today)\b
    | \bfrom\s+(?:this\s+point|here)\s+(?:on(?:wards?)?|forward)\b | \b(?:henceforth|hereafter)\b
    | \buse\s+[`'"]?[\w.+-]+[`'"]?\s+as\s+(?:the|our|your|a|my)\s+(?:\w+\s+)?(?:{_KIND})\b
    | ^\W*(?:the|this|our)\s+(?:codebase|project|repo(?:sitory)?|app)\s+(?:uses|only\s+uses
    |is\s+using|should\s+use|must\s+use)\s+[`'"]?[\w.+-]+[`'"]?(?:\s*[,.;(]|\s*$|\s+(?:and|as|for|instead|not)\b)
    | ^\W*(?:all|any|every)\s+(?:[\w-]+\s+){{1,6}}?(?:to\s+\S+\s+)?(?:should|must|need\s+to
    |have\s+to|has\s+to)\s+(?:always\s+)?
      (?:go|point|refer|link|come|live|be\s+(?:kept|placed|put|saved|sent|stored|written))\s+(?:in|into|to|under|at|from)\s
    | \b(?:ab\s+(?:jetzt|sofort|heute|hier)|von\s+nun\s+an|für\s+die\s+zukunft|desormais
    |désormais|dorénavant|dès\s+maintenant
    |à\s+(?:partir|compter)\s+(?:de\s+maintenant|d['’]aujourd['’]hui)|pour\s+la\s+suite|a\s+partir\s+de\s+(?:ahora|hoy|agora|hoje)
    |desde\s+(?:ahora|hoy)|de\s+(?:ahora|aquí|hoy)\s+en\s+(?:adelante|más)|de\s+agora\s+em\s+diante|doravante
    |daqui\s+(?:para|pra)\s+(?:a\s+)?frente|d['’]ora\s+in\s+(?:poi|avanti)|da\s+(?:ora|adesso|oggi)\s+in\s+(?:poi|avanti)
    |впредь|отныне|на\s+будущее|с\s+(?:этого|настоящего)\s+момента|с\s+сегодняшнего\s+дня|відтепер
    |bundan\s+(?:sonra|böyle)|bugünden\s+itibaren|od\s+(?:teraz|dziś|dzisiaj|tej\s+pory)|odtąd|vanaf\s+(?:nu|vandaag)|voortaan
    |từ\s+(?:nay|giờ|hôm\s+nay)|mulai\s+(?:sekarang|hari\s+ini)|ke\s+depannya)\b | (?:अब|आगे
    |आज)\s+से\s
    | \b(?:nutze|verwende|nimm)\s+\S+\s+als\s+(?:paketmanager|standard|linter|formatter)
    | \b(?:utilise|prends)\s+\S+\s+comme\s+(?:gestionnaire|linter|formateur|standard)
    | \bus[ae]\s+(?:o\s+)?\S+\s+com[oe]\s+(?:ge(?:stor|store|renciador)|linter|formatador
    |formateador|padrão|estándar)
    | \bиспользуй(?:те)?\s+\S+\s+(?:как|в\s+качестве)\s
    | \bgebruik\s+\S+\s+als\s+(?:package\s?manager|linter)
    | \b(?:dieses\s+projekt\s+(?:nutzt|verwendet)|ce\s+projet\s+utilise|este\s+proyecto\s+(?:usa
    |utiliza)|este\s+projeto\s+usa
    |questo\s+progetto\s+usa|этот\s+проект\s+использует|в\s+этом\s+проекте\s+(?:мы\s+)?использу\w+)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TOOL_FOR = (
    r"(?:パッケージ(?:管理|マネージャー?)|リンター|フォーマッター?"
    r"|テスト(?:ランナー|フレームワーク)?|依存(?:関係|管理))"
)
_STANDING_WIDE = late_pattern(
    # Chinese
    r"从(?:现在|今天)(?:开始|起)|從(?:現在|今天)(?:開始|起)|从此|從此|往[后後]|以[后後](?:都|[请請]?(?:用|使用|不要|[别別]))"
    r"|(?:这个|這個|本|该|該|[当當]前|我[们們]的?)(?:项目|項目|[专專]案|仓库|倉庫|工程)(?:里|中|裡)?(?:以[后後])?(?:都|[统統]一|一律|只|要|必[须須])*(?:使用|用|采用|採用)\s*[A-Za-z]"
    r"|[用以]\s*[A-Za-z][\w.+-]*\s*(?:作为|作為|做|[当當]作?)\s*(?:包管理|默[认認]|[测測][试試]|格式化)"
    # Japanese
    r"|(?:今日|本日|次|今)から(?:は|、)|これ以降|以後[はも、]|(?:この|本)(?:プロジェクト|リポジトリ)(?:では|は)[^。]*(?:使|利用|採用)(?:う|い|っ|し)"
    rf"|{_TOOL_FOR}(?:は|には)\s*[A-Za-z][\w.+-]*\s*を(?:使|利用|採用)"
    r"|(?:作成|実装|変更|修正|追加|完了|コミット|リリース|開発|作業|編集|着手)(?:する|した)?[前後]に?は[^。]*(?:ください|して|こと)"
    # Korean
    r"|(?<![가-힣])(?:지금|오늘|이제|다음)부터는?\s|이\s*(?:프로젝트|저장소)(?:는|에서는)[^.]*(?:사용|써|쓴)|패키지\s*(?:매니저|관리자?)(?:는|로)\s"
    r"|(?:작업|수정|구현|커밋)\s*(?:전|후)에는\s"
)


# What a word of the user's stands for, what is no longer so, what is to be noted or holds for good,
# and what every thing of a kind that the agent makes has to be.
_HOLDS = Alternatives(
    r"""\b(?:when(?:ever)?|if)\s+i\s+(?:say|ask\s+(?:you\s+)?for|type|write)\b(?!\s+(?:it|this|that)\b)[^.?!]{3,}(?:,|\b(?:i\s+mean|it\s+means|you|do|use|run)\b)
    |\b(?:wenn\s+ich\s+(?:\S+\s+){1,5}sage|quand\s+je\s+(?:dis|demande)|cuando\s+(?:yo\s+)?(?:diga|digo|pida|pido)
    |quando\s+(?:eu\s+)?(?:disser|digo|falar|pedir|dico|chiedo)|когда\s+я\s+(?:говорю|прошу|пишу|скажу)|als\s+ik\s+(?:\S+\s+){0,5}zeg
    |(?:gdy|kiedy|jak)\s+(?:mówię|powiem|piszę))\b|\bded(?:iğimde|iğim\s+zaman)\b|कहूँ\s+तो
    |^\W*(?:please\s+note|pls\s+note|note|fyi|be\s+aware)\b(?:\s+that)?[,:]?\s+(?!(?:it|this|that|these|those|i|the\s+following)\b)
    [^.?!]{3,60}\s(?:is|are)\s+(?:read-only|frozen|deprecated|off[-\s]limits|generated|vendored|archived|shared|kept|maintained|managed)\b
    |\b(?:is|are|can\s+be|should\s+be|to\s+be)\s+permanently\s+(?:excluded|ignored|kept|skipped|disabled)\b
    |\b(?:dauerhaft\s+(?:ignorier|ausschließ|überspring)|(?:ignor|exclu|omit)\w*\s+(?:definitiv|permanent)\w*
    |навсегда\s+(?:игнорир|исключ|пропус))
    |\bno\s+longer\s+(?:called|named)\b|\bya\s+no\s+se\s+(?:llama|usa|utiliza)\b|\bya\s+no\s+(?:usamos|utilizamos)\b
    |\bne\s+s['’]appelle\s+plus\b|\b(?:on|nous)\s+n['’]utilis\w+\s+plus\b
    |\b(?:heißt|heissen)\s+(?:jetzt\s+)?nicht\s+mehr\b|\bwir\s+(?:nutzen|verwenden|benutzen)\s[^.?!]*\b(?:nicht|kein\w*\s[^.?!]*)\s?mehr\b
    |\bn[ãa]o\s+(?:se\s+chama|usamos|utilizamos)\s+mais\b|\bnon\s+(?:si\s+chiama|usiamo|utilizziamo)\s+più\b
    |\bбольше\s+не\s+(?:используе[мт]\w*|называется)|\bartık\s[^.?!]*(?:kullanmıyoruz|kullanılmıyor)
    |\b(?:już\s+nie|nie\s[^.?!]*już)\s+(?:używamy|korzystamy|nazywa)|\bgebruiken\s+we\s+niet\s+meer\b
    |^\W*(?:all|every|each|any)\s+(?:[\w-]+\s+){1,4}?(?:that\s+)?you\s+(?:add|build|create|generate|make|write)\b[^.?!]*\b(?:must|should|needs?\s+to|ha(?:s|ve)\s+to)\b
    |\b(?:tod[oa]s\s+[lo]?[oa]s\s[^.?!]{2,40}\sque\s+(?:hagas|crees|generes|escribas|añadas|agregues|(?:você\s+)?(?:fizer|criar|gerar|escrever|adicionar))
    |tous?t?e?s?\s+les\s[^.?!]{2,40}\sque\s+tu\s+(?:crées|fais|écris|génères|ajoutes)|alle\s[^.?!]{2,40},?\s+die\s+du\s+(?:erstellst|schreibst|anlegst|baust)
    |tutt[ie]\s+(?:gli|i|le)\s[^.?!]{2,40}\sche\s+(?:crei|fai|scrivi|generi)|все\s[^.?!]{2,40},?\s+котор\w+\s+ты\s+(?:созда|дела|пиш|добавл)\w+)\b
    |\b(?:when|while|before|after)\s+(?:building|committing|creating|debugging|deploying|editing|generating|merging|naming|pushing|refactoring|releasing|reviewing|running|testing|writing)\s
    (?!(?:it|this|that|these|those|the)\b)[^.?!]*\b(?:always|never|instead|don['’]?t|do\s+not|make\s+sure)\s
    |\b(?:if|when|unless|before|after)\b[^.?!]*\byou\s+(?:always|never)\s+[a-z]{3,}\s
    |\b(?:no|not|n['’]?t|never|without|omit|drop)\b[^.?!]{0,25}\byour\s+(?:own\s+)?(?:attribution|byline|co-?author\w*|credits?|signature)\b
    |\b(?:nicht|keine?|ohne)\b[^.?!]{0,25}\b(?:deine[rn]?\s+)?signatur\b|\b(?:pas|sans)\b[^.?!]{0,25}\bta\s+signature\b
    |\b(?:no|sin)\b[^.?!]{0,25}\btu\s+firma\b|\b(?:não|nao|sem)\b[^.?!]{0,25}\b(?:sua|tua)\s+assinatura\b
    |\b(?:non|senza)\b[^.?!]{0,25}\btua\s+firma\b|\b(?:не|без)\b[^.?!]{0,25}\bсво\w+\s+подпис""",
    re.IGNORECASE | re.VERBOSE,
)
_HOLDS_WIDE = late_pattern(
    r"(?:[当當]我|(?:如果|只要|每次)我)[^。?？]{0,4}(?:[说說]|[让讓]你|要求)[^。?？]{2,}|^我[说說][^。?？]{2,30}(?:[时時]|的[时時]候|就是)"
    r"|(?:と|って)(?:言|い|頼|指示し)(?:ったら|われたら|んだら|たら)[^。]*(?:ように|して|こと|です|ください)"
    r"|(?:라고|하라고)\s*(?:하면|말하면)\s|不再(?:使用|用|叫)\s*\S|もう使(?:わない|っていない|いません)|더\s?이상\s*(?:사용|쓰)\S*\s*않"
    r"|(?:不要|不加|去掉|[别別])[^。]{0,8}(?:你的)(?:署名|[签簽]名)|(?i:md|规则|規則|skill|规范|規範)[^。]{0,8}以[后後](?:生成|新建|[创創]建|[写寫]|所有|每|的)"
    r"|永久(?:忽略|跳[过過]|排除)|(?:恒久的|永久)に(?:無視|除外)|영구(?:적으로|히)\s*(?:무시|제외)"
)


def is_standing(sentence: str) -> bool:
    """Whether a sentence says what holds from now on, what a project uses for what, or where things
    of one kind go."""
    if WIDE.search(sentence):
        return bool(_STANDING_WIDE.search(sentence) or _HOLDS_WIDE.search(sentence))
    return bool(_STANDING.search(sentence) or _HOLDS.search(sentence))


_FOR_AGENTS = r"(?i:(?:claude|agents?|gemini|copilot-instructions)[./]md)"
# What says so in languages without spaces between words, or with endings for them: a word of
# lasting or generality, or the page for agents, and a form that asks.
_LASTS_ABROAD = {
    "Chinese": (
        late_pattern(
            r"总是|總是|永远|永遠|从不|從不|(?:^|[，,。\s]|从今|從今)以[后後]|今[后後]|下一?次|务必|務必|一律"
            r"|禁止|每一?次|每[当當]|凡是|始[终終]|原[则則]上|除非|除了[^。]*[都外]"
            r"|所有[^。]*都(?:要|必|应|應|得|使?用)|我[们們](?:只|用|使用|不用)"
            rf"|(?:不要|[别別])再?使?用\s*[A-Za-z]|{_FOR_AGENTS}[^。]*(?:规则|規則|规范|規範|提醒)"
            r"|(?:超[过過]|[当當]|如果)[^。]*(?:提醒|询问|詢問|通知)(?:我|用[户戶])"
        ),
        late_pattern(
            r"[请請勿]|不要|(?<![特分类類区區个個])[别別](?![的人名是])|[帮幫给給]我|必[须須]|[务務]必|禁止|一律"
            r"|不[准许許得]|[记記]得|[应應][该該當当]|[你都就也，,。：:\s我]要(?![求么點点])|[都就]用|[让讓]你"
            r"|只[用能许許]|希望|需要你|先[问問]|吧(?:$|[。，！])"
        ),
    ),
    "Japanese": (
        late_pattern(
            r"今後[はも、]|これからは|次回から|毎回|毎度|常に|必ず|絶対に?|原則|優先して|二度と|禁止"
            r"|(?:の|する)たびに|タイミングで|場合に限り|場合のみ|以外は|を除い[てき]|ルール(?:化|にし|とし)"
            r"|基本(?:的に)?は?[^。]*ほしい|(?:場合|とき|時|たら)[^。]*(?:ユーザーに|許可を)"
            r"|(?i:claude|codex|copilot|gemini|クロード|エージェント)[^。]*(?:指摘|指示)(?:を|し)"
            r"|前に[^。]*(?:したかった|してほしかった)|べきだった"
            rf"|[A-Za-z][^。]*使わないで|[るい]ように[^。]*{_FOR_AGENTS}|{_FOR_AGENTS}[^。]*[るい]ように"
        ),
        late_pattern(
            r"[てで](?:ください|下さい|ほし|欲し|くれ|いただけ|頂け|もらえ|ね|よ|$|。)|[るい]ように|ないで|こと(?:$|。)|べき"
            r"|ルール|禁止|かった(?:$|。|です|のに)|べきだった|[しりえけ]たい(?:$|。|です|と思)|[めべけせろ](?:$|。)|しない(?:$|。)"
        ),
    ),
    "Korean": (
        late_pattern(
            r"항상|언제나|매번|때마다|할\s*때는|앞으로(?!더)|(?:^|\s)다음부터|절대|반드시|무조건|기본적으로"
            r"|제외하고(?:서)?는|외에는|(?:경우|때)에만|(?:경우|때|면)[^.]*(?:사용자에게|알림|가이드|규칙)"
            rf"|[A-Za-z]\S*\s*(?:쓰지|사용하지)\s*[마말]|{_FOR_AGENTS}[^.]*(?:경우|때|가이드|규칙)"
        ),
        late_pattern(r"줘|세요|십시오|지\s*[마말]|도록|하자|해야|할\s*것|싶"),
    ),
}


# What speaks of all work to come by itself.
_FROM_NOW = late_pattern(
    r"(?:^|[，,。\s我]|希望|从今|從今)(?:以[后後]|今[后後])(?:所有|都|要|不|请|請|用|先|每|凡|一律|再|提交|[写寫]|生成|[别別])"
    r"|今後は|これからは|앞으로는?\s"
)


def _language(sentence: str) -> str:
    kana, hangul = (re.search(s, sentence) for s in (r"[\u3040-\u30ff]", r"[\uac00-\ud7af]"))
    return "Japanese" if kana else "Korean" if hangul else "Chinese"


def is_chinese(sentence: str) -> bool:
    """Whether a sentence is Chinese, of those that are written without spaces or in Hangul."""
    return _language(sentence) == "Chinese"


def asks_abroad(sentence: str) -> bool:
    """Whether a sentence of one of these languages asks for something to be done."""
    return bool(_LASTS_ABROAD[_language(sentence)][1].search(sentence))


def lasts_abroad(sentence: str) -> bool:
    """Whether a sentence of one of these languages says that it is to last."""
    if not WIDE.search(sentence):
        return False
    lasts, asks = _LASTS_ABROAD[_language(sentence)]
    if _FROM_NOW.search(sentence):
        return True
    return bool(lasts.search(sentence) and asks.search(sentence))


_QUESTIONS = (
    r"是否|能不能|能否|可不可以|如何|有[没沒]有|哪些|什[么麼]情[况況]|[还還]是有|吧[?？]|[吗嗎呢]\W*$"
    r"|[为為]什[么麼]|怎[么麼]|什[么麼]|[还還]是[^。]*[还還]是"
)
QUESTIONS_ABROAD = late_pattern(_QUESTIONS)
_DESCRIBES = late_pattern(
    rf"{_QUESTIONS}"
    r"|失[败敗]|报错|報錯|出错|出錯|崩[溃潰]|のはなぜ|なぜ|どうして|ってしま|エラーが"
    r"|(?:毎回|たび(?:ごと)?に)[^、。]{0,20}[かがさたなばまらわ]れ"
    r"|(?:どの|どう|何|なに|なぜ|いつ|どこ|どれ)[^。]*(?:教えて|説明して|知りたい)"
    r"|(?:무엇|어떤|어떻게|왜|뭐)[^.]*(?:알려|설명)|ですか|ますか|でしょうか|ませんか|かな(?:$|。)|왜\s|실패|오류|(?:까|나요|니)\W*$"
)


def describes_abroad(sentence: str) -> bool:
    """Whether a sentence in another language tells how something is, or asks it."""
    return bool((_DESCRIBES if WIDE.search(sentence) else OF_ONESELF).search(sentence))


_TONGUES = {
    "Arabic": "arabic|arabisch|arabe|árabe|arabo|арабск|阿拉伯[语文]|アラビア語|아랍어",
    "Chinese": "chinese|chinesisch|chinois|chino|chinês|cinese|китайск|中文|中国語|중국어|çince",
    "Czech": "czech|tschechisch|tchèque|checo|ceco|чешск|čeština|češtině|česky",
    "Dutch": "dutch|niederländisch|néerlandais|neerlandés|holandês|olandese|nederlands|нидерландск",
    "English": "english|englisch|anglais|inglés|inglês|inglese|английск|англійськ|英[文语語]|영어"
    "|ingilizce|angielsk|engels|अंग्रेज़ी|अंग्रेजी",
    "French": "french|französisch|français|francés|francês|francese|французск|法[文语]"
    "|フランス語|프랑스어",
    "German": "german|deutsch|allemand|alemán|alemão|tedesco|немецк|德[文语]|ドイツ語|독일어"
    "|almanca|duits",
    "Hindi": "hindi|हिंदी|हिन्दी",
    "Italian": "italian|italienisch|italien|italiano|итальянск|意大利[文语]|イタリア語",
    "Japanese": "japanese|japanisch|japonais|japonés|japonês|giapponese|японск|日本語|日[文语語]"
    "|일본어",
    "Korean": "korean|koreanisch|coréen|coreano|корейск|한국어|韩[文语]|韓国語",
    "Polish": "polish|polnisch|polonais|polaco|polacco|польск|polsku",
    "Portuguese": "portuguese|portugiesisch|portugais|portugués|português|portoghese|португальск"
    "|葡萄牙[文语]|pt[-_]?br",
    "Russian": "russian|russisch|russe|ruso|russo|русск|俄[文语]|ロシア語|러시아어|rusça",
    "Spanish": "spanish|spanisch|espagnol|español|castellano|espanhol|spagnolo|испанск"
    "|西班牙[文语]|スペイン語",
    "Turkish": "turkish|türkisch|turc|turco|турецк|türkçe|トルコ語",
    "Ukrainian": "ukrainian|ukrainisch|ukrainien|ucraniano|украинск|українськ",
    "Vietnamese": "vietnamese|tiếng\\s+việt|ベトナム語|越南[文语]",
}
_NAMED = "|".join(_TONGUES.values())
_ANY_TONGUE = Alternatives(_NAMED, re.IGNORECASE)
# What is said, written or shown is to be in a language.
_IN_TONGUE = late_pattern(
    rf"\b(?:in|into|to|auf|ins|en|au|em|para|na|po|по|на)[\s-]+(?:the\s+|het\s+|plain\s+|simple\s+)?({_NAMED})"
    rf"|\bkeep\b[^.?!]*\b({_NAMED})\b|^\W*({_NAMED})(?:\s+(?:please|only))+\W*$|\bbằng\s+({_NAMED})"
    rf"|(?:[用以成为為]|翻[译譯])\s?({_NAMED})|^\W*({_NAMED})(?:对话|對話|回|交流)|({_NAMED})(?:で|に|へ|表記|化|로|으로|\s+में)"
    rf"|\b({_NAMED})\s+(?:cevap|yanıt|konuş|yaz)",
    re.IGNORECASE,
)
_TRANSLATES = late_pattern(
    r"\b(?:i18n|l10n|locali[sz]\w*|locales?|translations?|languages?|strings?|subtitles?)\b|语言包|多语言|多言語|다국어",
    re.IGNORECASE,
)


def asked_tongue(sentence: str) -> str:
    """The language that something is asked to be in, by its English name; empty where none is, or
    where a product's translations are meant."""
    found = [*_IN_TONGUE.finditer(sentence)] if _ANY_TONGUE.search(sentence) else []
    if not found or _TRANSLATES.search(sentence):
        return ""
    named = str(next(filter(None, found[-1].groups())))
    return next(name for name, forms in _TONGUES.items() if re.fullmatch(forms, named, re.I))


def language_of_work(sentence: str) -> str:
    """The language that a working rule says is to be used; empty where it is about something
    else."""
    return asked_tongue(sentence) if is_working_rule(sentence) else ""


# Whether a page has been followed: then it is to be.
_FOLLOWED = Alternatives(
    r"[^\n.?!]*(?:\b(?:guidelines?|protocols?|rules|conventions|standards|process|checklist)\b[^.\n]{0,60}\b(?:followed"
    r"|respected|adhered\s+to|complied\s+with|kept)\b|\b(?:eingehalten|befolgt|respectée?s|seguid[oa]s?|rispettat[eio]"
    r"|соблюд\w+|naleefd)\b|遵[循守]|按照了|に(?:従|沿)っ|지켜|따랐)[^.\n]{0,40}?@?[\w./-]+\.(?:mdx?|rst|adoc)\b",
    re.IGNORECASE,
)
# That a command did it, said by the user who had tried.
_WORKED = late_pattern(
    r"(?:\b(?:this|that|the\s+following)\s+(?:one\s+)?work(?:s|ed)|\b(?:it|that)\s+work(?:s|ed)\s+(?:with|when\s+i\s+(?:run|ran))"
    r"|\b(?:damit|so)\s+(?:geht|ging|funktioniert)\s?e?s?|\b(?:ça|cela)\s+(?:marche|a\s+marché)(?:\s+avec)?"
    r"|\b(?:esto|así)\s+(?:funciona|funcionó)|\b(?:isso|assim)\s+funcion(?:a|ou)|\b(?:questo|così)\s+(?:funziona|ha\s+funzionato)"
    r"|\b(?:это|так)\s+(?:работает|сработало|заработало)|(?:这样|這樣|用这个|这个命令)(?:就)?(?:可以|能|行)(?:了)?|これで(?:動い|でき|うまくいっ)[^:：]{0,6}"
    r"|이렇게\s*하니\s*(?:됐|된)\S*)\s*[:：]\s*`?(?P<command>(?:[A-Z_]{2,}=\S+\s+)*(?:[\w./~-]+)(?:\s+[^\n`]{1,120})?)`?\s*$",
    re.IGNORECASE | re.MULTILINE,
)


def followed_page(text: str) -> str:
    """The sentence that asks whether a page was followed, with the page; empty where none does."""
    found = _FOLLOWED.search(text)
    return " ".join(found[0].split()) if found else ""


def worked_command(text: str) -> str:
    """The line with a command that the user says worked; empty where there is none."""
    found = _WORKED.search(text) if ":" in text or "：" in text else None
    if found is None or not re.search(r"[-/=]|\s\w", found["command"]):
        return ""
    return " ".join(found[0].split())


# Where something lies outside of the project, or what it is called: no wish, but as lasting.
_PLACED = Alternatives(
    r"""\b(?:is|are|lives?|lies|located|kept|stored|cloned)\s+(?:\w+\s+){0,2}?(?:at|in|under)?\s*
      [`'"]?(?:~|\.\.)/(?!Desktop|Downloads)[\w.][^\s?]* | (?:~|\.\.)/\S+\s+is\s+where\b
    | \bthe\s+(?:[\w-]+\s+){0,2}(?:binary|command|domain|executable|package|port|repo|tool)
      \s+(?:name\s+)?(?:is|stays)\s+(?:called\s+|named\s+)?(?=\S*[-./_`'"\d])\S+\W*$""",
    re.IGNORECASE | re.VERBOSE,
)


def tells_where(text: str) -> bool:
    """Whether a text says where something is or what it is called, rather than what is wished."""
    return _PLACED.search(text) is not None
