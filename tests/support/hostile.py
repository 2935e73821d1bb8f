"""Texts that an agent could use to attack a page or a terminal."""

SCRIPT = "<script>document.documentElement.dataset.owned=1;top.owned=1</script>"
TEXTS = (
    SCRIPT,
    "<img src=x onerror=\"top.owned=1;document.title='owned'\">",
    "</pre></bdi></details></li></style></script></title>" + SCRIPT,
    "'\"><svg onload=top.owned=1><a href=javascript:top.owned=1>x</a>",
    "<style>body{display:none}</style><base href=//evil><meta http-equiv=refresh content=0>",
    "<iframe srcdoc='<script>top.owned=1</script>'></iframe><form action=//evil><input>",
    "{{ 7 * 7 }}{% raw %}{# #}${7*7}",
    "\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m\x00\x08\x7f\x9b31m",
    "safe\u202egpj.exe\u2066\u200f\u2069\u200b\ufeff\U000e0041",
    "e" + "\u0301" * 500 + " marks",
    "\u2028\u2029\u0085next",
    "\udcff\udcfe lone surrogates",
    "word" * 100_000,
    "\ufdfd" * 500,
)
ALL = "\n".join(TEXTS)
