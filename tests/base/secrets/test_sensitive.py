"""Secrets in texts that are shown: their values are hidden."""

from rooda.base.secrets.sensitive import without_secret_values
from support.tables import each_row


@each_row(
    "text,shown",
    [
        ("make test", "make test"),
        ("agent --api-key abc -p", "agent --api-key ... -p"),
        ("agent --api-key='a b' -p", "agent --api-key=... -p"),
        ("agent --api-key 'a b", "agent --api-key ..."),
        ("GH_TOKEN=abc HOME=/x make", "GH_TOKEN=... HOME=/x make"),
        ("PASSWORD=a'b c'd make", "PASSWORD=... make"),
        ("env password=x", "env password=..."),
        ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: ...' x"),
        (
            "curl https://me:abc@host/x?access_token=abc",
            "curl https://me:...@host/x?access_token=...",
        ),
        ("agent --max-tokens 500 --author me", "agent --max-tokens 500 --author me"),
        ("agent sk-ant-api03-abcdefghij_0123456789 -p", "agent sk-ant-...(masked) -p"),
        ("agent 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'", "agent 'ghp_...(masked)'"),
        ("agent --header=eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2ln", "agent --header=eyJ...(masked)"),
        ("agent --skip sk-learn task-abcdefghijklmnopqrstuvwxyz", None),
        ('agent "--api-key" abc -p', 'agent "--api-key" ... -p'),
        ("agent --api-key \\\n  abc -p", "agent --api-key \\\n  ... -p"),
        ("agent --api-key a\\ b -p", "agent --api-key ... -p"),
        ("agent '--api-key=abc'", "agent '--api-key=..."),
        ("agent --apiKey abc --accessToken abc", "agent --apiKey ... --accessToken ..."),
        ("agent --authorization abc --pass abc", "agent --authorization ... --pass ..."),
        ("agent --bearer abc --pat abc --jwt abc", "agent --bearer ... --pat ... --jwt ..."),
        ("agent --header 'Private-Token: abc' x", "agent --header 'Private-Token: ...' x"),
        ("agent -H X-Auth-Token:abc", "agent -H X-Auth-Token:..."),
        ('agent -H "Cookie: a=abc" x', 'agent -H "Cookie: ..." x'),
        ("agent '-HAuthorization=Bearer abc' x", "agent '-HAuthorization=..."),
        ("curl -u me:abc --user=me:abc x", "curl -u me:... --user=me:... x"),
        ("curl -ume:abc -u'me:abc' x", "curl -ume:... -u'me:...' x"),
        ("git clone https://abcdefghij0123456789@host/x", "git clone https://...@host/x"),
        ("git clone ssh://git@host/x", "git clone ssh://git@host/x"),
        ("docker run --user 1000:1000 --path x", None),
        (
            """agent --mcp '{"env": {"API_KEY": "a b"}, "x": 1}'""",
            """agent --mcp '{"env": {"API_KEY": ...}, "x": 1}'""",
        ),
        ('agent --mcp {\\"apiKey\\":\\"abc\\"}', 'agent --mcp {\\"apiKey\\":...}'),
        ('sh -c "agent --api-key abc"', 'sh -c "agent --api-key ...'),
        ("agent -k zq7Wm2Xp -K 'abc-123-xyz' -k=a1b2c3d4", "agent -k ... -K '...' -k=..."),
        ("agent -t 4f3c2b1a4f3c2b1a4f3c2b1a -p", "agent -t ... -p"),
        ("pytest -k test_login_2 -p xdist -n 12345678", None),
        ("curl -k https://example.org/v2/a1b2c3d4", None),
        ("agent -r 550e8400-e29b-41d4-a716-446655440000 -C lib/a1b2c3d4a1b2c3d4a1b2c3d4", None),
        ("the key is in the drawer", "the key is in the drawer"),
        ("auth: check it", "auth: check it"),
        ("", ""),
    ],
)
def test_values_of_secret_names_and_known_tokens_are_hidden(text: str, shown: str | None) -> None:
    assert without_secret_values(text) == (text if shown is None else shown)


def test_secrets_in_a_long_text_are_hidden_in_linear_time() -> None:
    for text in (
        "a" * 300_000,
        "key" * 100_000,
        "key=" * 60_000,
        "'" * 300_000,
        "://" * 100_000,
        "eyJa-" * 60_000,
    ):
        assert len(without_secret_values(text)) <= len(text)
