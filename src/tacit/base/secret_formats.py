"""The formats of secrets: one row for each format of a provider, and the names and commands that
precede a password.

Owns the tables only; searching a text, and telling a placeholder from a secret, is `secrets.py`'s.
Every row keeps two rules, so that the search stays linear and redaction stable: a pattern begins
with its literal anchor (nothing is tried elsewhere), and every quantifier has a bound.
"""

import re
from typing import NamedTuple

# A token neither begins nor ends inside a longer word.
_LEFT, _RIGHT = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9])"

_WORD = "[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"


class Format(NamedTuple):
    """One format: its name, where to look (anchors), the pattern, and words that must be about."""

    rule: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    about: tuple[str, ...] = ()
    """Words of which the text must hold one, in any case, for a shape that is not telling alone."""
    anchor_inside: bool = False
    """Whether the token begins before its anchor."""


def _token(rule: str, anchors: str, pattern: str, about: str = "") -> Format:
    """A format whose pattern stands alone, between word borders."""
    return Format(
        rule,
        tuple(anchors.split()),
        re.compile(f"{_LEFT}(?:{pattern}){_RIGHT}"),
        tuple(about.split()),
    )


def _inside(rule: str, anchors: str, pattern: str) -> Format:
    """A format that continues something else: the pattern brings its own left border."""
    whole = re.compile(f"(?:{pattern}){_RIGHT}")
    return Format(rule, tuple(anchors.split()), whole, (), "s" not in whole.groupindex)


