"""The formats of secrets: one row for each format of a provider, private key blocks, and the forms
of headers, addresses and command lines that bring a password.

Owns the tables only; searching a text is `secrets.py`'s. What is known by the words beside it alone
is `passwords.py`'s.
Every row keeps two rules, so that the search stays linear and redaction stable: a pattern begins
with its literal anchor (nothing is tried elsewhere), and every quantifier has a bound.
"""

import re
from typing import NamedTuple

from tacit.base.patterns import late_pattern

# A token neither begins nor ends inside a longer word; a line end written out is no word.
_LEFT, _RIGHT = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))", r"(?![A-Za-z0-9])"

_WORD = "[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"
_UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"


class Format(NamedTuple):
    """One format: its name, where to look (anchors), its expression, words that must be about."""

    rule: str
    anchors: tuple[str, ...]
    expression: str
    about: tuple[str, ...] = ()
    """Words of which the text must hold one, in any case, for a shape that is not telling alone."""
    stands_alone: bool = True
    """Whether the token begins with its anchor, at the border of a word."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when it is first needed, for few are; `re` remembers it."""
        return re.compile(self.expression)


def _token(rule: str, anchors: str, pattern: str, about: str = "") -> Format:
    """A format whose pattern stands alone, between word borders."""
    whole = f"{_LEFT}(?:{pattern}){_RIGHT}"
    return Format(rule, tuple(anchors.split()), whole, tuple(about.split()))


def _inside(rule: str, anchors: str, pattern: str, about: str = "") -> Format:
    """A format that continues something else: the pattern brings its own left border."""
    whole = f"(?:{pattern}){_RIGHT}"
    return Format(rule, tuple(anchors.split()), whole, tuple(about.split()), stands_alone=False)


