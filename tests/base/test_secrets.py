"""Secrets are found in their real formats, placeholders are left alone, and nothing leaks."""

import itertools
import random
import re
import string
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base import passwords, placeholders, secret_formats, secrets, told_secrets
from waiting import calls

_SETS = {
    "A": string.ascii_letters + string.digits,
    "U": string.ascii_uppercase + "234567",
    "W": string.ascii_letters + string.digits + "_-",
    "B": string.ascii_letters + string.digits + "+/",
    "x": "0123456789abcdef",
    "d": string.digits,
    "l": string.ascii_lowercase + string.digits,
    "C": string.ascii_uppercase + string.digits,
    "a": "abcdefghijklmnopqrstuvwxyz234567",
}


def made(template: str, seed: int = 7) -> str:
    """`template` with each `{A40}` filled with 40 random characters of that set.

    The values are made at run time, so that this file holds nothing that looks like a secret.
    """
    rng = random.Random(f"{template}{seed}")

    def fill(match: re.Match[str]) -> str:
        chars = "".join(rng.choices(_SETS[match[1]], k=int(match[2]) - 2))
        first, last = rng.choice("bcdf"), rng.choice("2479")  # the ends are letters and digits
        return (
            (first if match[1] != "d" else "7") + chars + last
            if match[1] not in "UC"
            else ("Q" + chars + "7")
        )

    return re.sub(r"\{([A-Za-z])(\d+)\}", fill, template)


