"""What the user asks to have remembered, and how agent and user work together."""

import pytest

from tacit.testing.sample_sessions import made, ran
from tacit.traces.standing_orders import (
    asked_tongue,
    followed_page,
    is_working_rule,
    remembered,
    worked_command,
)
from tacit.traces.typed_words import sentences
from tacit.traces.wishes import wishes

WORK = ["Do it", ran("ls")]


@pytest.mark.parametrize(
    ("prompt", "thing"),
    [
        ("always pin the image tags, save in memory", "always pin the image tags"),
        ("save in memory that the staging host is called heron",
         "the staging host is called heron"),
        ("deploy it, and save in your memroy that the port is 8099", "the port is 8099"),
        ("when you make a chart, save in memory use the blue palette",
         "when you make a chart, use the blue palette"),
        ("put the fixtures into /srv/data, save in memory this is the place for all fixtures",
         "put the fixtures into /srv/data, this is the place for all fixtures"),
        ("We name branches after tickets. Add this to your rules.",
         "We name branches after tickets."),
        ("old endpoints can go at once, maybe document this as a learning in the repo",
         "old endpoints can go at once"),
        ("rebuild both images and restart caddy, and make this a skill",
         "rebuild both images and restart caddy"),
        ("Please remember: the builder wants node 18", "the builder wants node 18"),
        ("Update your memory: we moved to one workspace", "we moved to one workspace"),
        ("Add to CLAUDE.md: seed the tables after a migration",
         "seed the tables after a migration"),
        ("把这条规则写进 CLAUDE.md: 不要改 vendor 目录", "不要改 vendor 目录"),
        ("CLAUDE.md에 추가해줘: 테스트는 vitest 사용", "테스트는 vitest 사용"),
        ("Guarda en memoria que desplegamos los viernes", "desplegamos los viernes"),
        ("记住：测试数据库的端口是 5544", "测试数据库的端口是 5544"),
        ("构建并上传两个镜像,并将这个流程写成skill", "构建并上传两个镜像"),
        ("テストの前にキャッシュを消すこと、覚えておいてください",
         "テストの前にキャッシュを消すこと"),
        ("테스트 서버는 3001 포트를 쓴다는 것을 기억해줘", "테스트 서버는 3001 포트를 쓴다는 것"),
        ("запомни, что сервер сборки называется филин", "сервер сборки называется филин"),
        ("Merk dir, dass der Testserver Uhu heißt", "der Testserver Uhu heißt"),
        ("Retiens que le serveur de test s'appelle Hibou", "le serveur de test s'appelle Hibou"),
        ("Recuerda que el servidor de pruebas se llama Búho",
         "el servidor de pruebas se llama Búho"),
        ("Lembre-se de que o servidor de testes se chama Coruja",
         "o servidor de testes se chama Coruja"),
        ("Ricordati che il server di prova si chiama Gufo", "il server di prova si chiama Gufo"),
        ("unutma: test sunucusunun adı Baykuş", "test sunucusunun adı Baykuş"),
        ("याद रखो कि टेस्ट सर्वर का नाम उल्लू है", "टेस्ट सर्वर का नाम उल्लू है"),
    ],
)  # fmt: skip
def test_what_is_to_be_remembered_is_kept_without_the_clause_that_asks(
    prompt: str, thing: str
) -> None:
    """Behind the clause, before it, or in the sentence beside it, in whatever language."""
    told = list(sentences(prompt))
    found = [one for at in range(len(told)) if (one := remembered(told, at))]
    assert found == [thing]
    assert thing in [wish.text for wish in wishes(made(WORK, [prompt]))]


@pytest.mark.parametrize(
    "prompt",
    [
        "keep the parsed rows in memory until the file is closed",
        "store them in memory instead of the database", "save the session in a memory cache",
        "the worker runs out of memory when it saves", "do you remember that branch?",
        "I remember that this test was slow", "把缓存保存到内存里", "覚えていますか？",
        "update the memory settings of the container to 4GB", "添加一个记住我的复选框",
        "запомни выбранный фильтр в localStorage", "unutma butonunu ekle",
        "note the memory usage of both runs", "save this as a memo in the docs folder",
        "I liked how you did that, save it in memory",
    ],
)  # fmt: skip
def test_what_a_program_keeps_in_memory_is_no_standing_order(prompt: str) -> None:
    """Nor is a question, or praise that does not say of what."""
    told = list(sentences(prompt))
    assert not any(remembered(told, at) for at in range(len(told)))