_CLOUDS = (
    _token("aws-access-key", "AKIA ASIA ABIA ACCA", r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}"),
    _inside(
        "aws-secret-key",
        "ecret_access_key ECRET_ACCESS_KEY",
        r"(?i:ecret_access_key)[^A-Za-z0-9/+\n]{1,8}(?P<s>[A-Za-z0-9/+]{40})(?![/+=])",
    ),
    _token("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,300}={0,2}"),
    _token("google-api-key", "AIza", rf"AIza{_WORD}{{35}}"),
    _token("google-oauth-token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{30,600}"),
    _token("google-oauth-secret", "GOCSPX-", rf"GOCSPX-{_WORD}{{28}}"),
    _token("google-refresh-token", "1//0", rf"1//0{_WORD}{{40,300}}"),
    _inside("azure-storage-key", "AccountKey=", r"AccountKey=(?P<s>[A-Za-z0-9+/]{86}==)"),
    _inside("azure-bus-key", "AccessKey=", r"AccessKey=(?P<s>[A-Za-z0-9+/]{43}=)"),
    _inside("azure-sas", "sig=", r"(?<=[?&;])sig=(?P<s>[A-Za-z0-9%/+]{40,100}(?:=|%3[dD]))"),
    _inside(
        "url-key",
        "code= auth= sig=",
        r"(?<=[?&])(?:code|auth|sig)=(?=[^\s&]{0,60}[0-9])(?=[^\s&]{0,60}[A-Z])(?=[^\s&]{0,60}[a-z])"
        r"(?P<s>[A-Za-z0-9_%/+~.-]{32,600}={0,2})",
    ),
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
    _token(
        "doppler-token",
        "dp.",
        rf"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{{2,35}}\.)?{_WORD}{{40,44}}",
    ),
    _token("tailscale-key", "tskey-", rf"tskey-[a-z]{{3,12}}-{_WORD}{{20,80}}"),
    _inside("azure-devops-token", "AZDO", rf"(?<={_ALNUM}{{76}})AZDO{_ALNUM}{{4}}"),
    _token("tencent-key", "AKID", rf"AKID{_ALNUM}{{32}}"),
    _token("fly-token", "fo1_ fm1r_ fm1a_", rf"fo1_{_WORD}{{43}}|fm1[ra]_{_WORD}{{40,300}}"),
    _token("neon-key", "napi_", r"napi_[a-z0-9]{64}"),
    _token("aiven-password", "AVNS_", rf"AVNS_{_WORD}{{19}}"),
    _token("render-key", "rnd_", rf"rnd_{_ALNUM}{{32}}"),
    _token("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", rf"vc[piark]_{_ALNUM}{{24,80}}"),
    _token("vercel-token", "vercel_blob_rw_", rf"vercel_blob_rw_{_ALNUM}{{16}}_{_ALNUM}{{30}}"),
    _token("cloudflare-token", "cfk_ cfat_ cfut_", rf"cf(?:k|at|ut)_{_ALNUM}{{40,60}}"),
    _token("openshift-token", "sha256~", rf"sha256~{_WORD}{{43}}"),
    _token("atlas-secret", "mdb_sa_sk_", rf"mdb_sa_sk_{_WORD}{{40}}"),
    _token("yandex-key", "AQVN", rf"AQVN{_WORD}{{35,38}}"),
    _token("yandex-token", "y0_", rf"y0_{_WORD}{{39,64}}"),
    _token("baidu-key", "bce-v3/", rf"bce-v3/ALTAK-{_ALNUM}{{21}}/{_HEX}{{40}}"),
    _token("xata-key", "xau_", rf"xau_{_ALNUM}{{36,44}}"),
    _token("prefect-key", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{36}"),
    _token("infracost-key", "ico-", rf"ico-{_ALNUM}{{32}}"),
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
    _token("nvidia-key", "nvapi-", rf"nvapi-{_WORD}{{60,70}}"),
    _token("cerebras-key", "csk-", r"csk-[a-z0-9]{48}"),
    _token("together-key", "tgp_v1_", rf"tgp_v1_{_WORD}{{43}}"),
    _token("fireworks-key", "fw_", rf"fw_{_ALNUM}{{22,24}}"),
    _token("pinecone-key", "pcsk_", rf"pcsk_{_ALNUM}{{5,6}}_{_ALNUM}{{60,64}}"),
    _token("voyage-key", "pa-", rf"pa-{_WORD}{{43}}"),
    _token("jina-key", "jina_", rf"jina_{_HEX}{{32}}{_WORD}{{28}}"),
    _token("firecrawl-key", "fc-", rf"fc-{_HEX}{{32}}"),
    _token("e2b-key", "e2b_", rf"e2b_{_HEX}{{40}}"),
    _token("apify-token", "apify_api_", rf"apify_api_{_ALNUM}{{36}}"),
    _token("anyscale-key", "esecret_", r"esecret_[a-z0-9]{20,60}"),
    _token("logfire-token", "pylf_v", rf"pylf_v[12]_(?:[a-z]{{2}}_)?{_ALNUM}{{43}}"),
    _token("posthog-key", "phx_ phs_", rf"ph[xs]_{_ALNUM}{{40,60}}"),
    _token("brave-key", "BSA", rf"BSA{_WORD}{{27,28}}", "brave"),
    _token("modal-token", "as- ak-", rf"a[sk]-{_ALNUM}{{22}}", "modal"),
    _token("wandb-key", "wandb_v1_", rf"wandb_v1_{_WORD}{{40,100}}"),
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
    _token("gitlab-token", "GR1348941", rf"GR1348941{_WORD}{{20}}"),
    _token("atlassian-token", "ATCTT3", r"ATCTT3[A-Za-z0-9_=-]{100,300}"),
    _token("trello-token", "ATTA", rf"ATTA{_HEX}{{64,72}}"),
    _token("buildkite-token", "bkaj_ bkpt_ bkct_", rf"bk(?:aj|pt|ct)_{_HEX}{{40}}"),
    _token("newrelic-key", "NRII- NRRA-", rf"NR(?:II|RA)-{_WORD}{{32,42}}"),
    _inside("newrelic-key", "NRAL", rf"(?<={_HEX}{{36}})NRAL"),
    _token("sonar-token", "squ_ sqp_ sqa_", rf"sq[upa]_{_HEX}{{40}}"),
    _token("sourcegraph-token", "sgp_", rf"sgp_(?:[A-Za-z0-9]{{5,16}}_)?{_HEX}{{40}}"),
    _token("artifactory-key", "AKCp", rf"AKCp{_ALNUM}{{69}}"),
    _token("artifactory-token", "cmVmd", rf"cmVmd{_ALNUM}{{59}}"),
    _token("clojars-token", "CLOJARS_", r"CLOJARS_[a-z0-9]{60}"),
    _token("honeycomb-key", "hcaik_ hcxik_ hcamk_", r"hc(?:ai|xi|am)k_[a-z0-9]{50,64}"),
    _token("launchdarkly-key", "sdk- api- mob-", rf"(?:sdk|api|mob)-{_UUID}", "darkly ld_"),
    _token("octopus-key", "API-", r"API-[A-Z0-9]{25,32}"),
    _token("grafana-token", "eyJrIjoi", r"eyJrIjoi[A-Za-z0-9+/]{60,400}={0,3}"),
    _token("axiom-token", "xaat- xapt-", rf"xa[ap]t-{_UUID}"),
    _token("deno-token", "ddp_ ddw_", rf"dd[pw]_{_ALNUM}{{36}}"),
    _token("harness-token", "pat. sat.", rf"[ps]at\.{_WORD}{{22}}\.{_HEX}{{24}}\.{_ALNUM}{{20}}"),
    _token("snyk-token", "snyk_uat.", rf"snyk_uat\.{_WORD}{{6,20}}\.[A-Za-z0-9_.-]{{20,120}}"),
    _token("azure-devops-token", "", r"[a-z2-7]{52}", "azure devops visualstudio.com vsts azdo"),
)  # fmt: skip

_SERVICES = (
    _token("slack-token", "xox", r"xox[a-eoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{20,300}"),
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
        "discord client.login bot.run bot.login",
    ),
    _inside("telegram-token", ":AA", rf"(?<=[0-9]{{8}}):AA{_WORD}{{33}}"),
    _token("stripe-key", "sk_live_ rk_live_", rf"[sr]k_live_{_ALNUM}{{16,250}}"),
    _token("stripe-test-key", "sk_test_ rk_test_", rf"[sr]k_test_{_ALNUM}{{16,250}}"),
    _token("webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,100}={0,2}"),
    _token("twilio-key", "SK", rf"SK{_HEX}{{32}}", "twilio"),
    _inside(
        "twilio-key",
        "\"AC 'AC",
        rf"[\"']AC{_HEX}{{32}}[\"'],[ \t]{{0,4}}[\"'](?P<s>{_HEX}{{32}})",
    ),
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
    _inside(
        "teams-webhook",
        ".webhook.office.com/",
        rf"\.webhook\.office\.com/webhookb2/(?P<s>{_UUID}@{_UUID}/IncomingWebhook/[A-Za-z0-9/-]{{32,120}})",
    ),
    _inside("mailgun-key", "-", rf"(?<={_HEX}{{32}})-{_HEX}{{8}}-{_HEX}{{8}}", "mailgun"),
    _token("brevo-key", "xkeysib- xsmtpsib-", rf"x(?:key|smtp)sib-{_HEX}{{64}}-{_ALNUM}{{16}}"),
    _token("resend-key", "re_", rf"re_{_ALNUM}{{8}}_{_ALNUM}{{24}}"),
    _token("facebook-token", "EAA", rf"EAA[D-FH-Z]{_ALNUM}{{80,300}}"),
    _token("hubspot-token", "pat-", rf"pat-[a-z]{{2,4}}[0-9]-{_UUID}"),
    _token(
        "asana-token",
        "1/ 2/ 0/",
        rf"[012]/[0-9]{{10,20}}(?:/[0-9]{{10,20}})?:{_ALNUM}{{32}}",
        "asana",
    ),
    _token("clickup-token", "pk_", r"pk_[0-9]{5,10}_[A-Z0-9]{32}"),
    _token("typeform-token", "tfp_", r"tfp_[A-Za-z0-9_.=-]{40,64}"),
    _token("contentful-token", "CFPAT-", rf"CFPAT-{_WORD}{{43}}"),
    _token("dropbox-token", "sl.", r"sl\.(?:u\.)?[A-Za-z0-9_=-]{120,2000}"),
    _token("plaid-token", "access-", rf"access-(?:sandbox|development|production)-{_UUID}"),
    _token("razorpay-key", "rzp_live_ rzp_test_", rf"rzp_(?:live|test)_{_ALNUM}{{14,24}}"),
    _token(
        "braintree-token",
        "access_token$",
        rf"access_token\$(?:production|sandbox)\$[0-9a-z]{{16}}\${_HEX}{{32}}",
    ),
    _token("easypost-key", "EZAK EZTK", rf"EZ[AT]K{_ALNUM}{{54}}"),
    _token("shippo-token", "shippo_", rf"shippo_(?:live|test)_{_HEX}{{40}}"),
    _token("mapbox-token", "sk.eyJ", rf"sk\.eyJ{_WORD}{{40,300}}\.{_WORD}{{20,40}}"),
    _inside("firebase-key", ":APA91b", rf"(?<={_WORD}{{7}}):APA91b{_WORD}{{100,200}}"),
    _token("okta-token", "00", rf"00{_WORD}{{40}}", "okta ssws"),
    _token("adobe-secret", "p8e-", rf"p8e-{_WORD}{{32}}"),
    _token("duffel-token", "duffel_", rf"duffel_(?:test|live)_{_WORD}{{43}}"),
    _token("flutterwave-key", "FLWSECK", rf"FLWSECK(?:_TEST)?-{_ALNUM}{{12,40}}(?:-X)?"),
    _token("readme-key", "rdme_", r"rdme_[a-z0-9]{70}"),
    _token("onesignal-key", "os_v2_", r"os_v2_(?:app|org)_[a-z2-7]{60,120}"),
    _token("salesforce-session", "00D", rf"00D{_ALNUM}{{12,15}}![A-Za-z0-9._]{{80,120}}"),
    _token("zoho-token", "1000.", rf"1000\.{_HEX}{{32}}\.{_HEX}{{32}}"),
    _inside("maxmind-key", "_mmk", rf"(?<={_ALNUM}{{6}}_{_ALNUM}{{29}})_mmk"),
)