_UUIDS = "{x8}-{x4}-{x4}-{x4}-{x12}@{x8}-{x4}-{x4}-{x4}-{x12}"
FORMATS = [
    ("aws-access-key", "AKIA{U16}"),
    ("aws-access-key", "ASIA{U16}"),
    ("aws-bedrock-key", "ABSK{B110}=="),
    ("google-api-key", "AIza{W35}"),
    ("google-oauth-token", "ya29.a0{W120}"),
    ("google-oauth-secret", "GOCSPX-{W28}"),
    ("google-refresh-token", "1//0{W90}"),
    ("azure-storage-key", "DefaultEndpointsProtocol=https;AccountKey={B86}=="),
    ("azure-bus-key", "Endpoint=sb://x;SharedAccessKey={B43}="),
    ("azure-sas", "https://a.blob.core.windows.net/c?sv=2022&sig={A44}%3D"),
    ("azure-client-secret", "abc8Q~{W34}"),
    ("digitalocean-token", "dop_v1_{x64}"),
    ("alibaba-key", "LTAI{A20}"),
    ("heroku-key", "HRKU-AA{W58}"),
    ("netlify-token", "nfp_{A36}"),
    ("supabase-key", "sbp_{x40}"),
    ("planetscale-key", "pscale_tkn_{W43}"),
    ("databricks-token", "dapi{x32}"),
    ("vault-token", "hvs.{W90}"),
    ("vault-token", "VAULT login s.{A24}"),
    ("terraform-token", "{A14}.atlasv1.{W67}"),
    ("pulumi-token", "pul-{x40}"),
    ("doppler-token", "dp.pt.{A43}"),
    ("tailscale-key", "tskey-auth-{A12}-{A32}"),
    ("anthropic-key", "sk-ant-api03-{W93}AA"),
    ("openai-key", "sk-proj-{W156}"),
    ("openai-key", "sk-{A20}T3BlbkFJ{A20}"),
    ("openrouter-key", "sk-or-v1-{x64}"),
    ("huggingface-token", "hf_{A34}"),
    ("groq-key", "gsk_{A52}"),
    ("xai-key", "xai-{A80}"),
    ("replicate-token", "r8_{A37}"),
    ("perplexity-key", "pplx-{A48}"),
    ("langsmith-key", "lsv2_pt_{x32}_{x10}"),
    ("github-token", "ghp_{A36}"),
    ("github-token", "gho_{A36}"),
    ("github-token", "ghs_{A36}"),
    ("github-token", "github_pat_{A22}_{A59}"),
    ("gitlab-token", "glpat-{W20}"),
    ("gitlab-token", "glrt-{W20}"),
    ("bitbucket-token", "ATBB{A32}"),
    ("atlassian-token", "ATATT3{W180}"),
    ("npm-token", "npm_{A36}"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc{W120}"),
    ("rubygems-key", "rubygems_{x48}"),
    ("nuget-key", "oy2{l43}"),
    ("dockerhub-token", "dckr_pat_{W27}"),
    ("circleci-token", "CCIPAT_{A22}_{x40}"),
    ("sentry-token", "sntryu_{x64}"),
    ("grafana-token", "glsa_{A32}_{x8}"),
    ("slack-token", "xoxb-{d12}-{d12}-{A24}"),
    ("slack-token", "xapp-1-A{d10}-{d13}-{x64}"),
    ("slack-webhook", "https://hooks.slack.com/services/T{d8}/B{d8}/{A24}"),
    ("discord-webhook", "https://discord.com/api/webhooks/{d18}/{W68}"),
    ("discord-token", "discord bot: M{A25}.{A6}.{A38}"),
    ("telegram-token", "{d10}:AA{W33}"),
    ("stripe-key", "sk_live_{A24}"),
    ("stripe-key", "rk_live_{A99}"),
    ("stripe-test-key", "sk_test_{A24}"),
    ("webhook-secret", "whsec_{A32}"),
    ("twilio-key", "twilio SK{x32}"),
    ("sendgrid-key", "SG.{W22}.{W43}"),
    ("mailgun-key", "key-{x32}"),
    ("mailchimp-key", "{x32}-us21"),
    ("square-token", "EAAA{W60}"),
    ("square-token", "sq0atp-{W22}"),
    ("shopify-token", "shpat_{x32}"),
    ("linear-key", "lin_api_{A40}"),
    ("notion-token", "ntn_{A46}"),
    ("notion-token", "secret_{A43}"),
    ("airtable-token", "pat{A14}.{x64}"),
    ("figma-token", "figd_{W40}"),
    ("age-key", "AGE-SECRET-KEY-1{U58}"),
    ("jwt", "eyJ{W33}.eyJ{W70}.{W43}"),
    ("azure-devops-token", "{A76}AZDO{A4}"),
    ("azure-devops-token", "dev.azure.com/contoso uses {a52}"),
    ("tencent-key", "AKID{A32}"),
    ("fly-token", "fo1_{W43}"),
    ("neon-key", "napi_{l64}"),
    ("aiven-password", "AVNS_{W19}"),
    ("render-key", "rnd_{A32}"),
    ("vercel-token", "vcp_{A56}"),
    ("vercel-token", "vercel_blob_rw_{A16}_{A30}"),
    ("cloudflare-token", "cfat_{A48}"),
    ("openshift-token", "sha256~{W43}"),
    ("atlas-secret", "mdb_sa_sk_{W40}"),
    ("yandex-key", "AQVN{W36}"),
    ("yandex-token", "y0_{W50}"),
    ("baidu-key", "bce-v3/ALTAK-{A21}/{x40}"),
    ("xata-key", "xau_{A36}"),
    ("prefect-key", "pnu_{l36}"),
    ("infracost-key", "ico-{A32}"),
    ("doppler-token", "dp.st.prd.{A43}"),
    ("nvidia-key", "nvapi-{W64}"),
    ("cerebras-key", "csk-{l48}"),
    ("together-key", "tgp_v1_{W43}"),
    ("fireworks-key", "fw_{A24}"),
    ("pinecone-key", "pcsk_{A6}_{A63}"),
    ("voyage-key", "pa-{W43}"),
    ("jina-key", "jina_{x32}{W28}"),
    ("firecrawl-key", "fc-{x32}"),
    ("e2b-key", "e2b_{x40}"),
    ("apify-token", "apify_api_{A36}"),
    ("anyscale-key", "esecret_{l30}"),
    ("logfire-token", "pylf_v1_us_{A43}"),
    ("posthog-key", "phx_{A43}"),
    ("brave-key", "brave BSA{W28}"),
    ("modal-token", "modal as-{A22}"),
    ("wandb-key", "wandb_v1_{W80}"),
    ("gitlab-token", "GR1348941{W20}"),
    ("atlassian-token", "ATCTT3{W180}"),
    ("trello-token", "ATTA{x72}"),
    ("buildkite-token", "bkua_{x40}"),
    ("buildkite-token", "bkaj_{x40}"),
    ("newrelic-key", "NRAK-{C27}"),
    ("newrelic-key", "{x36}NRAL"),
    ("sonar-token", "squ_{x40}"),
    ("sourcegraph-token", "sgp_{x16}_{x40}"),
    ("artifactory-key", "AKCp{A69}"),
    ("artifactory-token", "cmVmd{A59}"),
    ("clojars-token", "CLOJARS_{l60}"),
    ("honeycomb-key", "hcaik_{l58}"),
    ("launchdarkly-key", "LaunchDarkly sdk-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("octopus-key", "API-{C26}"),
    ("grafana-token", "eyJrIjoi{A80}"),
    ("axiom-token", "xaat-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("deno-token", "ddp_{A36}"),
    ("snyk-token", "snyk_uat.{A8}.{W80}"),
    ("harness-token", "pat.{W22}.{x24}.{A20}"),
    ("firebase-key", "AAAA{A7}:APA91b{W134}"),
    ("postman-key", "PMAK-{x24}-{x34}"),
    ("dynatrace-token", "dt0c01.{C24}.{C64}"),
    ("crates-token", "cargo login cio{A32}"),
    ("langfuse-key", "sk-lf-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("elevenlabs-key", "sk_{x48}"),
    ("tavily-key", "tvly-dev-{A32}"),
    ("cloudflare-origin-key", "v1.0-{x24}-{x146}"),
    ("fly-token", "fm2_{B200}="),
    ("onepassword-token", "ops_eyJ{W300}"),
    ("facebook-token", "EAAG{A120}"),
    ("facebook-token", "EAAM{A120}"),
    ("slack-token", "xoxc-{d12}-{d12}-{d12}-{x64}"),
    (
        "teams-webhook",
        "https://x.webhook.office.com/webhookb2/" + _UUIDS + "/IncomingWebhook/{x32}/{x8}-{A20}",
    ),
    ("mailgun-key", "mailgun {x32}-{x8}-{x8}"),
    ("brevo-key", "xkeysib-{x64}-{A16}"),
    ("resend-key", "re_{A8}_{A24}"),
    ("hubspot-token", "pat-na1-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("asana-token", "asana 2/{d16}/{d16}:{x32}"),
    ("clickup-token", "pk_{d8}_{C32}"),
    ("typeform-token", "tfp_{W43}"),
    ("contentful-token", "CFPAT-{W43}"),
    ("dropbox-token", "sl.{W140}"),
    ("plaid-token", "access-sandbox-{x8}-{x4}-{x4}-{x4}-{x12}"),
    ("razorpay-key", "rzp_live_{A14}"),
    ("braintree-token", "access_token$production${l16}${x32}"),
    ("easypost-key", "EZAK{A54}"),
    ("shippo-token", "shippo_live_{x40}"),
    ("mapbox-token", "sk.eyJ{W80}.{W22}"),
    ("okta-token", "SSWS 00{W40}"),
    ("adobe-secret", "p8e-{W32}"),
    ("duffel-token", "duffel_live_{W43}"),
    ("flutterwave-key", "FLWSECK-{x32}-X"),
    ("readme-key", "rdme_{l70}"),
    ("onesignal-key", "os_v2_app_{a103}"),
    ("salesforce-session", "00D{A12}!{A100}"),
    ("zoho-token", "1000.{x32}.{x32}"),
    ("maxmind-key", "{A6}_{A29}_mmk"),
    ("url-key", "https://fn.acme.io/api/run?clientId=default&code={W60}AzFu=="),
    ("aws-secret-key", "aws_secret_access_key={B40}"),
    ("password-hash", "bob:$2y$05${A53}"),
    ("password-hash", "bob:$$apr1$${A8}$${A22}"),
    ("password-hash", "root:$6$rounds=5000${A12}${A86}:19782:0"),
    ("password-hash", "root:$y$j9T${A22}${A43}:19782:0"),
    ("password-hash", "$P$B{A30}"),
    ("password-hash", "{SSHA}{A38}=="),
    ("site-key", "define('AUTH_SALT',   '{A20}^&<; %-{A30}'"),
]


@pytest.mark.parametrize(("rule", "template"), FORMATS)
@pytest.mark.parametrize(
    "frame", ["{}", "key: {}\n", '  "value": "{}",', "run --with={} now", "({})"]
)
def test_provider_formats(rule: str, template: str, frame: str) -> None:
    """Each provider's format is found by its own rule, and not a character of it stays."""
    value = made(template)
    text = "first line\n" + frame.format(value)
    found = secrets.find(text)
    assert rule in [secret.rule for secret in found], secrets.redact(text).text
    assert all(secret.line == 2 for secret in found)
    tail = re.split(r"[ .:=/]", value)[-1] or value
    assert value[-12:] not in secrets.redact(text).text
    assert len(tail) < 20 or tail not in secrets.redact(text).text


_ROOT = Path(__file__).parents[2]


def planted_secrets() -> ModuleType:
    spec = spec_from_file_location("planted_secrets", _ROOT / "bench" / "planted_secrets.py")
    assert spec
    assert spec.loader
    bench = module_from_spec(spec)
    spec.loader.exec_module(bench)
    return bench


def test_the_rates_on_the_page_are_true() -> None:
    """docs/security.md says what is found; when this fails: bench/planted_secrets.py --write."""
    assert planted_secrets().table() in (_ROOT / "docs" / "security.md").read_text("utf-8")


def test_every_format_has_a_sample() -> None:
    """No rule of the table is untested."""
    assert {row.rule for row in secret_formats.FORMATS} == {rule for rule, _ in FORMATS}


@pytest.mark.parametrize(
    "text",
    [
        "aws_key_id = AKIAIOSFODNN7EXAMPLE\nsecret = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "OPENAI_API_KEY=sk-your-key-here-1234567890abcdef",
        "api_key: YOUR_API_KEY",
        'api_key = os.environ["OPENAI_API_KEY_V2_2024"]',
        "const token = process.env.GITHUB_TOKEN_2024_PROD",
        "token: ${{ secrets.NPM_TOKEN_2024_11 }}",
        "password=<your password 123 here>",
        "secret: {{ vault.secret_2024_prod_value }}",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <access-token-1234>",
        "Authorization: Basic dXNlcjpwYXNz",
        "postgres://user:pass@localhost:5432/db",
        "postgres://postgres:postgres@db/app",
        "https://user:${PASSWORD}@example.com",
        "mongodb+srv://app:s3cret99@db.example.com/x",
        "max_tokens: 4096, token_count=123456789012",
        "token_id: 8f14e45fceea167a5a36dedd4bea2543",
        "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased-2018')",
        "password: aaaaaaaa1111",
        "secret_name = projects/123456/secrets/db-password-2024",
        'token = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"',
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA...\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n<your key>\n-----END PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHC",
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
        "date -u +%Y-%m-%dT00:00:00Z",
        "mkdir -p Build-2024/Out_1", "mkdir -pVw9-kelp!Rq2", "cp -p Report-2024.Txt Old-1/",
        "ssh -p 22 Root1@Host-22.internal", "ssh -p2222 Host-1.B",
        "docker run --name mysql -p 3306:3306 Image-8.0!x",
        "docker run mysql -p127.0.0.1:3306:3306",
        "mysql -u root -p Shop_2024!x", "mysql -u root -p$DB_PASSWORD shop", "mysql -ppassword x",
        "mysql --protocol=TCP4-x", "mysql x; mkdir -pVw9-kelp!Rq2",
        "sshpass -e ssh -p 2222 Root1@Host-2", "sshpass -p $PASS ssh x",
        "sshpass -f File-1.Txt ssh -pVw9-kelp",
        "use password authentication", "with password hashing (PBKDF2-HMAC-SHA256)",
        "use a password manager such as KeePassXC",
        "with password protected", "with passwords in V2.x",
        "token: feature/walnut-2fa-8195-rework", "token: claude/fix-Login-011CV5abcXyz9Kd",
        "secret: kubernetes.io/copper-87/v1beta7", "api_key: packages/kit-v2/src/ApiKey3/index.ts",
        "--- PASS: TestParse12/Sub_case-1 (0.00s)", "PASS: 1e-200 (pos=200)", "pw:browser-V2",
        "If I pass `verbosity=2`", "admin: Next-Release!2", "docker run -p 8080:80 Image-1.2",
        "token: Next.js-14.2.3-canary.1", "identified by Order_1234", "echo Done-12! | tee log",
        "https://docs.acme.io/errors?code=ERR_MODULE_NOT_FOUND_IN_WORKSPACE_ROOT",
        "define('AUTH_KEY',         'put your unique phrase here');",
        "jwt:\n  key: keys/jwt_signing_rs256.pem\n  ttl: 3600", "config/master.key\nconfig/x.yml",
        "jwt: { publicKey: config.jwt.publicKeyPath2048 }", "app.key.rotation.interval=P90D",
        "password_hash: $2b$12$HA4lV8hZE9GCgE81U2KEo4st7zxCrLOyUycN7U7SYUwYDlNM9vrNx",
        "sed -E 's/(.*)=(.*)/$1$2$/' x", "jdbc:oracle:thin:@//db.internal:1521/ORCLPDB1",
        "sqlplus app/$DB_PASS@ORCL", "> Auth Service-V2 migration", "openssl enc -K $KEY_HEX",
        "kinit -kt /etc/krb5.keytab HTTP/Host-12.internal@ACME.IO",
        "echo Build-1.2! && gh secret list",
        'expect "assword:"; send "$env(SSH_PASS)\\r"', "mit admin / Viewer2 role",
        "here's the key difference: AbstractAuthenticationTokenProviderFactory2",
        "the cache key is 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "my public key: kT9sLw2er0mB5uCqXyZp7HnVd3JfEqQ2",
        "вот ключевой файл AuthTokenFilter2.java",
        "API key names: NEXT_PUBLIC_ACME_API_KEY_V2_2024", "Kennwort neu: siehe Vault-Eintrag",
        "the pin is 2048 bits wide", "mnemonic: four words make one phrase easy",
        "led_pin: 2048", "fastcgi_pass app:9000", "sudo -u bob mkdir -p Project2024",
        "git log -u origin -p Feature2024", "docker run -u bob -p 8080:80 Image2024",
        "mysql -u root -p Shop_3922", "access_token=response2json3", "auth_token: Token2Type",
        "STRIPE_KEY=${STRIPE_KEY}", "file_key: file_v3_00sj_0a5f10d6-5b99-4ad5", "psk=disabled-69",
        "use Chrome120 for the password tests", "the password on it is hashed with Argon2id",
        "the password is the same as on Staging-2", "connect('a', 'b', 'utf8mb4')",
        "pin it to 20240101 please", "the password reset landed in Sprint_24",
        "reset the password on Windows11 machines", "log in as bob and open Tab12",
        "see PR#42 for the password change", "password reset link expires in 24h!",
    ],
)  # fmt: skip
def test_placeholders_are_left(text: str) -> None:
    """Samples of guides, variables, words, hashes and addresses are not secrets."""
    assert secrets.find(text) == []
    assert secrets.redact(text) == (text, {})


@pytest.mark.parametrize(
    ("rule", "template"),
    [
        ("password", 'password = "Tr0ub4dor&3x"'),
        ("password", "DB_PASSWORD=Vw9{A12}!"),
        ("password", "  passwd: 'Winter-in-Oslo-77'"),
        ("assigned-secret", "client_secret: {A32}"),
        ("assigned-secret", '"apiKey": "{x32}"'),
        ("assigned-secret", "export MY_SERVICE_TOKEN={A40}"),
        ("assigned-secret", "| API key | `{A40}` |".replace(" | `", ": `")),
        ("assigned-secret", "heroku_api_key = {x8}-{x4}-4{x3}-{x4}-{x12}"),
        ("assigned-secret", "x.secretToken => '{W40}'"),
        ("authorization-header", "curl -H 'Authorization: Bearer {A40}' https://api.test"),
        ("authorization-header", "Authorization: Basic YWxpY2U6VHI0dWI0ZG9yJjNY"),
        ("password-in-url", "DATABASE_URL=postgres://app:{A16}@db.internal:5432/app"),
        ("password-in-url", "git clone https://x-access-token:{A20}@git.internal/r.git"),
        ("password", "curl -u alice:{A14}-Zq https://api.internal/v1"),
        ("password", "deploy --db-password Vw9{A12}! --now"),
        ("password", "My password is Vw9{A12}!"),
        ("password", "use password Vw9{A12}! for it"),
        ("password", "Log in with the admin password 'Vw9{A12}!'"),
        ("password", "connect as root, using password Vw9{A12}!"),
        ("password", "mysql -u root -pVw9{A12}! shop"),
        ("password", "mysqldump --all-databases -h db -p'Vw9{A12}!' > x.sql"),
        ("password", "mariadb -pVw9{A12}! -e 'select 1'"),
        ("password", "sshpass -p 'Vw9{A12}!' ssh -p 22 root@host"),
        ("password", "sshpass -pVw9{A12}! scp x host:"),
        ("password", "machine git login bob password Vw9{A12}!"),
        ("password", "*:5432:*:bob:Vw9{A12}!"),
        ("password", "DB_PASS=Vw9{A12}!"),
        ("password", "PW=Vw9{A12}!"),
        ("password", "define('DB_PASSWORD', 'Vw9{A12}!');"),
        ("password", "CREATE USER b IDENTIFIED BY 'Vw9{A12}!'"),
        ("password", "<password>Vw9{A12}!</password>"),
        ("password", '<add key="Password" value="Vw9{A12}!" />'),
        ("password", "- name: DB_PASSWORD\n  value: Vw9{A12}!"),
        ("password", r"{\"password\": \"Vw9{A12}!\"}"),
        ("password", "docker login -u bob -p Vw9{A12}!"),
        ("password", "redis-cli -a Vw9{A12}! ping"),
        ("password", "mongosh -u bob -p Vw9{A12}!"),
        ("password", "openssl rsa -passin pass:Vw9{A12}!"),
        ("password", "echo 'Vw9{A12}!' | sudo -S ls"),
        ("password", '"auth": "Ym9iOlZ3OS1rZWxwIVJxMg=="'),
        ("private-key", "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ{B200}"),
        ("authorization-header", "Authorization: Token {x40}"),
        ("authorization-header", "Authorization: SSWS {W42}"),
        ("assigned-secret", "APP_KEY=base64:{B43}="),
        ("cookie", "Cookie: theme=dark; sessionid={A32}"),
        ("password", "the pw is Vw9{A12}!"),
        ("password", "das Passwort lautet Vw9{A12}!"),
        ("password", "le mot de passe est Vw9{A12}!"),
        ("password", "la contraseña es Vw9{A12}!"),
        ("password", "a senha é Vw9{A12}!"),
        ("password", "пароль: Vw9{A12}!"),
        ("password", "密码是Vw9{A12}!"),
        ("password", "パスワードは「Vw9{A12}!」です"),
        ("password", "hasło to Vw9{A12}!"),
        ("password", "usuario root, contraseña Marble-kelp-47"),
        ("password", "account admin, пароль Marble1974!"),
        ("password", "password (staging): Marble-kelp-47"),
        ("password", "here are the creds: admin / Marble-kelp-47"),
        ("password", "user=app&password=Vw9{A12}!&grant_type=password"),
        ("password", 'variable "db_password" {\n  type = string\n  default = "Vw9{A12}!"\n}'),
        ("password", "net use Z: /user:acme\\bob Vw9{A12}!"),
        ("password", "az keyvault secret set --name n --value Vw9{A12}!"),
        ("password", "aws secretsmanager create-secret --secret-string Marble-kelp-47"),
        ("password", "mc alias set m http://localhost:9000 admin Vw9{A12}!"),
        ("password", "cryptsetup open /dev/sdb x <<< 'Vw9{A12}!'"),
        ("assigned-secret", "ALGOLIA_ADMIN_KEY={x32}"),
        ("assigned-secret", "publish --token {x32}"),
        ("assigned-secret", "the api key is {A32}, keep it"),
        ("aws-secret-key", "AKIA{U16} and then {B40}"),
        ("assigned-secret", "define('LOGGED_IN_KEY',    '{A64}');"),
        ("assigned-secret", '<machineKey decryptionKey="{x64}" />'),
        ("assigned-secret", '"Jwt:Key": "{A48}"'),
        ("password", '"Jwt": { "Issuer": "acme", "Key": "{A48}" }'),
        ("password", "config/master.key\n{x32}"),
        ("password", "jdbc:oracle:oci:app/Vw9{A12}!@ORCL"),
        ("password", "redis.internal:6379[2]> auth bob Vw9{A12}!"),
        ("password", "openssl enc -d -aes-128-cbc -K {x32} -in x"),
        ("password", "openssl dgst -sha256 -hmac Vw9{A12}! x"),
        ("password", "curl --proxy-user corp\\bob:Vw9{A12}! https://x.internal"),
        ("password", "echo 'Vw9{A12}!' | gpg --batch --passphrase-fd 0 -d x.gpg"),
        ("password", "printf '%s' 'Vw9{A12}!' | gh secret set DB"),
        ("password", "kinit bob <<< 'Vw9{A12}!'"),
        ("password", "child.expect('assword: ')\nchild.sendline('Vw9{A12}!')"),
        ("password", "changed the password, new: Marble-kelp-47"),
        ("password", "mit root / Marble-kelp-47 anmelden"),
        ("password", "das pw am Server lautet Marble-kelp-47"),
        ("password", "usa la contraseña Marble-kelp-47"),
        ("assigned-secret", "here's my key, for staging only: {A40}"),
        ("assigned-secret", "voici la clé : {x64}"),
        ("assigned-secret", "мой ключ API: {A40}"),
        ("assigned-secret", "APIトークンは {A40} です"),
        ("assigned-secret", "ecco la chiave API {A40}"),
        ("password", "логин admin, пароль Tundra_17"),
        ("password", "heslo k databázi je Tundra!8"),
        ("password", "ich hab das pw auf Tundra77x geändert"),
        ("password", "log in as bob, with Tundra_99 as the password"),
        ("password", "just type Tundra$2023 when it asks for the password"),
        ("password", "pin for the sim is 9082 btw"),
        ("password", "the otp i just got is 493027"),
        ("password", "暗証番号は5821です"),
        ("password", "2fa backup code: 8k3d-92mf-1lqz"),
        ("password", "The passphrase is walnut harbor pebble lantern."),
        ("assigned-secret", "the api key you need is {x10}7f3k9d"),
        ("password", "melde dich mit admin und Tundra_7 an"),
        ("assigned-secret", "JWT_SECRET=walnut-harbor-33"),
        ("password", "kind: Secret\ndata:\n  password: V2FsbnV0SGFyYm9y=="),
        ("password", "cypher-shell -u neo4j -p Grove_1188"),
        ("password", "sendemail -s smtp.x:587 -xu me -xp Rook_2210"),
        ("password", "impdp bob/Perch22kz@orcl file=x"),
        ("password", "bindpw Perch22kz"),
        ("password", "db2 connect to sample user bob using Perch22kz"),
        ("password", "pymysql.connect('h', 'u', 'Perch22kz', 'db')"),
        ("password", "radius-server key Perch22kz"),
        ("password", "remotepass = Perch22kz"),
        ("password", "const pass = process.env.DB_PASS || 'Perch22kz'"),
        ("assigned-secret", "ARG NPM_TOKEN=apple42tok"),
        ("assigned-secret", "kubectl config set-credentials bob --token oc3an19xx"),
        ("assigned-secret", "STRIPE_KEY=k94mzx71vplt8dwq3bQW"),
        ("assigned-secret", "JWT_SALT=k94mzx71vplt"),
        ("password", "Das Passwort vom NAS ist Kirsche88"),
        ("password", "lozinka je Visnja88"),
        ("password", "use Clover2931 for the password"),
        ("password", "slaptažodis yra Vysnia88"),
        ("password", "the password I use there is Clover2931"),
    ],
)
def test_values_next_to_telling_names(rule: str, template: str) -> None:
    """A value without a format of its own is found by the name or the header beside it."""
    text = made(template)
    assert rule in [secret.rule for secret in secrets.find(text)], text
    assert secrets.redact(text).counts[rule] == 1


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "PGP "])
@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("newline", ["\n", "\\n", "\r\n", "\n    "])
def test_private_keys_over_lines(kind: str, end: bool, newline: str) -> None:
    """A private key goes whole, over lines, with line ends written out, and without its end."""
    block = " BLOCK" if kind == "PGP " else ""
    lines = [made("{B64}", seed) for seed in range(8)]
    parts = [f"-----BEGIN {kind}PRIVATE KEY{block}-----", *lines]
    if end:
        parts.append(f"-----END {kind}PRIVATE KEY{block}-----")
    text = "before\n" + newline.join(parts) + "\n\nafter."
    redacted = secrets.redact(text)
    assert redacted.counts == {"private-key": 1}
    assert not any(line[:20] in redacted.text for line in lines)
    assert redacted.text.startswith("before\n[redacted: private-key]")
    assert redacted.text.endswith("after.")


_COLOURED = [
    template for n, (_, template) in enumerate(FORMATS) if n % 3 == 0 and "\n" not in template
]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("\x1b[1;32m", "\x1b[0m"), ("\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"), ("A=1\x00", "\x00B=2"),
        (r"\u001b[32m", r"\u001b[39m"), (r"\033[1m", r"\033[0m"), ("\x1b]8;;", "\x07"),
    ],
)  # fmt: skip
def test_what_colours_a_text_hides_no_secret(begin: str, end: str) -> None:
    """Programs colour names and values, and part them by other signs than spaces: what they print
    is as safe as what they write into a file."""
    for text in (*map(made, _COLOURED), made("DB_PASSWORD=Vw9{A12}")):
        shown = f"x\n{begin}{text}{end}"
        assert [s.line for s in secrets.find(shown)] == [2] * len(secrets.find(text)), shown
        assert secrets.may_hold(msgspec.json.encode([shown]))
        assert secrets.redact(shown).text.startswith(f"x\n{begin}")
    if "[" in begin:
        value = made("Vw9{A12}")
        for text in (
            f"{begin}DB_PASSWORD{end}={begin}{value}{end}",
            f"password: {begin}{value}{end}",
        ):
            assert value not in secrets.redact(text).text, text


def test_a_secret_never_shows_its_value() -> None:
    """Neither repr nor str of what is found holds the value."""
    token = made("ghp_{A36}")
    found = secrets.find(f"push with {token}")
    assert token[4:] not in repr(found) + str(found[0])
    assert found[0] == ("github-token", 1, 10, 50)


def test_each_is_counted_once() -> None:
    """A secret that several rules know is one secret; two of a kind are two."""
    one, two = made("ghp_{A36}", 1), made("ghp_{A36}", 2)
    text = f"GITHUB_TOKEN={one}\nhttps://x:{two}@github.com/a/b"
    redacted = secrets.redact(text)
    assert sum(redacted.counts.values()) == 2
    assert one not in redacted.text
    assert two not in redacted.text


def test_words_beside_a_secret_do_not_excuse_it() -> None:
    """Writing `example` or an ignore comment next to a real key does not hide it."""
    text = f"example only, ignore: {made('AKIA{U16}')}  # nosec gitleaks:allow"
    assert [secret.rule for secret in secrets.find(text)] == ["aws-access-key"]


_FRAGMENTS = st.one_of(
    st.sampled_from([made(template) for _, template in FORMATS]),
    st.sampled_from(
        ["password=", "token: ", "'", '"', "[redacted: jwt]", "discord", "vault ", "twilio", "\n",
         " ", "://u:", "@host", "Bearer ", "sk-", "eyJ", "-----BEGIN RSA PRIVATE KEY-----",
         "-----END RSA PRIVATE KEY-----",
         "curl -u a:", "mysql -p", "sshpass -p ", "use password ",
         "\x00", "İ", "\ud800", "_", "-", ".", "A1b2", "é", "\x1b[31m", "\x1b[0m", "\x1b",
         r"\u001b[1m", r"\033[0;1m"]
    ),
    st.text(max_size=12),
    st.text(alphabet=string.ascii_letters + string.digits + "_-./+=:@", max_size=60),
)  # fmt: skip


@given(st.lists(_FRAGMENTS, max_size=14).map("".join))
@settings(max_examples=300, deadline=None)
def test_redacting_twice_is_the_same(text: str) -> None:
    """Whatever is glued together, a second redaction finds nothing and changes nothing."""
    once = secrets.redact(text)
    assert secrets.find(once.text) == []
    assert secrets.redact(once.text) == (once.text, {})


@given(st.lists(_FRAGMENTS, max_size=14).map("".join))
@settings(max_examples=300, deadline=None)
def test_what_is_no_secret_stays(text: str) -> None:
    """Nothing but marks is added, a text without secrets stays as it was, and lines are right."""
    found = secrets.find(text)
    rest = iter(text)
    kept = re.sub(r"\[redacted: [a-z0-9-]+\]", "", secrets.redact(text).text)
    assert all(c in rest for c in kept)  # what is left stood there, in that order
    assert found or secrets.redact(text).text == text
    assert all(s.line == text.count("\n", 0, s.start) + 1 for s in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))