_CLOUDS = (
    _token("aws-access-key", "AKIA ASIA ABIA ACCA", r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}"),
    _token("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    _token("google-api-key", "AIza", rf"AIza{_WORD}{{35}}"),
    _token("google-oauth-token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{30,600}"),
    _token("google-oauth-secret", "GOCSPX-", rf"GOCSPX-{_WORD}{{28}}"),
    _token("google-refresh-token", "1//0", rf"1//0{_WORD}{{40,300}}"),
    _inside("azure-storage-key", "AccountKey=", r"AccountKey=(?P<s>[A-Za-z0-9+/]{86}==)"),
    _inside("azure-bus-key", "AccessKey=", r"AccessKey=(?P<s>[A-Za-z0-9+/]{43}=)"),
    _inside("azure-sas", "sig=", r"(?<=[?&;])sig=(?P<s>[A-Za-z0-9%/+]{40,100}(?:=|%3[dD]))"),
    _inside("azure-client-secret", "8Q~", r"(?<=[A-Za-z0-9_~.-]{3})8Q~[A-Za-z0-9_~.-]{31,34}"),
    _token("digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", rf"do[opr]_v1_{_HEX}{{64}}"),
    _token("alibaba-key", "LTAI", rf"LTAI{_ALNUM}{{16,20}}"),
    _token("heroku-key", "HRKU-", rf"HRKU-{_WORD}{{36,64}}"),
    _token("cloudflare-origin-key", "v1.0-", rf"v1\.0-{_HEX}{{24}}-{_HEX}{{146}}"),
    _token("fly-token", "fm2_", r"fm2_[A-Za-z0-9+/]{100,2000}={0,2}"),
    _token("netlify-token", "nfp_", rf"nfp_{_ALNUM}{{36}}"),
    _token("supabase-key", "sbp_ sb_secret_", rf"sbp_{_HEX}{{40}}|sb_secret_{_WORD}{{22,64}}"),
    _token("planetscale-key", "pscale_", rf"pscale_(?:tkn|pw|oauth)_{_WORD}{{32,64}}"),
    _token("databricks-token", "dapi", rf"dapi{_HEX}{{32}}(?:-[0-9])?"),
    _token("vault-token", "hvs. hvb. hvr.", rf"hv[sbr]\.{_WORD}{{24,300}}"),
    _token("vault-token", "s.", rf"s\.{_ALNUM}{{24}}", "vault"),
    _inside("terraform-token", ".atlasv1.", rf"(?<={_ALNUM}{{14}})\.atlasv1\.{_WORD}{{60,70}}"),
    _token("pulumi-token", "pul-", rf"pul-{_HEX}{{40}}"),
    _token("doppler-token", "dp.", rf"dp\.(?:pt|st|ct|sa|scim|audit)\.{_WORD}{{40,44}}"),
    _token("tailscale-key", "tskey-", rf"tskey-[a-z]{{3,12}}-{_WORD}{{20,80}}"),
)

_MODELS = (
    _token("anthropic-key", "sk-ant-", rf"sk-ant-{_WORD}{{30,200}}"),
    _token(
        "openai-key",
        "sk-proj- sk-svcacct- sk-admin- sk-None-",
        rf"sk-(?:proj|svcacct|admin|None)-{_WORD}{{40,300}}",
    ),
    _token("openai-key", "sk-", rf"sk-{_ALNUM}{{32,64}}"),
    _token("openrouter-key", "sk-or-", rf"sk-or-(?:v1-)?{_HEX}{{64}}"),
    _token("langfuse-key", "sk-lf-", rf"sk-lf-{_HEX}{{8}}-[0-9a-f-]{{27}}"),
    _token("elevenlabs-key", "sk_", rf"sk_{_HEX}{{48}}"),
    _token("huggingface-token", "hf_", rf"hf_{_ALNUM}{{34,40}}"),
    _token("groq-key", "gsk_", rf"gsk_{_ALNUM}{{48,56}}"),
    _token("xai-key", "xai-", rf"xai-{_ALNUM}{{70,90}}"),
    _token("replicate-token", "r8_", rf"r8_{_ALNUM}{{37,40}}"),
    _token("perplexity-key", "pplx-", rf"pplx-{_ALNUM}{{48,56}}"),
    _token("langsmith-key", "lsv2_", rf"lsv2_(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    _token("tavily-key", "tvly-", rf"tvly-(?:dev-|prod-)?{_ALNUM}{{32}}"),
)

_FORGES = (
    _token(
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_",
        rf"gh[pousr]_[A-Za-z0-9_]{{36,255}}(?:\.{_WORD}{{10,2000}}){{0,2}}",
    ),
    _token("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{60,255}"),
    _token(
        "gitlab-token",
        "glpat- gldt- glptt- glrt- glcbt- glft- glsoat- glimt- glagent- gloas- glrtr-",
        r"gl(?:pat|dt|ptt|rtr?|cbt|ft|soat|imt|agent|oas)-[A-Za-z0-9_.-]{20,300}",
    ),
    _token("bitbucket-token", "ATBB", rf"ATBB{_ALNUM}{{32}}"),
    _token("atlassian-token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{100,300}"),
    _token("npm-token", "npm_", rf"npm_{_ALNUM}{{36}}"),
    _token("pypi-token", "pypi-AgE", rf"pypi-AgE{_WORD}{{50,1000}}"),
    _token("rubygems-key", "rubygems_", rf"rubygems_{_HEX}{{48}}"),
    _token("crates-token", "cio", rf"cio{_ALNUM}{{32}}", "cargo crates"),
    _token("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    _token("dockerhub-token", "dckr_pat_ dckr_oat_", rf"dckr_[po]at_{_WORD}{{27,64}}"),
    _token("circleci-token", "CCIPAT_", rf"CCIPAT_{_ALNUM}{{22}}_{_HEX}{{40}}"),
    _token("buildkite-token", "bkua_", rf"bkua_{_HEX}{{40}}"),
    _token("sentry-token", "sntryu_", rf"sntryu_{_HEX}{{64}}"),
    _token("sentry-token", "sntrys_eyJ", r"sntrys_eyJ[A-Za-z0-9+/=_]{50,400}"),
    _token("grafana-token", "glsa_", rf"glsa_{_ALNUM}{{32}}_{_HEX}{{8}}"),
    _token("grafana-token", "glc_eyJ", r"glc_eyJ[A-Za-z0-9+/=]{50,400}"),
    _token("newrelic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _token("postman-key", "PMAK-", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    _token("dynatrace-token", "dt0c01.", r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
)  # fmt: skip

_SERVICES = (
    _token("slack-token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{20,300}"),
    _token("slack-token", "xapp-", rf"xapp-[0-9]-[A-Z0-9]{{8,16}}-[0-9]{{8,16}}-{_HEX}{{32,128}}"),
    _inside(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?P<s>(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,120})",
    ),
    _inside(
        "discord-webhook",
        "/api/webhooks/",
        rf"(?<=\.com)/api/webhooks/(?P<s>[0-9]{{17,20}}/{_WORD}{{60,80}})",
    ),
    _token(
        "discord-token",
        "M N O",
        rf"[MNO]{_WORD}{{23,27}}\.{_WORD}{{6}}\.{_WORD}{{27,38}}",
        "discord",
    ),
    _inside("telegram-token", ":AA", rf"(?<=[0-9]{{8}}):AA{_WORD}{{33}}"),
    _token("stripe-key", "sk_live_ rk_live_", rf"[sr]k_live_{_ALNUM}{{16,250}}"),
    _token("stripe-test-key", "sk_test_ rk_test_", rf"[sr]k_test_{_ALNUM}{{16,250}}"),
    _token("webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,100}={0,2}"),
    _token("twilio-key", "SK", rf"SK{_HEX}{{32}}", "twilio"),
    _token("sendgrid-key", "SG.", rf"SG\.{_WORD}{{16,32}}\.{_WORD}{{40,50}}"),
    _token("mailgun-key", "key-", rf"key-{_HEX}{{32}}"),
    _inside("mailchimp-key", "-us", rf"(?<={_HEX}{{32}})-us[0-9]{{1,2}}"),
    _token("square-token", "EAAA", rf"EAAA{_WORD}{{60}}"),
    _token("square-token", "sq0", rf"sq0(?:atp-{_WORD}{{22}}|csp-{_WORD}{{43}})"),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _token("linear-key", "lin_api_ lin_oauth_", rf"lin_(?:api|oauth)_{_ALNUM}{{40,64}}"),
    _token("notion-token", "ntn_", rf"ntn_{_ALNUM}{{43,50}}"),
    _token("notion-token", "secret_", rf"secret_{_ALNUM}{{43}}"),
    _token("airtable-token", "pat", rf"pat{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    _token("figma-token", "figd_", rf"figd_{_WORD}{{38,44}}"),
    _token("facebook-token", "EAAC EAAG EAAB", rf"EAA[BCG]{_ALNUM}{{80,300}}"),
    _token("onepassword-token", "ops_eyJ", rf"ops_eyJ{_WORD}{{200,2000}}"),
    _token("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _token(
        "jwt",
        "eyJ",
        rf"eyJ{_WORD}{{10,2000}}\.eyJ{_WORD}{{10,6000}}\.{_WORD}{{20,1500}}",
    ),
)

FORMATS: tuple[Format, ...] = (*_CLOUDS, *_MODELS, *_FORGES, *_SERVICES)

MIN_FORMAT = 20
"""No format is shorter than this, and none holds a space: shorter words need no look."""

# What the name of something secret holds, in lower case; `key` only after one of KEY_KINDS.
TELLING_NAMES = ("passphrase", "password", "passwd", "pwd", "credential", "secret", "token", "key")
KEY_KINDS = (
    "api", "access", "account", "auth", "client", "encryption", "license", "master", "private",
    "secret", "service", "session", "shared", "signing",
)  # fmt: skip

# `telling word, rest of the name, closing quote, sign, opening quote, value`, as in a config file,
# code, JSON, YAML, a shell line or a table. The value ends at a quote, a space or a bracket, and
# something that ends values must follow, so that a part of a longer thing is never taken for it.
_NAME_REST = r"(?P<rest>[A-Za-z0-9_.-]{0,40})"
_SIGN = r"[\"'`\])}*]{0,4}[ \t]{0,20}(?::=|=>|={1,3}|:|[|])[ \t]{0,20}"
_OPEN = r"(?P<open>[bruf@]{0,2}[\"'`]{1,3}|)"
_VALUE = r"(?P<s>[^\s\"'`<>()\[\]{},;|\x00]{8,512})"
_TELLING_NAME = f"(?P<word>(?i:{'|'.join(TELLING_NAMES)}))"
_END = r"(?=[\s\"'`,;)\]}|<]|\Z)(?P<after>.?)"
ASSIGNED_VALUE = re.compile(_TELLING_NAME + _NAME_REST + _SIGN + _OPEN + _VALUE + _END)

# The same without a sign: `--password VALUE` on a command line; a message in which somebody says
# that the password is VALUE.
_SAYS = r"(?P<rest>)[ \t]{1,4}(?i:is|was)[ \t]{1,4}"
OPTION_VALUE = re.compile(_TELLING_NAME + _NAME_REST + r"[ \t]{1,4}" + _OPEN + _VALUE + _END)
SAID_VALUE = re.compile(_TELLING_NAME + _SAYS + _OPEN + _VALUE + _END)

# `Authorization: Bearer …` and its kin, wherever they stand.
HEADER = re.compile(
    r"(?i:bearer|basic|token|apikey|digest)[ \t]{1,4}"
    r"(?P<s>[A-Za-z0-9_.~+/=-]{16,4096})(?=[\s\"'`,;)\]}|<\\]|\Z)"
)
HEADER_WORDS = ("bearer ", "basic ")

# The password in scheme://user:password@host.
IN_URL = re.compile(
    r"://(?P<user>[^\s:/@\"'`<>\x00]{0,128}):(?P<s>[^\s/@\"'`<>\x00]{4,256})@(?P<host>[A-Za-z0-9.\[-]{1,100})"
)

# `curl -u user:password`, in one word or two.
CURL_USER = re.compile(
    r"(?:-u|--user)[ =]?[\"']?(?P<user>[A-Za-z0-9_][A-Za-z0-9_.@%+-]{0,63}):"
    r"(?P<s>[^\s\"'`<>\x00]{6,128})(?=[\s\"'`]|\Z)"
)

# `mysql -pVALUE` in one word, as these programs want it, and `sshpass -p VALUE` in one or two. With
# other programs -p is a port, or parents, or anything else.
_QUOTED = r"[\"']?(?P<s>[^\s\"'`<>|;&\x00]{6,128})(?=[\s\"'`|;&)]|\Z)"
COMMAND_PASSWORDS = {
    "mysql": re.compile(
        r"mysql(?:dump|admin|import|check|show|pump)?(?=[ \t])[^\n|;&\x00]{0,200}?[ \t]-p" + _QUOTED
    ),
    "mariadb": re.compile(
        r"mariadb(?:-[a-z]{1,10})?(?=[ \t])[^\n|;&\x00]{0,200}?[ \t]-p" + _QUOTED
    ),
    "sshpass": re.compile(r"sshpass(?:[ \t]{1,4}-v){0,3}[ \t]{1,4}-p[ \t]{0,4}" + _QUOTED),
}

BLOCK_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")

# A secret access key of AWS has no mark of its own: it counts beside an access key id.
AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