# Hashes of passwords as password files and directories keep them: most can be guessed fast.
# Of bcrypt, which cannot, one is taken out behind `name:` alone.
_CRYPT = "[A-Za-z0-9./]"
_STORED = (
    _token(
        "password-hash",
        "$2a$ $2b$ $2y$",
        rf"(?:(?<=\w:)|(?<=\w:\$))\$2[aby]\${{1,2}}[0-9]{{2}}\${{1,2}}{_CRYPT}{{53}}",
    ),
    _token(
        "password-hash",
        "$1$ $5$ $6$ $y$ $apr1$",
        rf"\$(?:[156y]|apr1)\${{1,2}}(?:(?:rounds=[0-9]{{4,9}}|j{_CRYPT}{{2,4}})\${{1,2}})?"
        rf"{_CRYPT}{{2,32}}\${{1,2}}{_CRYPT}{{22,86}}",
    ),
    _token("password-hash", "$P$ $H$", rf"\$[PH]\${_CRYPT}{{31}}"),
    _token("password-hash", "{SSHA {SHA", r"\{S?SHA(?:256|384|512)?\}[A-Za-z0-9+/]{26,120}={0,2}"),
    # The keys of a WordPress site: any signs, spaces too.
    _inside(
        "site-key",
        "AUTH_ LOGGED_IN_ NONCE_",
        r"(?:AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)[\"']?[ \t]{0,4}[,=:][ \t]{0,20}(?P<mark>[\"'])"
        r"(?=[^\n]{0,60}[0-9])(?P<s>(?:(?!(?P=mark))[^\n]){40,128})(?=(?P=mark))",
        "auth_key auth_salt",
    ),
)

