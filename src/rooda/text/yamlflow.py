"""Values as they stand on one line of YAML."""


def flow_yaml(value: object) -> str:
    """The value in YAML's flow form."""
    import yaml  # noqa: PLC0415 - slow to load, and Tab must be quick

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