def _find_everywhere(texts: list[str], patch: pytest.MonkeyPatch) -> list[list[secrets.Secret]]:
    """Search without the short ways: every pattern is tried wherever its word may stand."""
    always = re.compile("").search
    patch.setattr(passwords, "_find_foreign_letter", always)
    patch.setattr(passwords, "_find_letter_beyond", always)
    patch.setattr(secrets, "_MARK_BEGINS", "")
    patch.setattr(secrets, "_LONG", re.compile(b""))
    patch.setattr(secrets, "_TELL_NO_PASSWORD", frozenset())
    literals = secrets._LITERALS.words
    everywhere = lambda text: {  # noqa: E731
        word: found for word in literals if (found := passwords.places(text.decode(), word))
    }
    patch.setattr(secrets._LITERALS, "places", everywhere)
    return [secrets.find(text) for text in texts]


def _some_texts() -> list[str]:
    """Texts with a secret, texts with what looks like one, and any order of such pieces."""
    rng = random.Random(11)
    lines = [made(template) for _, template in FORMATS]
    lines += [case.text for case in list(planted_secrets().planted())[::6]]
    lines += Path(__file__).read_text("utf-8").splitlines()
    pieces = [
        *passwords._ALL_WORDS, *passwords._FOREIGN, *passwords._PASSWORDS, *passwords._SIGNS,
        *passwords.FOREIGN_KEYS,
        *(option for option, *_ in secret_formats.COMMAND_OPTIONS), "mysql", "sshpass", "redis-cli",
        *(": ", "=", " is ", '"', "'", " ", "\n", "/", "curl -u bob:", "echo ", "| sudo -S", "é"),
        *("\x1b[32m", "\x1b[0m", "\x00", r"\x1b[1m"),
        *(made("Vw9{A12}!") for _ in range(20)), *(made("{A32}", n) for n in range(20)),
    ]  # fmt: skip
    pieces += [made(template) for _, template in FORMATS[::5]]
    lines += ["".join(rng.choices(pieces, k=rng.randint(2, 10))) for _ in range(1500)]
    return lines