FORMATS: tuple[Format, ...] = (*_CLOUDS, *_MODELS, *_FORGES, *_SERVICES, *_STORED)

MIN_FORMAT = 20
"""No format is shorter than this, and none holds a space: shorter words need no look."""

_KIND = r"(?:(?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)"
BLOCK_BEGIN = late_pattern(f"-----BEGIN {_KIND}-----")
BLOCK_END = late_pattern(f"-----END {_KIND}-----")
ENCODED_BLOCK = late_pattern(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{80,20000}={0,2}")
"""A block in base64, as Kubernetes keeps it; only decoding tells a key from a certificate."""

# A secret access key of AWS has no mark of its own: it counts beside an access key id.
AWS_SECRET = late_pattern(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")


# What has no provider: headers, cookies and addresses that bring a name and a password.

# `Authorization: Bearer …` and its kin, wherever they stand.
HEADER = late_pattern(
    r"(?i:bearer|basic|token|apikey|digest)[ \t]{1,4}"
    r"(?P<s>[A-Za-z0-9_.~+/=-]{16,4096}+)(?=[\s\"'`,;)\]}|<\\]|\Z)"
)
HEADER_WORDS = ("bearer ", "basic ")
AUTHORIZATION = late_pattern(
    r"(?i:authorization)[\"'\]]{0,2}[ \t]{0,4}[:=,][ \t]{0,4}[\"'`]?"
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9-]{2,20})[ \t]{1,4})?"
    r"(?P<s>[A-Za-z0-9_.~+/=:-]{16,4096}+)(?=[\s\"'`,;)\]}|<\\]|\Z)"
)
# `auth=("name", "password")`, `SetBasicAuth("name", "password")`.
GIVEN_PAIR = late_pattern(
    r"(?i:auth)\w{0,10}[\"']?[ :=]{0,3}[(\[][ \t]{0,4}[\"'][^\"'\n]{1,64}[\"'][ \t]{0,4},[ \t]{0,4}"
    r"[\"'](?P<s>[^\s\"']{6,128})[\"']"
)
# What docker and npm keep: name and password in base64.
ENCODED_PAIR = late_pattern(
    r"_?auth\"?[ \t]{0,4}[:=][ \t]{0,4}\"?(?P<s>[A-Za-z0-9+/]{12,2000}+={0,2})(?=[\s\",}]|\Z)"
)
COOKIES = late_pattern(
    r"(?i:cookie)[\"'\]]{0,2}(?:[ \t]{0,4}[:=]|(?=[ \t]{1,4}[\"']))[ \t]{0,4}[\"'`]?"
    r"(?P<jar>[^\n\"'`\x00]{8,4096})"
)
COOKIE = late_pattern(r"(?P<name>[A-Za-z0-9_.\[\]-]{1,64})=(?P<s>[^\s;,\"'`\x00]{12,4096})")
# The password in scheme://user:password@host.
IN_URL = late_pattern(
    r"://(?P<user>[^\s:/@\"'`<>\x00]{0,128}):(?P<s>[^\s/\"'`<>\x00]{4,256})@(?P<host>[A-Za-z0-9.\[-]{1,100})"
)