@pytest.mark.parametrize(
    "prompt",
    [
        "please ask me before making any changes to the schema",
        "Never deploy without my explicit approval.", "answer me in Spanish please",
        "give all file names as absolute paths so that I can click them",
        "use conventional commits for the titles", "do not put a Co-Authored-By line there",
        "only commit when I ask", "please explain before you change anything",
        "no emojis in the code or commits", "不要自动启动服务", "写代码之前先给我看方案",
        "実装前に計画を見せて承認を得ること",
        "Ändere nichts ohne Rückfrage", "отвечай кратко и по делу",
        "修改任何配置前先问我", "未经我的确认不要删除文件", "请用中文回答", "提交信息要用英文",
        "所有链接都给出绝对路径", "勝手にコミットしないでください", "日本語で回答してください",
        "변경하기 전에는 먼저 물어봐 줘", "허락 없이 파일을 지우지 마", "한국어로 답해줘",
        "Без моего согласия ничего не публикуй", "Перед каждым коммитом спрашивай меня",
        "отвечай мне на русском", "Ohne meine Zustimmung wird nichts gelöscht.",
        "Frag mich, bevor du etwas änderst", "Ne supprime rien sans mon accord.",
        "Demande-moi avant de modifier un fichier", "No borres nada sin mi permiso",
        "Antes de cambiar algo pregúntame", "Não apague nada sem a minha aprovação",
        "Non cancellare nulla senza la mia conferma", "onayım olmadan dosya silme",
    ],
)  # fmt: skip
def test_how_agent_and_user_work_together_is_a_rule_at_one_saying(prompt: str) -> None:
    """Who is asked when, in which language, in what form."""
    assert is_working_rule(prompt)
    assert [wish.strength for wish in wishes(made(WORK, [prompt]))] == ["rule"]


@pytest.mark.parametrize(
    "prompt",
    [
        "the form must ask the visitor before it deletes the row",
        "translate the page into Spanish", "resolve the absolute path of the config there",
        "ask the API for the price before rendering", "用户提交前先校验表单", "翻译成中文",
        "保存する前に入力を確認する画面", "перед отправкой формы проверь поля",
        "Vor dem Speichern wird das Feld geprüft", "la page demande un code avant l'envoi",
        "是否必须先询问用户?", "如何用中文回答用户", "how can we ask for approval before a deploy",
    ],
)  # fmt: skip
def test_what_a_program_asks_its_users_is_no_rule(prompt: str) -> None:
    """What is built, or asked about, says nothing of how the agent works."""
    assert "rule" not in [wish.strength for wish in wishes(made(WORK, [prompt]))]


@pytest.mark.parametrize(
    "prompt",
    [
        "from now please put the ticket into the branch name",
        "as of today we keep the fixtures in their own repository",
        "use poetry as the package manager", "this project uses vitest",
        "All links to the old wiki should go to the handbook.",
        "never drop the seed tables without explicit permission",
        "leave the lock file alone unless explicitly asked", "keep our chat in german",
        "ab heute bitte nur noch kleine Commits", "à partir d'aujourd'hui on garde les journaux",
        "a partir de hoy guardamos los registros", "a partir de hoje guardamos os registros",
        "d'ora in avanti niente file temporanei", "с этого момента храним логи отдельно",
        "bundan sonra kısa commit mesajı yaz", "od dziś trzymamy logi osobno",
        "voortaan korte commits maken", "nutze poetry als Paketmanager",
        "utilise poetry comme gestionnaire de paquets", "usa poetry como gestor de paquetes",
        "используй poetry как менеджер пакетов", "ce projet utilise vitest",
        "这个项目以后都用yarn", "从今天开始日志都放到单独的仓库", "未经许可不要清空数据表",
        "パッケージ管理はpoetryを利用してください",
        "公開した後にはタグを付けて、作業前にはテストを流してください",
        "指示がない限り設定を変更しないでください", "오늘부터 로그는 따로 보관해 줘",
        "이 프로젝트에서는 vitest를 사용해",
    ],
)  # fmt: skip
def test_what_holds_from_now_on_is_a_rule_at_one_saying(prompt: str) -> None:
    """Also what serves a project for what, where things of one kind go, and what needs leave."""
    assert is_working_rule(prompt)
    assert [wish.strength for wish in wishes(made(WORK, [prompt]))] == ["rule"]


@pytest.mark.parametrize(
    "prompt",
    [
        "the job runs two hours from now", "commit it before moving forward with the next part",
        "all buttons should be blue", "the project uses too much memory there",
        "I need one task that runs all tests, all steps should be in the tasks I mentioned",
        "どのような手順が必要だったのか教えてください", "毎回呼ばれる処理を調べて",
        "tell me what we should always check",
    ],
)  # fmt: skip
def test_what_belongs_to_the_moment_is_no_standing_rule(prompt: str) -> None:
    assert "rule" not in [wish.strength for wish in wishes(made(WORK, [prompt]))]