def test_the_short_ways_of_the_search_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked for only where its word stands is all that looking everywhere finds."""
    texts = _some_texts()
    found = [secrets.find(text) for text in texts]
    assert _find_everywhere(texts, monkeypatch) == found
    assert sum(map(bool, found)) > 500


def test_no_format_that_stands_alone_is_taken_apart() -> None:
    """Each is long enough, and none has a character at which words are parted."""
    for row in secret_formats.FORMATS:
        if row.stands_alone and not row.about:
            parsed = _parser.parse(row.expression)
            assert parsed.getwidth()[0] >= secret_formats.MIN_FORMAT, row
            fits = [re.compile(part, re.DOTALL) for part in _single(parsed)]
            for letter in (*secrets.IN_NO_FORMAT, "\u00e9", "\u65e5"):
                assert not any(part.fullmatch(letter) for part in fits), (row, letter)


def _single(parsed: _parser.SubPattern) -> list[str]:
    """Expressions for each single character that a parsed one takes, wherever it does."""
    found: list[str] = []
    for kind, value in parsed:
        if kind is _parser.LITERAL:
            found.append(re.escape(chr(value)))
        elif kind is _parser.IN:
            assert all(part[0] in (_parser.LITERAL, _parser.RANGE) for part in value), value
            ends = ([part[1]] * 2 if part[0] is _parser.LITERAL else part[1] for part in value)
            found += [f"[{re.escape(chr(a))}-{re.escape(chr(z))}]" for a, z in ends]
        elif kind not in (_parser.ASSERT, _parser.ASSERT_NOT, _parser.AT):
            nested = value[1] if kind is _parser.BRANCH else [value[-1]]
            found += [part for one in nested for part in _single(one)]
    return found


def test_a_foreign_letter_is_known_in_any_case() -> None:
    """Whatever is one in small letters is one as it stands."""
    small = set(passwords._LETTERS)
    letters = (chr(code) for code in range(0x3000) if small.intersection(chr(code).lower()))
    assert all(
        passwords._find_foreign_letter(letter) and passwords._find_letter_beyond(letter)
        for letter in letters
    )


def test_what_gives_no_sign_of_a_secret_holds_none() -> None:
    """One look at several texts at once, written as JSON, passes over no secret in one of them."""

    def may_hold(*texts: str, **named: str) -> bool:
        return secrets.may_hold(msgspec.json.encode([*texts, named]))

    found = [text for text in _some_texts() if secrets.find(text)]
    assert found
    assert all(may_hold("nothing", text, other="nothing") for text in found)
    assert all(may_hold(f"\x0b{text}", f"\b{text}") for text in found)
    parted = [text.partition("=") for text in found]
    assert all(may_hold(**{name: text}) for name, sign, text in parted if sign)
    assert not may_hold("a – few – words", "src/patterns/re_of.py", id="toolu_0042", path="/srv/x")
    assert not may_hold("mapping of roots – I – pinned", "sed -n 2p build_it", "a modal view")
    assert all(may_hold(text) for text in ("x\npin: 4711", "\x0fPIN-Code 4711", "Otp 4711"))
    assert may_hold(pin="4711")


def test_every_quantifier_has_a_bound() -> None:
    """No pattern of the table can run on: `*`, `+` and `{n,}` are not used."""
    patterns = [row.expression for row in secret_formats.FORMATS]
    tables = {**vars(secret_formats), **vars(passwords), **vars(told_secrets)}
    for name in vars(placeholders):  # those see one value, which has a bound itself
        tables.pop(name, None)
    patterns += [value.pattern for value in tables.values() if isinstance(value, re.Pattern)]
    patterns += [*secret_formats.COMMANDS.values()]
    patterns += [row[n] for row in secret_formats.COMMAND_OPTIONS for n in (1, 2)]
    for pattern in patterns:
        assert all(most < _parser.MAXREPEAT for most in _most(_parser.parse(pattern))), pattern


def _most(node: object) -> list[object]:
    """The upper bounds of every repetition in a parsed pattern."""
    found: list[object] = []
    if isinstance(node, tuple) and len(node) == 2 and "REPEAT" in str(node[0]):
        found.append(node[1][1])
    if isinstance(node, tuple | list | _parser.SubPattern):
        for part in node:
            found.extend(_most(part))
    return found


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ", "eyJa.", "sk-", "ghp_", "-----BEGIN RSA PRIVATE KEY-----\n", "password=", "://a:",
        "token token ", "A", "a1-", "Bearer ", "secret_", "xoxb-", ":AA", "-us", "api_key=x\\",
        "MNO discord.", "AKIAABCDEFGH", "curl -u a:", "\n", "[redacted: ", "pat", "s.vault",
        "mysql -p", "mysql ", "sshpass -p ", "with password ", "mariadb -pVw9!x ",
        "password for a ", "cookie: a=b1;", "echo a:b ", "admin/", "auth(\"a\",", "密码", "a:5432:",
        "password a b ", "pin is ", "code: a1b2-", "api key a ", "phrase is abc ", "log in a:b1!",
        "login 1aB2cD3eF4gH ", "unlock Kelp-kelp-12 ", "код двери 1",
        "kind: Secret\ndata:\n a: b\n",
    ],
)  # fmt: skip
def test_work_grows_with_the_length(unit: str) -> None:
    """Ten times the hostile text is about ten times the work; no step of it is longer than the
    patterns allow, which the test above bounds."""

    def cost(size: int) -> int:
        text = (unit * (size // len(unit) + 1))[:size]
        return calls(lambda: secrets.find(text))

    cost(400)  # fills what is kept between calls
    small, large = cost(4_000), cost(40_000)
    assert large <= 12 * small, (small, large)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("管理画面には admin / fujisan3776 でログインしてください", "fujisan3776"),
        ("Connecte-toi avec support / tournesol2020 et regarde", "tournesol2020"),
        ("the key for staging: AhWsunkwKnRgFRg1uC9vE2KKImWG", "AhWsunkwKnRgFRg1uC9vE2KKImWG"),
        ("API कुंजी: ff3bcbc16faabd1176872a7e400d3c0e इसे", "ff3bcbc16faabd1176872a7e400d3c0e"),
        ("cargo login --registry internal Ye7cgI2QjjbOOXqk4xNIcfzdn", "Ye7cgI2QjjbOOXqk4xNIcfzdn"),
        ("fly secrets set HOOK=fzJx1WBKgFTAfrLCMdlRFms0D6", "fzJx1WBKgFTAfrLCMdlRFms0D6"),
        ("BORG_PASSPHRASE='Every tide turns twice' borg create", "Every tide turns twice"),
        ("NEO4J_AUTH=neo4j/Graph_Paper5", "Graph_Paper5"),
    ],
)  # fmt: skip
def test_a_login_told_as_a_pair_and_what_programs_take(text: str, secret: str) -> None:
    assert secret not in secrets.redact(text).text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("ok i reset it, sign in with Meadow-Otter-41 and change it", "Meadow-Otter-41"),
        ("can you revoke k7Rw2MxQ9vLb4TzN8cPd1? it was in my notes", "k7Rw2MxQ9vLb4TzN8cPd1"),
        ("the passwrod for the box is now Meadow1987#", "Meadow1987#"),
        ("what do i type for sudo?\nMeadow*52otte\nthanks", "Meadow*52otte"),
        ("Lösenordet till servern är fortfarande Meadow-otter-41", "Meadow-otter-41"),
        ("hardcode the api token 5af26c0dd1d16752cdeb0d3727a7cb83 for now", "5af26c0dd1d16752"),
        ("if it asks for a token give it 683qg7fk064xzpudmc97lxchd3v6 again", "683qg7fk064xz"),
        ("il codice del portone è 4719, richiudi", "4719"),
        ("код от домофона 4719", "4719"),
        ("2FA code from the sms: 471902", "471902"),
        ("471902 is your Meadow verification code", "471902"),
        ("Your Meadow code: 4719. Do not share it", "4719"),
        ("kod z smsa to 471902", "471902"),
        ("the call, https://meet.test/j/5 — passcode 471902", "471902"),
        ("my last recovery code, keep it safe: gpncz-vmitc", "gpncz-vmitc"),
        ("set DB_PASS=Meadow1987!&& node server.js", "Meadow1987!"),
        ("db_password: !unsafe 'Meadow-otter-41'", "Meadow-otter-41"),
        ("<BindPassword><![CDATA[Meadow-otter-41]]></BindPassword>", "Meadow-otter-41"),
        ("[store]\ntype = b2\naccount = 00a1\nkey = K00YOpiTawDkGknEaMl2gUvbkl", "K00YOpiTawDk"),
        ("user cache on >Meadow1987! ~cache:* +@read", "Meadow1987!"),
        ("kind: Secret\ndata:\n  auth: b3R0ZXI6TWVhZG93IzUyb3R0", "b3R0ZXI6TWVhZG93"),
        ("url = https://oauth2:baWPdoOvxNrvjBlKACkeZggl@git.test/a.git", "baWPdoOvxNrv"),
    ],
)  # fmt: skip
def test_what_nobody_would_call_a_thing_beside_a_cue(text: str, secret: str) -> None:
    """In a line of prose, wherever it stands; words with a number where a password is meant."""
    assert secret not in secrets.redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        "the login test was fixed in 3f9c2ab71d0e4c5b6a798812f3e4d5c6b7a89012 by somebody",
        "the token 3f9c2ab71d0e4c5b6a798812f3e4d5c6b7a89012 is the hash of a tree",
        "sign in with PBKDF2WithHmacSHA256, see the notes of Kapitel-drei-12",
        "the workflow k7Rw2MxQ9vLb4TzN has no credentials yet",
        "Login works on Firefox-Nightly-121 and Chrome-Beta-122 now",
        "use Keycloak2024! as realm name, the password policy is another thing",
        "stack sizes were taken at 16ch@5kHz over the WiFi and the login page",
        "improved the authorization prompt and Quick Access.!32726 in this release",
        "type login and press Ctrl+Shift+F5, or take Qwen3-30B-A3B with its token limits",
        "the login helper AddV2ItemWithLog has Hamming-distance-1 in its password test",
        "your verification code is 123456 in every guide",
        "your exit code is 4012, and your code is 4012 lines long",
        "login failed, request k7Rw2MxQ9vLb4TzN8cPd1 says so",
        "El código de error es 40312 y el token ya caducó",
        "the verification code expires after 3600 seconds",
        "unlock = codec(k7Rw2MxQ9vLb4TzN8cPd1)",
        "kind: Secret\ndata:\n  username: YWRtaW4=",
        "kind: ConfigMap\ndata:\n  auth: b3R0ZXI6TWVhZG93IzUyb3R0",
    ],
)
def test_names_and_ids_beside_a_cue_stay(text: str) -> None:
    assert secrets.redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "the roles are admin / Viewer2 and root / Group3",
        "the cache key for staging: AhWsunkwKnRgFRg1uC9vE2KKImWGoJEZ",
        "copy it to backup / restore2024-dumps/old",
        "export BORG_PASSPHRASE='$FROM_VAULT'",
        "fly secrets set HOOK=$HOOK",
    ],
)
def test_roles_caches_and_references_are_no_logins(text: str) -> None:
    assert secrets.redact(text).text == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("my password is 645866. use that and save it.", "645866"),
        ("645866 is the password to this computer", "645866"),
        ("the password for the router is 88123", "88123"),
        ("das passwort ist 645866", "645866"),
        ("密码是645866", "645866"),
        ("password hash iterations: 310000", ""),
        ("password length is 4096", ""),
        ("the password is 2019", ""),
        ("86400 is the password age limit", ""),
        ("password: 2048 bits", ""),
    ],
)
def test_figures_are_a_password_where_it_is_said_outright(text: str, secret: str) -> None:
    found = secrets.redact(text).text
    assert (secret not in found) if secret else (found == text)