# An argument of a command: in quotes or up to the next space.
_ARGUMENT = r"[\"']?(?P<s>[^\s\"'`<>|;&\x00]{6,128}+)(?=[\s\"'`|;&)]|\Z)"
_LINE = r"(?=[ \t])[^\n|;&\x00]{0,200}"
_NAME = r"[\"']?[\w.@\\-]{1,64}[\"']?"
# Before it an option that names a user, in the same command: then the next is a password.
_NAMED_USER = (
    r"\A(?![^\n]{0,260}(?<!\w)(?:mkdir|mysql|mariadb|run|install|exec|git|tar|rsync|make|ssh|scp|ps|lsof|kubectl"
    r"|docker|nmap|patch|diff|cp|wget)(?:[ \t]|\Z))[^\n]{0,260}?[ \t]"
    r"(?:-[ulU]|--?(?:user|login|username))[ \t=]{0,3}(?!\d{1,9}(?:\s|:))[^\s|;&-][^\s|;&]{0,80}"
    r"(?:[ \t][^\n|;&\x00]{0,120})?\Z"
)
# By option: the programs with which it brings a password. With others -p is a port, or parents.
# These expressions are compiled when they are first needed; `re` remembers them.
COMMAND_OPTIONS = (
    (
        " -p",
        (
            r"(?:mysql(?:dump|admin|import|check|show|pump)?|mariadb(?:-[a-z]{1,10})?"
            rf"|7z[ar]?|unrar|rar|mongo[a-z]{{0,10}})(?:{_LINE})?\Z"
            r"|sshpass(?:[ \t]{1,4}-v){0,3}\Z"
        ),
        rf" -p{_ARGUMENT}",
    ),
    (
        " -p",
        (
            r"(?:(?:docker|podman|nerdctl|buildah|oras|crane|skopeo|registry|az|acr|oc|cf)"
            rf"[ \t]{{1,4}}login|mongo[a-z]{{0,10}}|cqlsh|twine|rabbitmqadmin|psexec"
            rf"|crackmapexec|netexec|nxc|evil-winrm|beeline|veracrypt|useradd|usermod|qpdf){_LINE}\Z|{_NAMED_USER}"
            r"|sshpass(?:[ \t]{1,4}-v){0,3}\Z|(?:login|mongo[a-z]{0,10})\Z"
        ),
        rf" -p(?:[ \t]{{1,4}}|=){_ARGUMENT}",
    ),
    (
        " -P",
        (
            rf"(?:sqlcmd|bcp|tsql|zip|unzip|ipmitool|ssh-keygen|mosquitto_[a-z]{{3,4}}){_LINE}\Z|zip\Z"
            rf"|{_NAMED_USER}"
        ),
        rf" -P[ \t]{{0,4}}{_ARGUMENT}",
    ),
    (" -N", rf"ssh-keygen(?:{_LINE})?\Z", rf" -N[ \t]{{1,4}}{_ARGUMENT}"),
    (" -a", rf"redis-cli(?:{_LINE})?\Z", rf" -a[ \t]{{1,4}}{_ARGUMENT}"),
    (" -a", rf"(?:https?|xhs?)(?:{_LINE})?\Z", rf" -a[ \t]{{1,4}}{_NAME}:{_ARGUMENT}"),
    (" -w", rf"ldap[a-z]{{3,10}}{_LINE}\Z", rf" -w[ \t]{{1,4}}{_ARGUMENT}"),
    (" -k", rf"openssl[ \t]{{1,4}}enc{_LINE}\Z", rf" -k[ \t]{{1,4}}{_ARGUMENT}"),
    (" -K", rf"openssl[ \t]{{1,4}}enc{_LINE}\Z", r" -K[ \t]{1,4}(?P<s>[0-9A-Fa-f]{16,64})(?!\w)"),
    (" -hmac", rf"openssl[ \t]{{1,4}}dgst(?:{_LINE})?\Z", rf" -hmac[ \t]{{1,4}}{_ARGUMENT}"),
    (" -U", rf"(?:smb|rpc)[a-z]{{3,6}}{_LINE}\Z", rf" -U[ \t]{{0,4}}[^\s%]{{1,64}}%{_ARGUMENT}"),
    (" -u", rf"lftp(?:{_LINE})?\Z", rf" -u[ \t]{{1,4}}[\"']?[^\s,\"']{{1,64}},{_ARGUMENT}"),
    (" /p:", rf"xfreerdp{_LINE}\Z", rf" /p:{_ARGUMENT}"),
    (
        " -b",
        rf"curl(?:{_LINE})?\Z",
        r" -b[ \t]{0,4}[\"']?[A-Za-z0-9_.-]{1,64}=(?P<s>[A-Za-z0-9%_.-]{16,512})",
    ),
    (" -xp", r"[ \t]-xu[ \t][^\n]{0,200}\Z", rf" -xp[ \t]{_ARGUMENT}"),
    (" -ap", r"[ \t]-au[ \t][^\n]{0,200}\Z", rf" -ap[ \t]{_ARGUMENT}"),
    (" --body", rf"secret[ \t]{{1,4}}set{_LINE}\Z", rf" --body[ \t=]{_ARGUMENT}"),
    (" --value", rf"secret[ \t]{{1,4}}set{_LINE}\Z", rf" --value[ \t=]{_ARGUMENT}"),
)