@pytest.mark.parametrize(
    ("sentence", "tongue"),
    [
        ("write the summary in Dutch", "Dutch"), ("bitte auf Englisch", "English"),
        ("en français s'il te plaît", "French"), ("por favor en inglés", "English"),
        ("переведи всё на русский", "Russian"), ("пиши по-русски", "Russian"),
        ("用日语写注释", "Japanese"), ("日本語の画面を英語表記に直して", "English"),
        ("한국어로 써줘", "Korean"), ("viết bằng tiếng Việt", "Vietnamese"),
        ("add the German translations", ""), ("the English are late", ""),
        ("translate the strings to French", ""),
    ],
)  # fmt: skip
def test_the_language_that_something_is_asked_to_be_in(sentence: str, tongue: str) -> None:
    """By its English name, whatever language that is said in; a product's translations are work."""
    assert asked_tongue(sentence) == tongue


def test_a_page_that_should_have_been_followed() -> None:
    """With what is asked, though it is a question."""
    asked = "Any new tables? were the naming rules followed?\n@docs/naming.md"
    assert followed_page("were the naming rules followed? @docs/naming.md").endswith("naming.md")
    assert followed_page(asked) == ""
    assert followed_page("是否遵循了 docs/naming.md")
    assert not followed_page("I followed the link in docs/naming.md")
    wished = wishes(made(WORK, ["were the naming rules followed? @docs/naming.md"]))
    assert [wish.strength for wish in wished] == ["rule"]


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("ok, this worked: DEBUG=1 viewer --soft", "this worked: DEBUG=1 viewer --soft"),
        ("so geht es: make -C gui run", "so geht es: make -C gui run"),
        ("это сработало: npm run start:soft", "это сработало: npm run start:soft"),
        ("这样就可以了：pnpm dev --host", "这样就可以了：pnpm dev --host"),
        ("this worked: nice", ""),
        ("this worked yesterday", ""),
    ],
)
def test_a_command_that_the_user_found_to_work(prompt: str, told: str) -> None:
    assert worked_command(prompt) == told


@pytest.mark.parametrize(
    "prompt",
    [
        "When I say ship the notes, you collect them from the wiki and send the mail",
        "Wenn ich Notizen sage, dann sammle sie aus dem Wiki",
        "quand je dis livraison, prends les notes du wiki",
        "cuando diga entrega, recoge las notas del wiki",
        "когда я говорю сдача, собери заметки из вики",
        "納品してといったら、ノートを集めてメールするように",
        "Please note the samples folder is frozen, somebody else maintains it",
        "Notes of the old wiki can be permanently skipped in the report",
        "la librería ya no se llama kite, se llama heron",
        "wir nutzen kite im Frontend nicht mehr, nur heron",
        "on n'utilise plus kite dans les services, c'est heron",
        "мы больше не используем kite в сервисах",
        "我们不再使用 kite 生成报告",
        "kite는 더이상 사용하지 않는다 heron으로 옮겼다",
        "All endpoints that you add should log who called them",
        "todos los servicios que crees deben registrar quién llama",
        "alle Dienste, die du anlegst, müssen den Aufrufer protokollieren",
        "When writing reports for partners do not translate names, instead quote them",
        "in drafts please do not add your signature",
        "bitte keine Signatur in die Nachrichten schreiben",
        "не добавляй свою подпись в сообщения",
        "no crees tablas nuevas solo cambia los esquemas y yo hago el resto",
    ],
)
def test_what_holds_by_its_form_needs_no_word_for_lasting(prompt: str) -> None:
    """What a phrase stands for, what is no more, and what all that is made has to be."""
    (wish,) = wishes(made(["go", ran("ls")], [prompt]))
    assert wish.strength == "rule"


@pytest.mark.parametrize(
    "prompt",
    [
        "when i type this it crashes",
        "the page no longer loads for new users",
        "after running the suite it never stops",
        "todos los servicios fallan",
    ],
)
def test_what_only_happens_holds_nothing(prompt: str) -> None:
    assert not wishes(made(["go", ran("ls")], [prompt]))


def test_a_rule_brings_the_list_that_it_announces() -> None:
    said = "From now on reports name\n1) their author\n2) their sources"
    (wish,) = wishes(made(["go", ran("ls")], [said]))
    assert wish.text == " ".join(said.split())