# `curl -u user:password`, in one word or two.
CURL_USER = late_pattern(
    r"(?:-u|-U|--user|--proxy-user)[ =]?[\"']?(?P<user>\w[A-Za-z0-9_.@%+\\-]{0,63}):"
    r"(?P<s>[^\s\"'`<>\x00]{6,128})(?=[\s\"'`]|\Z)"
)
# Commands and statements that bring a password at a place of its own.
COMMANDS = {
    "htpasswd": rf"htpasswd[ \t]-\w{{0,5}}b\w{{0,5}}[ \t]\S{{1,200}}[ \t]{_NAME}[ \t]{_ARGUMENT}",
    "rabbitmqctl": rf"rabbitmqctl[ \t](?:add_user|change_password)[ \t]{_NAME}[ \t]{_ARGUMENT}",
    "net user": rf"(?i:net user)[ \t]{_NAME}[ \t]{_ARGUMENT}",
    **dict.fromkeys(
        ("sqlplus", "oracle:"),
        r"(?:sqlplus|oracle:(?:thin|oci8?):)[ \t]?(?:-[a-zA-Z][ \t]){0,3}[\"']?\w{1,64}/"
        r"(?P<s>[^\s\"'/]{6,64})@[\w/(]",
    ),
    "auth": rf"(?<=[0-9\]]> )(?i:auth)[ \t](?:[\w-]{{1,40}}[ \t])?{_ARGUMENT}",
    # The prompt that a script waits for, and what it sends then.
    "assword": (
        r"assword[^\n\"'{}]{0,20}[\"'}]\)?[\s;]{0,20}(?:\{\s{0,20})?[\w.]{0,20}?send(?:line)?"
        r"[ \t(]{1,4}(?:--[ \t])?[\"'](?P<s>[^\s\"'\\]{6,128})(?=\\[rn]|[\"'])"
    ),
    "jwt": (
        r"(?i:jwt)\w{0,20}[\"']?[ \t]{0,4}(?:[:=][ \t]{0,4}\{|:\n|\])[^{}]{0,200}?[\"'\s]"
        r"(?i:\w{0,12}key)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<s>[^\s\"'`<>()\[\]{},;]{16,512}+)"
        r"(?=[\s\"',}]|\Z)"
    ),
    "master.key": r"master\.key[\"'`:]{0,2}[ \t]{0,4}\n(?P<s>[0-9a-f]{32})(?!\w)",
    # What programs take behind an option of their own, or at a place.
    **dict.fromkeys(
        ("schtasks", "signtool"),
        rf"\w{{8}}[ \t][^\n]{{0,200}}?[ \t](?:/rp|/p)[ \t:]{_ARGUMENT}",
    ),
    "snmp": rf"snmp\w{{0,10}}[ \t][^\n]{{0,200}}?[ \t]-[Xc][ \t]{_ARGUMENT}",
    "community ": rf"(?<=snmp-server )community[ \t]{_ARGUMENT}",
    "rclone obscure": rf"rclone obscure[ \t]{_ARGUMENT}",
    "bw unlock": rf"bw unlock[ \t]{_ARGUMENT}",
    "bw login": rf"bw login[ \t]{_NAME}[ \t]{_ARGUMENT}",
    "samba-tool": rf"samba-tool user (?:create|add|setpassword)[ \t]{_NAME}[ \t]{_ARGUMENT}",
    "pdp ": r"(?<=im|ex)pdp[ \t][\"']?[\w.-]{1,64}/(?P<s>[^\s\"'/@]{6,64})(?=[@\s])",
    "connect to ": (
        rf"(?i:connect to)[ \t]\S{{1,64}}[ \t](?i:user)[ \t]{_NAME}[ \t](?i:using)[ \t]{_ARGUMENT}"
    ),
    "-auth ": rf"-auth[ \t][\w.@-]{{1,64}}:{_ARGUMENT}",
    "--user": rf"--user[ =][\"']?[A-Za-z_][\w.@-]{{0,63}}:{_ARGUMENT}",
    "authtoken": rf"(?i:authtoken)[ \t=]{{1,4}}(?=[^\s\"']{{0,80}}\d){_ARGUMENT}",
    "ldappasswd": rf"ldappasswd[ \t][^\n]{{0,200}}?[ \t]-s[ \t]{_ARGUMENT}",
    "nuget push": rf"nuget push[ \t][^\n]{{0,200}}?[ \t](?:-k|--api-key|-ApiKey)[ \t]{_ARGUMENT}",
    "bundle config": (
        r"bundle config[ \t](?:set[ \t])?(?:--\w{1,12}[ \t])?\S{1,80}[ \t][\w.@-]{1,64}:"
        rf"{_ARGUMENT}"
    ),
    "secret set": rf"secret set[ \t]\w{{1,60}}[ \t][^\n]{{0,80}}?-[bv][ \t=]?{_ARGUMENT}",
    "put-parameter": (
        r"put-parameter(?=[^\n]{0,300}(?i:secure|pass|secret|token|key))[^\n]{0,300}?--value[ =]"
        rf"{_ARGUMENT}"
    ),
    "codecov": rf"codecov[ \t][^\n]{{0,120}}?-t[ \t]{_ARGUMENT}",
    "sonar.login": rf"sonar\.login=(?=\S{{0,80}}\d){_ARGUMENT}",
    "net use": rf"(?i:net use)[ \t](?:(?:\w:|\*)[ \t])?\\\\\S{{1,120}}[ \t](?!/){_ARGUMENT}",
    "setcredentials": rf"(?i:setcredentials)(?:[ \t]\S{{1,64}}){{4}}[ \t]{_ARGUMENT}",
    **dict.fromkeys(
        ("askpass", "passwordeval", "passcmd", "passwordcommand", "password-command"),
        r"(?i:askpass|passwordeval|passcmd|password-?command)[ \t=:\"'<(]{1,8}echo[ \t]{1,3}"
        rf"{_ARGUMENT}",
    ),
    "--encrypt": r"--encrypt[ \t](?P<s>\S{4,64}[ \t]\S{4,64})[ \t](?:40|128|256)[ \t]",
    # Equipment of networks, VPNs and mail.
    "server key": rf"(?<=-)server key[ \t](?:\d[ \t])?{_ARGUMENT}",
    "enable secret": rf"enable secret[ \t](?:level \d{{1,2}}[ \t])?(?:\d[ \t])?{_ARGUMENT}",
    "-shared-key ": rf"-shared-key[ \t](?:\d[ \t]|local[ \t]|remote[ \t])?{_ARGUMENT}",
    'psk "': rf"(?i:psk) (?=\"){_ARGUMENT}",
    "]:587": rf"\]:587[ \t]{{1,8}}[\w.@+-]{{1,64}}:{_ARGUMENT}",
    # A call that connects or logs in: host, name and password, or name and password.
    **dict.fromkeys(
        ("connect(", "connection(", "pdo(", "login("),
        r"(?i:(?:connect|connection|pdo)\([ \t]{0,4}(?:\w{1,30}|[\"'][^\"'\n]{0,120}[\"']) ?,"
        r"|login\((?:[ \t]{0,4}\w{1,30}[ \t]{0,4},)?)[ \t]{0,4}[\"'][^\"'\n]{1,80}[\"'][ \t]{0,4},"
        r"[ \t]{0,4}[\"'](?!utf|latin)(?=[^\"'\n]{0,60}(?:\d[^\"'\n]{0,60}\d|[!@#$%^&*?]))"
        r"(?P<s>[^\s\"']{6,128})[\"']",
    ),
    "wpa_passphrase": rf"wpa_passphrase[ \t]{_NAME}[ \t]{_ARGUMENT}",
    "creds": rf"creds[ =][\"']?[\w.@-]{{1,64}}:{_ARGUMENT}",
    "http-basic.": rf"http-basic\.[\w-]{{1,40}}[ \t]{_NAME}[ \t]{_ARGUMENT}",
    "cargo login": rf"cargo login[ \t](?:--registry[ =]\S{{1,40}}[ \t])?(?!cio){_ARGUMENT}",
    "doctl auth": rf"doctl auth init[^\n]{{0,80}}?[ \t](?:-t|--access-token)[ =]{_ARGUMENT}",
    "secrets set": rf"secrets set[ \t]{{1,4}}\w{{1,60}}={_ARGUMENT}",
    "nmcli": rf"nmcli[ \t][^\n]{{0,120}}?[ \t]password[ \t]{_ARGUMENT}",
    "account =": (
        r"account =[ \t]{0,4}\S{1,80}[ \t]{0,4}\r?\n[ \t]{0,8}key[ \t]{0,4}=[ \t]{0,4}"
        rf"{_ARGUMENT}"
    ),
    " on >": rf" on >{_ARGUMENT}(?=[ \t]{{1,4}}(?:[~+&%(#-]|all|reset|no)|[ \t]{{0,4}}(?:\n|\Z))",
    "appid=": r"(?<=[?&])appid=(?P<s>[0-9a-f]{32})(?!\w)",
    "neo4j_auth": rf"NEO4J_AUTH=[\"']?\w{{1,40}}/{_ARGUMENT}",
    "community": rf"(?<=\br[ow])community6?[ \t]{_ARGUMENT}",
    "passphrase=": r"(?i:passphrase)=(?P<q>[\"'])(?P<s>[^\s\"'$][^\"'\n$]{7,128})(?P=q)",
    "vault login": rf"vault login[ \t]{_ARGUMENT}",
    "securestring": r"(?i:securestring)[ \t](?:-String[ \t])?[\"'](?P<s>[^\"'\n]{6,128})[\"']",
    "encrypt_string": rf"encrypt_string[ \t]{{1,4}}{_ARGUMENT}",
    "/user:": rf"/user:[\w.@\\-]{{1,64}}[ \t]{_ARGUMENT}",
    "secret-string": rf"secret-string[ =]{_ARGUMENT}",
    "mc alias set": rf"mc alias set(?:[ \t]\S{{1,200}}){{3}}[ \t]{_ARGUMENT}",
    "cryptsetup": rf"cryptsetup[ \t][^\n|;&<]{{0,120}}<<<[ \t]{{0,4}}{_ARGUMENT}",
    "identified ": (
        r"(?i:identified (?:with \S{1,40} )?by)(?:[ \t](?i:password|values))?[ \t]{1,4}"
        r"[\"'`](?P<s>[^\s\"'`]{6,128})[\"'`]"
    ),
    "requirepass": rf"requirepass[ \t]{{1,4}}{_ARGUMENT}",
    "masterauth": rf"masterauth[ \t]{{1,4}}{_ARGUMENT}",
    "rediscli_auth": rf"REDISCLI_AUTH={_ARGUMENT}",
    "psk": (
        r"(?i:psk)\"?[ \t]{0,4}[=:][ \t]{0,4}"
        rf"(?=[\"']?\S{{0,128}}[A-Z!@#$%^&*?]|[\"']){_ARGUMENT}"
    ),
}
# A name of several words whose last one means a key, and a value that may be one.
NAMED_KEY = late_pattern(
    r"(?P<word>(?i:key|token|secret|salt|seed|auth|signing|cookie))[\\\"'\]]{0,4}"
    r"(?:[ \t]{0,20}(?:=>|:=|[:=])[ \t]{0,20}|\"[ \t]{1,4}value=|\"?,[ \t]{0,4}\"value\":[ \t]{0,4}"
    r"|(?P<option>[ \t]{1,4}))\\{0,3}(?P<quote>[\"'`]?)"
    r"(?P<s>[A-Za-z0-9_~+/=.-]{8,512}+)(?=[\s\"'`,;)\]}&|<\\]|\Z)"
)
KEY_ENDS = ("key", "token", "secret", "salt", "seed", "auth", "signing", "cookie")
# What is piped into a program that asks for a password.
READERS = (
    "sudo ", "chpasswd", "password-stdin", "passwd -", "passphrase-fd", "kinit", "cryptsetup",
    "secret set", "secret put", "secret create", "with-token", "load-key", "pass insert",
    "passwd-on-stdin", "keepassxc", "openconnect",
)  # fmt: skip
_READS = (
    r"(?:sudo (?:-[a-zA-Z]{1,8} ){0,3}-[a-zA-Z]{0,4}S|passwd -(?:-stdin|[a-z]{0,3}[si](?!\w))"
    rf"|{'|'.join(word for word in READERS if word not in ('sudo ', 'passwd -'))})"
)
PIPED = late_pattern(
    r"(?:echo|printf|yes)[ \t](?:-[ne]{1,2}[ \t]|[\"']%s(?:\\n)?[\"'][ \t]){0,2}"
    r"[\"']?(?:[\w.-]{1,64}:)?"
    r"(?P<s>[^\s\"'`<>|;&\x00]{6,128})[\"']?[ \t]{0,4}\|[^\n|;&]{0,80}?"
    rf"{_READS}"
)
FED = late_pattern(rf"{_READS}[^\n|;&<]{{0,80}}<<<[ \t]{{0,4}}{_ARGUMENT}")
# ~/.pgpass: host, port, database, user, password.
PGPASS = late_pattern(
    r"^[\w.*-]{1,100}:(?:[0-9]{2,5}|\*):[\w.*-]{1,64}:[\w.*@-]{1,64}:"
    r"(?P<s>[^\s:\"'`]{6,128})[ \t]{0,20}$",
    re.M,
)
